/** A model without a kernel, the shared protocol examples, and updates made of a few words. */

import branched from "../../tests/fixtures/protocol/update_branch.json";
import failure from "../../tests/fixtures/protocol/update_failure.json";
import finish from "../../tests/fixtures/protocol/update_finish.json";
import flareDoubt from "../../tests/fixtures/protocol/update_flare_doubt.json";
import flareLookUp from "../../tests/fixtures/protocol/update_flare_look_up.json";
import flareReplay from "../../tests/fixtures/protocol/update_flare_replay.json";
import flareStart from "../../tests/fixtures/protocol/update_flare_start.json";
import flareWhatIf from "../../tests/fixtures/protocol/update_flare_what_if.json";
import replay from "../../tests/fixtures/protocol/update_replay.json";
import start from "../../tests/fixtures/protocol/update_start.json";
import steps from "../../tests/fixtures/protocol/update_steps.json";
import bundle from "../src/index";
import { CANDIDATE_COLUMNS, FLAGS, STEP_COLUMNS } from "../src/protocol";
import type { Model, Traits } from "../src/sync";

interface Example {
  content: object;
  buffers: string[];
}

export interface Sent {
  content: Record<string, unknown>;
  buffers: DataView[];
}

/** An example as it arrives: each buffer somewhere inside a larger one, at an odd offset. */
function arrived({ content, buffers }: Example): Sent {
  return { content: structuredClone(content) as Record<string, unknown>, buffers: buffers.map(fromBase64) };
}

function fromBase64(text: string): DataView {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const room = new Uint8Array(bytes.length + 8).fill(0xaa);
  room.set(bytes, 3);
  return new DataView(room.buffer, 3, bytes.length);
}

export const examples = {
  start: () => arrived(start),
  steps: () => arrived(steps),
  finish: () => arrived(finish),
  replay: () => arrived(replay),
  failure: () => arrived(failure),
  branch: () => arrived(branched),
  flareStart: () => arrived(flareStart),
  flareDoubt: () => arrived(flareDoubt),
  flareLookUp: () => arrived(flareLookUp),
  flareReplay: () => arrived(flareReplay),
  flareWhatIf: () => arrived(flareWhatIf),
};

type Listener = (...parts: unknown[]) => void;

export class FakeModel {
  readonly traits: Traits;
  readonly sent: unknown[] = [];
  readonly saved: Partial<Traits>[] = [];
  #listeners = new Map<string, Set<Listener>>();

  constructor(traits: Partial<Traits> = {}) {
    this.traits = {
      view: "run",
      metric: "max_prob",
      threshold: 0.4,
      selected: null,
      snapshot: null,
      show_model: true,
      can_branch: false,
      ...traits,
    };
  }

  get<K extends keyof Traits>(name: K): Traits[K] {
    return this.traits[name];
  }

  set<K extends keyof Traits>(name: K, value: Traits[K]): void {
    if (this.traits[name] === value) return;
    this.traits[name] = value;
    this.#emit(`change:${name}`);
  }

  save_changes(): void {
    const { metric, threshold, selected } = this.traits;
    this.saved.push({ metric, threshold, selected });
  }

  send(message: unknown): void {
    this.sent.push(message);
  }

  on(event: string, listener: Listener): void {
    this.#listeners.set(event, (this.#listeners.get(event) ?? new Set()).add(listener));
  }

  off(event: string, listener: Listener): void {
    this.#listeners.get(event)?.delete(listener);
  }

  /** A message from the kernel, to all views of this model. */
  receive({ content, buffers }: Sent): void {
    this.#emit("msg:custom", content, buffers);
  }

  get listenerCount(): number {
    return [...this.#listeners.values()].reduce((sum, listeners) => sum + listeners.size, 0);
  }

  #emit(event: string, ...parts: unknown[]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) listener(...parts);
  }
}

export interface Mounted {
  el: HTMLElement;
  root: ShadowRoot;
  dispose: () => void;
  find: (id: string) => HTMLElement;
  tokens: () => HTMLElement[];
}

const mounted = new Set<() => void>();

/** Close every view that a test has left open: its timers would outlive the page it was drawn on. */
export function disposeAll(): void {
  for (const dispose of mounted) dispose();
  mounted.clear();
}

export function mount(model: FakeModel): Mounted {
  const el = document.createElement("div");
  document.body.append(el);
  const dispose = bundle.render({ model: model as unknown as Model, el });
  mounted.add(dispose);
  const root = el.firstElementChild?.shadowRoot;
  if (root === null || root === undefined) throw new Error("no shadow root");
  const find = (id: string) => {
    const node = root.querySelector<HTMLElement>(`[data-testid="${id}"]`);
    if (node === null) throw new Error(`no ${id}`);
    return node;
  };
  const tokens = () => [...root.querySelectorAll<HTMLElement>('[data-testid="token"]')];
  return { el, root, dispose, find, tokens };
}

/** Wait until what has been received is on the page. */
export async function shown(): Promise<void> {
  await new Promise((resolve) => requestAnimationFrame(resolve));
}

export interface Spec {
  text: string;
  label?: string;
  maxProb?: number;
  logprob?: number;
  rank?: number;
  restMass?: number;
  flags?: number;
  candidates?: { text: string; raw: number; processed?: number; removedBy?: number }[];
}

const INFO = {
  model: "m",
  engine: "torch",
  device: "cpu",
  dtype: "float32",
  context_length: 64,
  prompt: "p",
  params: { temperature: 1 },
};

/** An update of run `run`; the chosen token is the first candidate of its step. */
export function update(parts: Record<string, unknown>, first = 0, specs: Spec[] = []): Sent {
  const content: Record<string, unknown> = { type: "update", v: 1, run: "r", seq: 1, ...parts };
  if (specs.length === 0) return { content, buffers: [] };
  const width = Math.max(0, ...specs.map((spec) => spec.candidates?.length ?? 0));
  const names = [...Object.keys(STEP_COLUMNS), ...Object.keys(CANDIDATE_COLUMNS)];
  const numbers = names.map((name) =>
    name in CANDIDATE_COLUMNS
      ? specs.flatMap((spec) => Array.from({ length: width }, (_, k) => candidateNumber(name, spec, k)))
      : specs.map((spec) => stepNumber(name, spec)),
  );
  content["steps"] = {
    first,
    count: specs.length,
    width,
    texts: specs.map((spec) => spec.text),
    labels: specs.map((spec) => spec.label ?? spec.text),
    candidate_texts: specs.map((spec) => (spec.candidates ?? []).map((candidate) => candidate.text)),
    columns: names,
  };
  return { content, buffers: names.map((name, i) => asView(name, numbers[i] ?? [])) };
}

export function begin(run = "r", specs: Spec[] = [], info: Record<string, unknown> = {}): Sent {
  return update({ run, info: { ...INFO, ...info }, state: "running" }, 0, specs);
}

function stepNumber(name: string, spec: Spec): number {
  const known: Record<string, number> = {
    token_id: 0,
    logprob: spec.logprob ?? Math.log(0.5),
    rank: spec.rank ?? 1,
    max_prob: spec.maxProb ?? 0.5,
    entropy: 1,
    rest_mass: spec.restMass ?? 0,
    processed_rest_mass: 0,
    draw: 0.25,
    flags: spec.flags ?? FLAGS.kept,
  };
  return known[name] ?? 0;
}

function candidateNumber(name: string, spec: Spec, k: number): number {
  const candidate = spec.candidates?.[k];
  if (candidate === undefined) return name === "candidate_id" ? -1 : 0;
  if (name === "candidate_id") return k;
  if (name === "candidate_logprob") return Math.log(candidate.raw);
  if (name === "candidate_removed_by") return candidate.removedBy ?? 0;
  return Math.log(candidate.processed ?? candidate.raw);
}

function asView(name: string, values: number[]): DataView {
  const kinds: Record<string, new (values: number[]) => { buffer: ArrayBufferLike }> = {
    ...STEP_COLUMNS,
    ...CANDIDATE_COLUMNS,
  };
  const kind = kinds[name];
  if (kind === undefined) throw new Error(name);
  return new DataView(new kind(values).buffer as ArrayBuffer);
}

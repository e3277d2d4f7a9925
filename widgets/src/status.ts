/** Where a run stands, in a line, and what a screen reader is told of it. */

import { h, setText } from "./dom";
import * as format from "./format";
import { tokensPerSecond } from "./metrics";
import type { RunStore } from "./store";

export type Phase =
  | "empty"
  | "prefilling"
  | "running"
  | "looking_up"
  | "rereading"
  | "paused"
  | "finished"
  | "failed";

const EMPTY = "Nothing has been generated yet. Write a prompt and press Generate.";
const REASONS: Record<string, string> = {
  stop: "its end token",
  length: "its length",
  stopped: "you",
  local_decode_timeout: "the time limit",
  error: "an error",
};

export function phaseOf(store: RunStore): Phase {
  if (store.run === null) return "empty";
  if (store.failure !== null || store.state === "failed") return "failed";
  if (store.finish !== null || store.state === "finished") return "finished";
  if (store.state === "paused") return "paused";
  if (store.state === "looking_up") return "looking_up";
  if (store.state === "prefilling" && store.count > 0 && store.lookUps.length > 0) return "rereading";
  return store.count === 0 ? "prefilling" : "running";
}

/** Who or what ended a run: the reason in words, and the token or sentence that goes with it. */
export function endedBy(reason: string, detail: string): string {
  const words = REASONS[reason] ?? reason;
  if (reason === "stopped") return `ended by ${words}`;
  if (reason === "stop" || words === "") return detail || words ? `ended by ${detail || words}` : "";
  return detail === "" ? `ended by ${words}` : `ended by ${words} (${detail})`;
}

export function statusText(store: RunStore, empty = EMPTY): string {
  const tokens = tokensText(store);
  switch (phaseOf(store)) {
    case "empty":
      return empty;
    case "prefilling":
      return prefillText(store, "reading the prompt");
    case "looking_up":
      return joined("looking up…", store.count === 0 ? "" : tokens);
    case "rereading":
      return joined(prefillText(store, "reading the passages"), tokens);
    case "paused":
      return `paused · ${tokens}`;
    case "failed":
      return store.count === 0 ? "failed before the first token" : `failed after ${tokens}`;
    case "running":
      return joined(tokens, speedText(tokensPerSecond(store.numbers.elapsed.values)));
    case "finished":
      return finishText(store, tokens);
  }
}

/** Tokens so far; where some were rolled back, those that stand and those that do not. */
function tokensText(store: RunStore): string {
  const { dropped, count, finish } = store;
  if (dropped === 0) return format.plural(finish?.completion_tokens ?? count, "token");
  return `${format.plural(count - dropped, "token")} kept, ${format.count(dropped)} dropped`;
}

function prefillText({ prefill, state }: RunStore, what: string): string {
  if (state === "waiting") return "waiting for the model";
  if (prefill === null || prefill.total === 0) return what;
  return `${what} ${format.count(prefill.done)} / ${format.plural(prefill.total, "token")}`;
}

function finishText(store: RunStore, tokens: string): string {
  const { finish } = store;
  if (finish === null) return tokens;
  const first = finish.ttft_ms === null ? "" : `first after ${format.seconds(finish.ttft_ms / 1000)}`;
  const speed = finish.tokens_per_second === null ? "" : speedText(finish.tokens_per_second);
  return joined(tokens, speed, first, endedBy(finish.stop_reason, finish.stop_detail));
}

function speedText(value: number): string {
  return Number.isFinite(value) ? format.speed(value) : "";
}

function joined(...parts: string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

const SPOKEN: Partial<Record<Phase, string>> = {
  prefilling: "Reading the prompt.",
  running: "Generating.",
  looking_up: "Looking something up.",
  rereading: "Reading the passages.",
};

export class Status {
  readonly node: HTMLElement;
  /** Told to screen readers when the phase changes, not with every token. */
  readonly spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  #text = h("span", { class: "status-text" });
  #bar = h(
    "div",
    { class: "progress", role: "progressbar", "aria-label": "reading the prompt", hidden: true },
    h("i"),
  );
  #phase: Phase | null = null;

  readonly #empty: string | undefined;

  /** `empty` is said before there is a run. */
  constructor(empty?: string) {
    this.#empty = empty;
    this.node = h("div", { class: "status", "data-testid": "status" }, this.#bar, this.#text);
  }

  update(store: RunStore): void {
    const phase = phaseOf(store);
    const text = statusText(store, this.#empty);
    setText(this.#text, text);
    this.node.dataset["phase"] = phase;
    this.#progress(store, phase);
    if (phase === this.#phase) return;
    const first = this.#phase === null;
    this.#phase = phase;
    // What was there when the page was opened is read as the page, not announced.
    if (!first) setText(this.spoken, SPOKEN[phase] ?? text);
  }

  #progress({ prefill }: RunStore, phase: Phase): void {
    const reads = phase === "prefilling" || phase === "rereading";
    this.#bar.hidden = !reads || prefill === null || prefill.total === 0;
    if (this.#bar.hidden || prefill === null) return;
    const share = Math.min(1, prefill.done / prefill.total);
    this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const fill = this.#bar.firstElementChild;
    if (fill instanceof HTMLElement) fill.style.width = `${100 * share}%`;
  }
}

/** Where a run stands, in a line, and what a screen reader is told of it. */

import { h, setText } from "./dom";
import * as format from "./format";
import { tokensPerSecond } from "./metrics";
import type { RunStore } from "./store";

export type Phase = "empty" | "prefilling" | "running" | "paused" | "finished" | "failed";

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
  return store.count === 0 ? "prefilling" : "running";
}

/** Who or what ended a run: the reason in words, and the token or sentence that goes with it. */
export function endedBy(reason: string, detail: string): string {
  const words = REASONS[reason] ?? reason;
  if (reason === "stopped") return `ended by ${words}`;
  if (reason === "stop" || words === "") return detail || words ? `ended by ${detail || words}` : "";
  return detail === "" ? `ended by ${words}` : `ended by ${words} (${detail})`;
}

export function statusText(store: RunStore): string {
  const tokens = format.plural(store.finish?.completion_tokens ?? store.count, "token");
  switch (phaseOf(store)) {
    case "empty":
      return EMPTY;
    case "prefilling":
      return prefillText(store);
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

function prefillText({ prefill, state }: RunStore): string {
  if (state === "waiting") return "waiting for the model";
  if (prefill === null || prefill.total === 0) return "reading the prompt";
  return `reading the prompt ${format.count(prefill.done)} / ${format.plural(prefill.total, "token")}`;
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

const SPOKEN: Partial<Record<Phase, string>> = { prefilling: "Reading the prompt.", running: "Generating." };

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

  constructor() {
    this.node = h("div", { class: "status", "data-testid": "status" }, this.#bar, this.#text);
  }

  update(store: RunStore): void {
    const phase = phaseOf(store);
    const text = statusText(store);
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
    this.#bar.hidden = phase !== "prefilling" || prefill === null || prefill.total === 0;
    if (this.#bar.hidden || prefill === null) return;
    const share = Math.min(1, prefill.done / prefill.total);
    this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const fill = this.#bar.firstElementChild;
    if (fill instanceof HTMLElement) fill.style.width = `${100 * share}%`;
  }
}

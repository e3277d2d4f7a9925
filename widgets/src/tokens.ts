/** The text as prose: one span a token, appended as tokens arrive and never rebuilt. */

import { h } from "./dom";
import { doubt, type Metric } from "./metrics";
import { selectionIn } from "./selection";
import type { RunStore, Step } from "./store";
import { describe, makeSpan, nearestOnNextLine } from "./token_span";
import { layout } from "./token_text";

export interface TokensEvents {
  onSelect(index: number | null): void;
  onHover(index: number | null, anchor: Element | null): void;
}

export class TokenText {
  readonly node: HTMLElement;
  #store: RunStore;
  #events: TokensEvents;
  #spans: HTMLElement[] = [];
  #metric: Metric = "max_prob";
  #threshold = 0.4;
  #selected: number | null = null;
  #marked: number | null = null;
  #hovered: number | null = null;
  #paragraph: HTMLElement | null = null;
  #tabStop = 0;
  #atEnd = true;

  constructor(store: RunStore, events: TokensEvents, signal: AbortSignal) {
    this.#store = store;
    this.#events = events;
    this.node = h("div", {
      class: "tokens",
      "data-testid": "tokens",
      role: "listbox",
      "aria-label": "generated text, one option a token",
      "aria-orientation": "horizontal",
      dir: "auto",
    });
    const on = <K extends keyof HTMLElementEventMap>(
      type: K,
      listener: (e: HTMLElementEventMap[K]) => void,
    ) => this.node.addEventListener(type, listener, { signal });
    on("click", (event) => this.#click(event));
    on("keydown", (event) => this.#key(event));
    on("copy", (event) => this.#copy(event));
    on("focusin", (event) => this.#focused(event.target));
    on("focusout", () => this.#events.onHover(null, null));
    on("pointerover", (event) => this.#hover(event.target));
    on("pointerleave", () => this.#events.onHover(null, null));
    on("scroll", () => {
      this.#atEnd = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 32;
    });
  }

  clear(): void {
    this.#spans = [];
    this.#selected = null;
    this.#marked = null;
    this.#hovered = null;
    this.#paragraph = null;
    this.#tabStop = 0;
    this.#atEnd = true;
    this.node.replaceChildren();
  }

  /** Add the steps that the store has and the page has not. */
  append(): void {
    const fragment = document.createDocumentFragment();
    let paragraph = this.#paragraph;
    for (let i = this.#spans.length; i < this.#store.count; i++) {
      const step = this.#store.step(i);
      const { lead, body, tail } = layout(step);
      const span = makeSpan(step, body, this.#threshold);
      if (paragraph === null) {
        paragraph = h("div", { class: "paragraph", role: "presentation" });
        fragment.append(paragraph);
      }
      paragraph.append(lead, span, tail);
      this.#colour(span, step);
      this.#spans.push(span);
      // A block of its own for each paragraph: only the last is laid out again when a token arrives.
      if (tail !== "") paragraph = null;
    }
    this.#paragraph = paragraph;
    this.node.append(fragment);
    this.#spans[this.#tabStop]?.setAttribute("tabindex", "0");
  }

  /** Keep the newest line in sight, unless the reader has scrolled back. */
  followEnd(): void {
    if (this.#atEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  setMetric(metric: Metric): void {
    if (metric === this.#metric) return;
    this.#metric = metric;
    for (const [i, span] of this.#spans.entries()) this.#colour(span, this.#store.step(i));
  }

  setThreshold(threshold: number): void {
    const before = this.#threshold;
    this.#threshold = threshold;
    const values = this.#store.numbers.max_prob.values;
    this.#spans.forEach((span, i) => {
      const value = values[i] ?? Number.NaN;
      if (value < before === value < threshold) return;
      span.classList.toggle("low", value < threshold);
      span.setAttribute("aria-label", describe(this.#store.step(i), threshold));
    });
  }

  /** Flags of these steps have changed. */
  reflag(indices: number[]): void {
    for (const i of indices) {
      const span = this.#spans[i];
      const step = this.#store.step(i);
      span?.classList.toggle("dropped", !step.kept);
      span?.setAttribute("aria-label", describe(step, this.#threshold));
    }
  }

  /** `selected` is what the user chose; `marked` is what the side panel shows while it follows. */
  select(selected: number | null, marked: number | null): void {
    if (selected !== this.#selected) {
      this.#toggle(this.#selected, "selected", false)?.setAttribute("aria-selected", "false");
      this.#toggle(selected, "selected", true)?.setAttribute("aria-selected", "true");
      this.#selected = selected;
      if (selected !== null) {
        this.#setTabStop(selected);
        this.#reveal(selected);
      }
    }
    const shown = selected === null ? marked : null;
    if (shown === this.#marked) return;
    this.#toggle(this.#marked, "marked", false);
    this.#toggle(shown, "marked", true);
    this.#marked = shown;
  }

  /** Point at a token, as when the plot is hovered. */
  hover(index: number | null): void {
    this.#toggle(this.#hovered, "hovered", false);
    this.#toggle(index, "hovered", true);
    this.#hovered = index;
  }

  #toggle(index: number | null, name: string, on: boolean): HTMLElement | undefined {
    const span = index === null ? undefined : this.#spans[index];
    span?.classList.toggle(name, on);
    return span;
  }

  #colour(span: HTMLElement, step: Step): void {
    span.style.setProperty("--d", doubt(this.#metric, step).toFixed(3));
  }

  #indexOf(target: EventTarget | null): number | null {
    const span = target instanceof Element ? target.closest<HTMLElement>(".token") : null;
    return span === null ? null : Number(span.dataset["index"]);
  }

  #hover(target: EventTarget | null): void {
    const index = this.#indexOf(target);
    this.#events.onHover(index, index === null ? null : (this.#spans[index] ?? null));
  }

  #focused(target: EventTarget | null): void {
    this.#setTabStop(this.#indexOf(target));
    if (target instanceof Element && target.matches(":focus-visible")) this.#hover(target);
  }

  #click(event: MouseEvent): void {
    const index = this.#indexOf(event.target);
    // The end of a drag that selects text is a click as well.
    if (index === null || !(selectionIn(this.node)?.collapsed ?? true)) return;
    this.#events.onSelect(index);
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const index = this.#indexOf(event.target);
    if (index === null) return;
    const action = this.#keyAction(event.key, index);
    if (action === null) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  #keyAction(key: string, index: number): (() => void) | null {
    const last = this.#spans.length - 1;
    const focus = (i: number) => () => this.#focus(Math.min(last, Math.max(0, i)));
    switch (key) {
      case "Enter":
      case " ":
        return () => this.#events.onSelect(index);
      case "Escape":
        return () => this.#events.onSelect(null);
      case "ArrowLeft":
        return focus(index - 1);
      case "ArrowRight":
        return focus(index + 1);
      case "ArrowUp":
        return focus(nearestOnNextLine(this.#spans, index, -1));
      case "ArrowDown":
        return focus(nearestOnNextLine(this.#spans, index, 1));
      case "Home":
        return focus(0);
      case "End":
        return focus(last);
      default:
        return null;
    }
  }

  #focus(index: number): void {
    this.#reveal(index);
    this.#spans[index]?.focus({ preventScroll: true });
  }

  #setTabStop(index: number | null): void {
    if (index === null || index === this.#tabStop) return;
    this.#spans[this.#tabStop]?.setAttribute("tabindex", "-1");
    this.#spans[index]?.setAttribute("tabindex", "0");
    this.#tabStop = index;
  }

  /** Scroll the text, not the page, until a token is in sight. */
  #reveal(index: number): void {
    const span = this.#spans[index];
    if (span === undefined || this.node.scrollHeight <= this.node.clientHeight) return;
    const box = span.getBoundingClientRect();
    const frame = this.node.getBoundingClientRect();
    if (box.top < frame.top + 4) this.node.scrollTop -= frame.top + 4 - box.top;
    else if (box.bottom > frame.bottom - 4) this.node.scrollTop += box.bottom - frame.bottom + 4;
  }

  /** Browsers turn no-break spaces into spaces and may add breaks; the copy is the text as it was generated. */
  #copy(event: ClipboardEvent): void {
    const range = selectionIn(this.node);
    if (range === null || range.collapsed || event.clipboardData === null) return;
    event.clipboardData.setData("text/plain", range.toString());
    event.preventDefault();
  }
}

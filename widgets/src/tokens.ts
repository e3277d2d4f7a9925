/** The text as prose: one span a token, appended as tokens arrive; what the reader does with them. */

import { h } from "./dom";
import { doubt, type Metric } from "./metrics";
import { keptText, selectionIn } from "./selection";
import type { RunStore } from "./store";
import { type FlowMark, nextOption, TokenFlow } from "./token_flow";
import { nearestOnNextLine } from "./token_span";

export interface TokensEvents {
  onSelect(index: number | null): void;
  onHover(index: number | null, anchor: Element | null): void;
  onLookUp(index: number): void;
}

export class TokenText {
  readonly node: HTMLElement;
  #store: RunStore;
  #events: TokensEvents;
  #flow: TokenFlow;
  #metric: Metric = "max_prob";
  #threshold = 0.4;
  #selected: number | null = null;
  #marked: number | null = null;
  #hovered: number | null = null;
  #looked: number | null = null;
  #marks: readonly FlowMark[] = [];
  #retrieved: readonly number[] = [];
  #tabStop: HTMLElement | null = null;
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
    this.#flow = new TokenFlow(this.node, store);
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

  get #spans(): readonly HTMLElement[] {
    return this.#flow.spans;
  }

  clear(): void {
    this.#flow.clear();
    this.#selected = null;
    this.#marked = null;
    this.#hovered = null;
    this.#looked = null;
    this.#marks = [];
    this.#retrieved = [];
    this.#tabStop = null;
    this.#atEnd = true;
  }

  /** Add the steps that the store has and the page has not. */
  append(): void {
    const first = this.#flow.append(this.#threshold);
    for (let i = first; i < this.#spans.length; i++) this.#colour(i);
    if (this.#tabStop === null) this.#setTabStop(this.#spans[0] ?? null);
  }

  /** Keep the newest line in sight, unless the reader has scrolled back. */
  followEnd(): void {
    if (this.#atEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  setMetric(metric: Metric): void {
    if (metric === this.#metric) return;
    this.#metric = metric;
    for (let i = 0; i < this.#spans.length; i++) this.#colour(i);
  }

  setThreshold(threshold: number): void {
    const before = this.#threshold;
    this.#threshold = threshold;
    const values = this.#store.numbers.max_prob.values;
    this.#spans.forEach((span, i) => {
      const value = values[i] ?? Number.NaN;
      if (value < before === value < threshold) return;
      span.classList.toggle("low", value < threshold);
      this.#flow.describe(i, threshold);
    });
  }

  /** Flags or texts of these steps have changed. */
  reflag(indices: number[]): void {
    const first = this.#flow.rewritten(indices);
    if (first !== null) this.#rewrite(first);
    for (const i of indices) {
      this.#flow.strike(i, this.#store.kept(i));
      this.#flow.describe(i, this.#threshold);
    }
  }

  /** Where something was looked up. */
  setMarks(marks: readonly FlowMark[]): void {
    this.#marks = marks;
    this.#flow.setMarks(marks);
    if (this.#tabStop === null) this.#setTabStop(this.#flow.mark(0) ?? null);
  }

  /** Steps whose word came from a passage. */
  setRetrieved(indices: readonly number[]): void {
    if (indices === this.#retrieved) return;
    const before = new Set(this.#retrieved);
    const now = new Set(indices);
    this.#retrieved = indices;
    for (const i of new Set([...before, ...now])) {
      if (before.has(i) === now.has(i)) continue;
      this.#toggle(i, "retrieved", now.has(i));
      this.#flow.describe(i, this.#threshold);
    }
  }

  /** Show which look-up is chosen. */
  selectLookUp(index: number | null): void {
    if (index === this.#looked) return;
    for (const [k, on] of [
      [this.#looked, false],
      [index, true],
    ] as const) {
      const mark = k === null ? undefined : this.#flow.mark(k);
      mark?.classList.toggle("selected", on);
      mark?.setAttribute("aria-selected", String(on));
      if (on && mark !== undefined) this.#reveal(mark);
    }
    this.#looked = index;
  }

  /** `selected` is what the user chose; `marked` is what the side panel shows while it follows. */
  select(selected: number | null, marked: number | null): void {
    if (selected !== this.#selected) {
      this.#toggle(this.#selected, "selected", false)?.setAttribute("aria-selected", "false");
      this.#toggle(selected, "selected", true)?.setAttribute("aria-selected", "true");
      this.#selected = selected;
      if (selected !== null) {
        this.#setTabStop(this.#spans[selected] ?? null);
        this.#reveal(this.#spans[selected]);
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

  #colour(i: number): void {
    this.#spans[i]?.style.setProperty("--d", doubt(this.#metric, this.#store.step(i)).toFixed(3));
  }

  /** Lay the text out anew from step `first` on, as where a stop string took some of it away. */
  #rewrite(first: number): void {
    const [selected, marked, looked, retrieved] = [
      this.#selected,
      this.#marked,
      this.#looked,
      this.#retrieved,
    ];
    this.#flow.cut(first);
    if (!this.#tabStop?.isConnected) this.#tabStop = null;
    this.append();
    this.#flow.setMarks(this.#marks);
    this.#selected = this.#marked = this.#looked = null;
    this.#retrieved = [];
    this.setRetrieved(retrieved);
    this.select(selected, marked);
    this.selectLookUp(looked);
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
    this.#setTabStop(optionOf(target));
    if (target instanceof Element && target.matches(":focus-visible")) this.#hover(target);
  }

  #click(event: MouseEvent): void {
    const action = this.#choice(optionOf(event.target));
    // The end of a drag that selects text is a click as well.
    if (action === null || !(selectionIn(this.node)?.collapsed ?? true)) return;
    action();
  }

  /** What choosing a token or a mark does. */
  #choice(option: HTMLElement | null): (() => void) | null {
    if (option === null) return null;
    const mark = option.dataset["lookUp"];
    const index = this.#indexOf(option);
    if (mark !== undefined) return () => this.#events.onLookUp(Number(mark));
    return index === null ? null : () => this.#events.onSelect(index);
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const option = optionOf(event.target);
    if (option === null) return;
    const action = this.#keyAction(event.key, option);
    if (action === null) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  #keyAction(key: string, option: HTMLElement): (() => void) | null {
    const focus = (to: HTMLElement | null | undefined) => () => this.#focus(to ?? option);
    // A mark lies on the line of the token beside it.
    const index = () =>
      this.#indexOf(option) ??
      this.#indexOf(nextOption(option, -1)) ??
      this.#indexOf(nextOption(option, 1)) ??
      0;
    switch (key) {
      case "Enter":
      case " ":
        return this.#choice(option);
      case "Escape":
        return () => this.#events.onSelect(null);
      case "ArrowLeft":
        return focus(nextOption(option, -1));
      case "ArrowRight":
        return focus(nextOption(option, 1));
      case "ArrowUp":
        return focus(this.#spans[nearestOnNextLine(this.#spans, index(), -1)]);
      case "ArrowDown":
        return focus(this.#spans[nearestOnNextLine(this.#spans, index(), 1)]);
      case "Home":
        return focus(this.#spans[0]);
      case "End":
        return focus(this.#spans.at(-1));
      default:
        return null;
    }
  }

  #focus(option: HTMLElement): void {
    this.#reveal(option);
    option.focus({ preventScroll: true });
  }

  #setTabStop(option: HTMLElement | null): void {
    if (option === null || option === this.#tabStop) return;
    this.#tabStop?.setAttribute("tabindex", "-1");
    option.setAttribute("tabindex", "0");
    this.#tabStop = option;
  }

  /** Scroll the text, not the page, until a token or a mark is in sight. */
  #reveal(span: HTMLElement | undefined): void {
    if (span === undefined || this.node.scrollHeight <= this.node.clientHeight) return;
    const box = span.getBoundingClientRect();
    const frame = this.node.getBoundingClientRect();
    if (box.top < frame.top + 4) this.node.scrollTop -= frame.top + 4 - box.top;
    else if (box.bottom > frame.bottom - 4) this.node.scrollTop += box.bottom - frame.bottom + 4;
  }

  /**
   * Browsers turn no-break spaces into spaces and may add breaks; the copy is the answer as it was generated,
   * without what was dropped from it.
   */
  #copy(event: ClipboardEvent): void {
    const range = selectionIn(this.node);
    if (range === null || range.collapsed || event.clipboardData === null) return;
    const text = keptText(range);
    if (text !== "") event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  }
}

/** The token or mark that an event came from. */
function optionOf(target: EventTarget | null): HTMLElement | null {
  return target instanceof Element ? target.closest<HTMLElement>('[role="option"]') : null;
}

/** The nodes of the text: a span a token in paragraphs, the blanks around them, and the marks of look-ups between. */

import { h } from "./dom";
import type { RunStore } from "./store";
import { describe, makeSpan } from "./token_span";
import { layout } from "./token_text";

/** What stands in the text where something was looked up. */
export interface FlowMark {
  /** The step before which it stands. */
  at: number;
  /** Whether it brought something. */
  found: boolean;
  label: string;
}

interface Placed {
  span: HTMLElement;
  /** Blanks before and after the token's box, where there are any. */
  lead: ChildNode | null;
  tail: ChildNode | null;
  text: string;
}

export class TokenFlow {
  readonly spans: HTMLElement[] = [];
  #node: HTMLElement;
  #store: RunStore;
  #placed: Placed[] = [];
  #paragraph: HTMLElement | null = null;
  #marks: { mark: FlowMark; node: HTMLElement }[] = [];

  constructor(node: HTMLElement, store: RunStore) {
    this.#node = node;
    this.#store = store;
  }

  clear(): void {
    this.spans.length = 0;
    this.#placed = [];
    this.#paragraph = null;
    this.#marks = [];
    this.#node.replaceChildren();
  }

  /** Add the steps that the store has and the page has not; returns the first of them. */
  append(threshold: number): number {
    const first = this.spans.length;
    const fragment = document.createDocumentFragment();
    let paragraph = this.#paragraph;
    for (let i = first; i < this.#store.count; i++) {
      const step = this.#store.step(i);
      const { lead, body, tail } = layout(step);
      const span = makeSpan(step, body, threshold);
      const placed = { span, lead: blank(lead, step.kept), tail: blank(tail, step.kept), text: step.text };
      if (paragraph === null) {
        paragraph = newParagraph();
        fragment.append(paragraph);
      }
      for (const node of [placed.lead, span, placed.tail]) if (node !== null) paragraph.append(node);
      this.spans.push(span);
      this.#placed.push(placed);
      // A block of its own for each paragraph: only the last is laid out again when a token arrives.
      if (tail !== "") paragraph = null;
    }
    this.#paragraph = paragraph;
    this.#node.append(fragment);
    return first;
  }

  /** Strike a token and the blanks around it, or take the stroke away. */
  strike(i: number, kept: boolean): void {
    const placed = this.#placed[i];
    if (placed === undefined) return;
    placed.span.classList.toggle("dropped", !kept);
    placed.lead = struck(placed.lead, kept);
    placed.tail = struck(placed.tail, kept);
  }

  describe(i: number, threshold: number): void {
    this.spans[i]?.setAttribute("aria-label", describe(this.#store.step(i), threshold));
  }

  /** The first of these steps whose text is no longer the one on the page, or null. */
  rewritten(indices: readonly number[]): number | null {
    const found = indices.filter((i) => (this.#placed[i]?.text ?? "") !== this.#store.text(i));
    return found.length > 0 ? Math.min(...found) : null;
  }

  /** Take the tokens from step `first` on off the page, and all marks; `append` and `setMarks` bring them back. */
  cut(first: number): void {
    for (const { node } of this.#marks.splice(0)) node.remove();
    const last = this.#placed[first - 1];
    for (const { span, lead, tail } of this.#placed.splice(first))
      for (const node of [lead, span, tail]) node?.remove();
    this.spans.length = first;
    for (const paragraph of [...this.#node.children]) if (paragraph.firstChild === null) paragraph.remove();
    this.#paragraph = last === undefined || last.tail !== null ? null : last.span.parentElement;
  }

  /** Show these marks, in order; those that are there already stay the same elements. */
  setMarks(marks: readonly FlowMark[]): void {
    const same = this.#marks.every(({ mark }, k) => mark.at === marks[k]?.at);
    if (!same) for (const { node } of this.#marks.splice(0)) node.remove();
    marks.forEach((mark, k) => {
      const shown = this.#marks[k];
      const node = shown?.node ?? this.#insert(markNode(k), mark.at);
      node.setAttribute("aria-label", mark.label);
      node.classList.toggle("vain", !mark.found);
      if (shown === undefined) this.#marks.push({ mark, node });
    });
  }

  mark(k: number): HTMLElement | undefined {
    return this.#marks[k]?.node;
  }

  #insert(node: HTMLElement, at: number): HTMLElement {
    const next = this.#placed[at];
    if (next !== undefined) {
      (next.lead ?? next.span).before(node);
      return node;
    }
    if (this.#paragraph === null) {
      this.#paragraph = newParagraph();
      this.#node.append(this.#paragraph);
    }
    this.#paragraph.append(node);
    return node;
  }
}

/** The option before (-1) or after (1) a token or a mark, in reading order; null at the ends. */
export function nextOption(from: Element, direction: -1 | 1): HTMLElement | null {
  const sibling = (node: Element) => (direction > 0 ? node.nextElementSibling : node.previousElementSibling);
  let node: Element | null = from;
  while (node !== null) {
    let next: Element | null = sibling(node);
    if (next === null) {
      const paragraph: Element | null = node.parentElement === null ? null : sibling(node.parentElement);
      next = (direction > 0 ? paragraph?.firstElementChild : paragraph?.lastElementChild) ?? null;
    }
    if (next instanceof HTMLElement && next.getAttribute("role") === "option") return next;
    node = next;
  }
  return null;
}

function newParagraph(): HTMLElement {
  return h("div", { class: "paragraph", role: "presentation" });
}

/** The number is no text, so that it is not copied with the answer. */
function markNode(k: number): HTMLElement {
  return h("span", {
    class: "look-up-mark",
    "data-testid": "look-up-mark",
    "data-look-up": k,
    "data-sign": k + 1,
    role: "option",
    tabindex: -1,
    "aria-selected": "false",
  });
}

function blank(text: string, kept: boolean): ChildNode | null {
  if (text === "") return null;
  return kept ? document.createTextNode(text) : h("span", { class: "gap dropped" }, text);
}

function struck(node: ChildNode | null, kept: boolean): ChildNode | null {
  if (node === null || node instanceof Text === kept) return node;
  const other = blank(node.textContent ?? "", kept);
  if (other !== null) node.replaceWith(other);
  return other;
}

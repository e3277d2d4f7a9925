/** The element of one token. */

import { h } from "./dom";
import * as format from "./format";
import type { Step } from "./store";
import { BREAK, boxKind, type Piece, turnsDirection } from "./token_text";

/** What a screen reader says of a token. */
export function describe(step: Step, threshold: number): string {
  const text = step.text === "" || step.special ? step.label : step.text;
  const words = [`token ${step.index} "${text.trim() || format.visible(text)}"`];
  if (Number.isFinite(step.prob)) words.push(`probability ${format.prob(step.prob)}`, `rank ${step.rank}`);
  if (step.maxProb < threshold) words.push("below threshold");
  if (step.special) words.push("control token");
  if (step.incomplete) words.push("part of a character");
  if (step.forced) words.push("put there, not drawn");
  if (step.retrieved) words.push("from a passage");
  if (!step.kept) words.push("rolled back");
  if (step.branched) words.push("the branch begins here");
  return words.join(", ");
}

export function makeSpan(step: Step, body: readonly Piece[], threshold: number): HTMLElement {
  const span = h("span", {
    class: "token",
    "data-testid": "token",
    "data-index": step.index,
    role: "option",
    tabindex: -1,
    "aria-selected": "false",
    "aria-label": describe(step, threshold),
  });
  const box = boxKind(step);
  if (box !== null) {
    span.classList.add("boxed", box);
    span.dataset["sign"] = format.visible(step.label);
  }
  for (const piece of body) span.append(...pieceNodes(piece));
  if (turnsDirection(step.text)) span.classList.add("isolated");
  if (step.rank > 1) span.classList.add("alternative");
  if (step.maxProb < threshold) span.classList.add("low");
  if (step.forced) span.classList.add("forced");
  if (step.retrieved) span.classList.add("retrieved");
  if (!step.kept) span.classList.add("dropped");
  if (step.branched) span.classList.add("branched");
  return span;
}

function pieceNodes({ text, sign }: Piece): Node[] {
  if (sign === "") return [document.createTextNode(text)];
  const mark = h("i", {
    class: sign === BREAK ? "sign break" : "sign",
    "data-sign": sign,
    "aria-hidden": "true",
  });
  if (text === "") return [mark];
  // A hidden character keeps its place in the text (and in a copy) but takes no room of its own.
  return [mark, /[\r\n]/.test(text) ? document.createTextNode(text) : h("span", { class: "unseen" }, text)];
}

/** The token nearest to this one on the line before (-1) or after (1); itself if there is none. */
export function nearestOnNextLine(spans: readonly Element[], index: number, direction: -1 | 1): number {
  const from = spans[index]?.getBoundingClientRect();
  if (from === undefined) return index;
  const middle = (box: DOMRect) => box.left + box.width / 2;
  let line: number | null = null;
  let best = { index, distance: Number.POSITIVE_INFINITY };
  for (let i = index + direction; i >= 0 && i < spans.length; i += direction) {
    const to = spans[i]?.getBoundingClientRect();
    if (to === undefined || Math.abs(to.bottom - from.bottom) < from.height / 2) continue;
    if (line !== null && Math.abs(to.bottom - line) > from.height / 2) break;
    line = to.bottom;
    const distance = Math.abs(middle(to) - middle(from));
    if (distance < best.distance) best = { index: i, distance };
  }
  return best.index;
}

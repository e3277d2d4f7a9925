/** How a token's text is laid out in prose. Pure. */

import { codePoint } from "./format";
import type { Step } from "./store";

/**
 * A token's text in three: `lead` is set before the token's box and `tail` after it, so that colour and
 * outlines cover the word alone, also where the line wraps between a space and its word.
 */
export interface Layout {
  lead: string;
  body: Piece[];
  tail: string;
}

/** A piece of text, and the sign that stands before it because it cannot be seen itself. */
export interface Piece {
  text: string;
  sign: string;
}

/** The sign of a line break. */
export const BREAK = "⏎";

const PARTS = /^([ \t]*)([\s\S]*?)((?:\r?\n|\r)*)$/;
// Joiners (U+200C, U+200D) stay unmarked: words and emoji are made with them.
const HIDDEN = /\r?\n|(?!\t)[\p{Zl}\p{Zp}\p{Cc}\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu;
const OVERRIDES = /[\u202a-\u202e\u2066-\u2069]/u;

export function layout({ text, special }: Pick<Step, "text" | "special">): Layout {
  // All that a control token may add is the sign for a character that it broke off; its box is its label.
  if (special) return { lead: text, body: [], tail: "" };
  const [, lead = "", middle = "", tail = ""] = PARTS.exec(text) ?? [];
  if (middle === "" && tail === "") return { lead: "", body: pieces(lead), tail: "" };
  const breaks = tail.match(/\r?\n|\r/g) ?? [];
  return { lead, body: [...pieces(middle), ...breaks.map(() => ({ text: "", sign: BREAK }))], tail };
}

function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), sign: "" });
    found.push({ text: match[0], sign: /[\r\n]/.test(match[0]) ? BREAK : codePoint(match[0]) });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), sign: "" });
  return found;
}

/** Whether a token would turn the direction of the text after it; it is kept to itself. */
export function turnsDirection(text: string): boolean {
  return OVERRIDES.test(text);
}

/** Why a token is shown as a boxed label: it is a control token, or it added no text. */
export function boxKind(step: Step): "special" | "bytes" | "cut" | null {
  if (step.special) return "special";
  if (step.text !== "") return null;
  return step.incomplete ? "bytes" : "cut";
}

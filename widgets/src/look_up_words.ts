/** A look-up in words: where, what came of it, and what it cost. Pure. */

import * as format from "./format";
import { type Places, stepBefore } from "./places";
import type { LookUpRow, ShownHit } from "./retrieval_protocol";

/** As much of the text before a look-up as its title quotes, in characters. */
const QUOTE = 48;

/** Where the text stood: `at token 5, after “The capital of Belize is”`. `text` gives a step's text. */
export function whereMade(row: LookUpRow, places: Places, text: (step: number) => string): string {
  if (row.upfront) return "before the answer";
  const before = textBefore(row, places, text);
  return before === "" ? `at token ${row.keep}` : `at token ${row.keep}, after “${before}”`;
}

/** The end of the text that the answer had up to where a look-up let it go on. */
function textBefore(row: LookUpRow, places: Places, text: (step: number) => string): string {
  let found = "";
  for (let place = row.keep - 1; place >= 0 && found.length <= QUOTE; place--) {
    const step = stepBefore(places, row.at, place);
    if (step === null) break;
    found = text(step) + found;
  }
  const plain = found.replace(/\s+/gu, " ").trim();
  if (plain.length <= QUOTE) return plain;
  // From the start of a word on, and never from within a character.
  const cut = Array.from(plain).slice(-QUOTE).join("");
  return `…${cut.slice(cut.indexOf(" ") + 1)}`;
}

/** What came of it, in a few words. */
export function outcomeText({ outcome, hits, note }: LookUpRow): string {
  const added = hits.filter((hit) => hit.added).length;
  switch (outcome) {
    case "found":
      return added < hits.length
        ? `${format.plural(hits.length, "passage")}, ${format.count(added)} of them new in the prompt`
        : format.plural(hits.length, "passage");
    case "nothing":
      return joined(hits.length > 0 ? "nothing new" : "nothing", note, "the text went on");
    case "failed":
      return joined(note || "the look-up failed", "the text went on");
    case "timeout":
      return joined(note || "no answer in time", "the text went on");
  }
}

/** What became of a passage that did not enter the prompt: it was there, or there was no room for it. */
export function whyNotAdded(hit: ShownHit, earlier: readonly LookUpRow[]): string {
  const known = earlier.some(({ hits }) => hits.some(({ id, added }) => added && id === hit.id));
  return known ? "was in the prompt already" : "did not enter the prompt";
}

/** What it cost, in words: what was given up, read and waited for. */
export function costText(row: LookUpRow): string[] {
  const words: string[] = [];
  if (row.dropped > 0) words.push(`dropped ${format.plural(row.dropped, "token")}`);
  if (row.prefill_tokens !== null) words.push(`read ${format.plural(row.prefill_tokens, "token")}`);
  if (row.reused_tokens !== null) words.push(`re-used ${format.count(row.reused_tokens)}`);
  if (row.ms !== null) words.push(`look-up ${duration(row.ms)}`);
  if (row.prefill_ms !== null) words.push(`reading ${duration(row.prefill_ms)}`);
  return words;
}

/** Milliseconds as people say them. */
export function duration(ms: number): string {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : format.seconds(ms / 1000);
}

function joined(...parts: string[]): string {
  return parts.filter((part) => part !== "").join("; ");
}

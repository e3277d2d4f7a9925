/** A passage that was found, with the words that the answer took over marked; a long one opens on demand. */

import { h } from "./dom";
import type { ShownHit } from "./retrieval_protocol";

/** Longer passages, in characters, are shown in part. */
const SHORT = 240;
/** How much of it is shown before the first word that was used. */
const BEFORE = 60;

export interface Stretch {
  text: string;
  used: boolean;
}

/** The part of a text to show while it is closed, as [start, end] in code points. */
export function excerpt(length: number, used: readonly (readonly [number, number])[]): [number, number] {
  if (length <= SHORT) return [0, length];
  const first = Math.min(length, ...used.map(([start]) => start));
  const start = first < length && first > SHORT - BEFORE ? Math.min(first - BEFORE, length - SHORT) : 0;
  return [start, start + SHORT];
}

/** A part of a text in stretches that were used and others. Ranges may overlap or reach beyond the end. */
export function stretches(
  characters: readonly string[],
  used: readonly (readonly [number, number])[],
  [start, end]: readonly [number, number],
): Stretch[] {
  const found: Stretch[] = [];
  for (let i = start; i < end; i++) {
    const inside = used.some(([first, last]) => i >= first && i < last);
    const stretch = found.at(-1);
    if (stretch !== undefined && stretch.used === inside) stretch.text += characters[i] ?? "";
    else found.push({ text: characters[i] ?? "", used: inside });
  }
  return found;
}

/** The passage's text; `open` shows all of it. A button that toggles it comes with a long one. */
export function passageText({ text, used }: ShownHit, open: boolean): (Node | null)[] {
  // Ranges count characters; JavaScript's own index counts halves of some.
  const characters = Array.from(text);
  const whole: [number, number] = [0, characters.length];
  const shown = open ? whole : excerpt(characters.length, used);
  const body = h("bdi", { class: "passage-text" });
  if (shown[0] > 0) body.append("… ");
  for (const { text: part, used: taken } of stretches(characters, used, shown))
    body.append(taken ? h("mark", {}, part) : part);
  if (shown[1] < characters.length) body.append(" …");
  const long = characters.length > SHORT;
  return [body, long ? toggle(open, characters.length) : null];
}

function toggle(open: boolean, length: number): HTMLElement {
  const words = open ? "show less" : `show all ${length.toLocaleString("en-US")} characters`;
  return h(
    "button",
    { type: "button", class: "link", "data-action": "open", "aria-expanded": String(open) },
    words,
  );
}

/** Where it is from, and the retriever's score for it. */
export function sourceText({ title, source, id, score }: ShownHit): string {
  const where = [title, source].filter((part) => part !== "");
  const named = where.length > 0 ? where : [id];
  return [...named, score === null ? "" : `score ${score.toFixed(2)}`]
    .filter((part) => part !== "")
    .join(" · ");
}

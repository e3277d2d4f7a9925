/** The draw: the distribution that was sampled from as one bar, likeliest first, and where u fell. */

import { h } from "./dom";
import * as format from "./format";
import type { Candidate, Step } from "./store";

export interface Segment {
  label: string;
  start: number;
  width: number;
  kind: "candidate" | "chosen" | "others";
}

/**
 * The bar's segments, from 0 to 1. A chosen token that is not among the likeliest recorded ones has
 * others before it, of a mass that was not recorded; it is put where u says that it lies.
 */
export function drawSegments(candidates: readonly Candidate[], step: Step): Segment[] {
  const drawn = candidates.filter((c) => c.processed > 0).sort((a, b) => b.processed - a.processed);
  const apart = drawn.find((c) => c.chosen && candidates[c.rank - 1] !== c);
  const segments: Segment[] = [];
  let sum = 0;
  const add = (label: string, width: number, kind: Segment["kind"]) => {
    if (width <= 0) return;
    segments.push({ label, start: sum, width, kind });
    sum += width;
  };
  for (const c of drawn)
    if (c !== apart) add(format.visible(c.label), c.processed, c.chosen ? "chosen" : "candidate");
  let rest = Number.isFinite(step.processedRestMass) ? Math.max(0, step.processedRestMass) : 0;
  if (apart !== undefined) {
    const before = Math.min(rest, Math.max(0, step.draw - sum - apart.processed / 2));
    add("others", before, "others");
    add(format.visible(apart.label), apart.processed, "chosen");
    rest -= before;
  }
  // What float32 leaves over is no segment.
  if (rest > 1e-6) add("others", rest, "others");
  return segments;
}

/** Whether u decided; at temperature 0 it is recorded all the same, so that runs share their draws. */
export function isDrawn(step: Step, greedy: boolean): boolean {
  return !greedy && !step.forced && Number.isFinite(step.draw);
}

/** How the token came to be, in words. */
export function drawSentence(step: Step, greedy: boolean): string {
  if (step.forced) return "put there by the caller, not drawn";
  if (greedy) return "temperature 0: the likeliest token is taken";
  return isDrawn(step, greedy) ? `draw u = ${step.draw.toFixed(4)}` : "no draw was recorded";
}

export function drawBar(candidates: readonly Candidate[], step: Step, greedy: boolean): HTMLElement {
  const bar = h("div", { class: "draw-bar", "aria-hidden": "true" });
  for (const { label, start, width, kind } of drawSegments(candidates, step)) {
    const title = `${label} ${format.prob(width)}`;
    const segment = h("span", { class: `segment ${kind}`, title }, width > 0.12 ? label : null);
    segment.style.left = `${100 * start}%`;
    segment.style.width = `${100 * width}%`;
    bar.append(segment);
  }
  if (isDrawn(step, greedy)) {
    const mark = h("span", { class: "draw-mark" });
    mark.style.left = `${100 * step.draw}%`;
    bar.append(mark);
  }
  const ends = h("div", { class: "draw-ends" }, h("span", {}, "0"), h("span", {}, "1"));
  ends.firstChild?.after(h("span", {}, drawSentence(step, greedy)));
  return h("div", { class: "draw" }, bar, ends);
}

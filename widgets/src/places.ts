/**
 * Where the steps of a run stand in its answer. A run that goes back decodes some places more than once:
 * a dropped step and the one that was written over it have the same place. Pure.
 */

import { FLAGS } from "./protocol";

/** A look-up: where it found something, the text went on with step `at`, behind the `keep` tokens that stayed. */
export interface Rewind {
  at: number;
  keep: number;
  outcome: string;
}

export interface Places {
  /** Place of each step, from 0; without rollbacks its index. */
  of: number[];
  /** The step that stands at each place. */
  kept: number[];
  /** Stretches of dropped steps that were written in one go, as [first, one past the last]. */
  drafts: [number, number][];
  /** How many places there are. */
  count: number;
}

/**
 * Kept steps are counted. A dropped one stands after the step before it, except that the text had gone back
 * in between (`rewinds`), as when a second attempt was dropped as well.
 */
export function placesOf(flags: ArrayLike<number>, rewinds: readonly Rewind[] = []): Places {
  const back = new Map<number, number>();
  for (const { at, keep, outcome } of rewinds) if (outcome === "found") back.set(at, keep);
  const places: Places = { of: [], kept: [], drafts: [], count: 0 };
  let next = 0;
  for (let i = 0; i < flags.length; i++) {
    next = Math.min(next, back.get(i) ?? next);
    const kept = ((flags[i] ?? 0) & FLAGS.kept) !== 0;
    if (kept) {
      next = places.kept.length;
      places.kept.push(i);
    } else extend(places.drafts, i, back.has(i));
    places.of.push(next);
    next++;
    places.count = Math.max(places.count, next);
  }
  return places;
}

function extend(drafts: [number, number][], i: number, anew: boolean): void {
  const last = drafts.at(-1);
  if (last !== undefined && last[1] === i && !anew) last[1] = i + 1;
  else drafts.push([i, i + 1]);
}

/** Place before which something happened just before step `at`. */
export function placeAt(places: Places, at: number): number {
  return places.of[at] ?? places.kept.length;
}

/** The step that stood at a place before step `at`, or null. */
export function stepBefore(places: Places, at: number, place: number): number | null {
  for (let i = Math.min(at, places.of.length) - 1; i >= 0; i--) if (places.of[i] === place) return i;
  return null;
}

/** Where things lie in the plot: probability upwards, tokens to the right. Pure. */

/** The plot's area in CSS pixels, without the room for labels. */
export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Scale {
  frame: Frame;
  /** How many tokens the width stands for. */
  domain: number;
}

const MARGIN = { left: 34, right: 62, top: 8, bottom: 20 };

/** `foot` is room for marks under the numbers of the axis. */
export function frameOf(width: number, height: number, foot = 0): Frame {
  return {
    left: MARGIN.left,
    right: Math.max(MARGIN.left + 40, width - MARGIN.right),
    top: MARGIN.top,
    bottom: Math.max(MARGIN.top + 40, height - MARGIN.bottom - foot),
  };
}

/** Room for the tokens: all of it once a run has ended, in steps while it grows, so that points rest. */
export function domainOf(count: number, live: boolean): number {
  if (!live) return Math.max(count, 2);
  let room = 32;
  while (room < count) room *= room % 3 === 0 ? 4 / 3 : 3 / 2;
  return room;
}

/** Pixels between two tokens. */
export function stride({ frame, domain }: Scale): number {
  return (frame.right - frame.left) / domain;
}

/** The middle of a token's stretch of the axis. */
export function xOf(index: number, scale: Scale): number {
  return scale.frame.left + (index + 0.5) * stride(scale);
}

export function yOf(value: number, { top, bottom }: Frame): number {
  return bottom - value * (bottom - top);
}

export function indexAt(x: number, scale: Scale, count: number): number | null {
  if (count === 0) return null;
  return Math.min(count - 1, Math.max(0, Math.floor((x - scale.frame.left) / stride(scale))));
}

/** The value at a height, between 0 and 1, in hundredths. */
export function valueAt(y: number, { top, bottom }: Frame): number {
  return clampValue((bottom - y) / (bottom - top));
}

/** A value of the threshold: between 0 and 1, in hundredths. */
export function clampValue(value: number): number {
  return Math.round(Math.min(1, Math.max(0, value)) * 100) / 100;
}

/**
 * The curve as path data. Where several tokens share a pixel it goes through the least and the greatest of
 * them, so that no dip is lost and the path's length is bounded by the width. NaN leaves a hole.
 */
export function curvePath(values: ArrayLike<number>, scale: Scale): string {
  const perPixel = 1 / stride(scale);
  return perPixel > 1.5 ? densePath(values, scale, perPixel) : sparsePath(values, scale);
}

function sparsePath(values: ArrayLike<number>, scale: Scale): string {
  let path = "";
  let pen = false;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value)) {
      pen = false;
      continue;
    }
    path += `${pen ? "L" : "M"}${px(xOf(i, scale))} ${px(yOf(value, scale.frame))}`;
    pen = true;
  }
  return path;
}

function densePath(values: ArrayLike<number>, scale: Scale, perPixel: number): string {
  let path = "";
  for (let start = 0; start < values.length; start += perPixel) {
    const end = Math.min(values.length, Math.floor(start + perPixel));
    let least = Number.POSITIVE_INFINITY;
    let greatest = Number.NEGATIVE_INFINITY;
    for (let i = Math.floor(start); i < end; i++) {
      const value = values[i] ?? Number.NaN;
      if (value < least) least = value;
      if (value > greatest) greatest = value;
    }
    if (least > greatest) continue;
    const x = px(xOf(start, scale));
    path += `${path === "" ? "M" : "L"}${x} ${px(yOf(greatest, scale.frame))}L${x} ${px(yOf(least, scale.frame))}`;
  }
  return path;
}

/** Points as path data for a round pen: one subpath of no length each. */
export function dotsPath(
  values: ArrayLike<number>,
  scale: Scale,
  wanted: (value: number) => boolean,
): string {
  let path = "";
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (!Number.isNaN(value) && wanted(value))
      path += `M${px(xOf(i, scale))} ${px(yOf(value, scale.frame))}h0`;
  }
  return path;
}

/** Stretches of tokens as one path of rectangles over the full height. */
export function shadePath(runs: readonly (readonly [number, number])[], scale: Scale): string {
  const { left, top, bottom } = scale.frame;
  const step = stride(scale);
  return runs
    .map(([first, end]) => {
      const x = left + first * step;
      return `M${px(x)} ${px(top)}h${px(Math.max(1, (end - first) * step))}V${px(bottom)}H${px(x)}z`;
    })
    .join("");
}

/** Token numbers to write under the axis, a round step apart and at least `gap` pixels. */
export function ticks(scale: Scale, gap = 56): number[] {
  const least = gap / stride(scale);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least) ?? 10 * power);
  const found: number[] = [];
  for (let i = 0; i < scale.domain; i += step) found.push(i);
  return found;
}

function px(value: number): string {
  return String(Math.round(value * 10) / 10);
}

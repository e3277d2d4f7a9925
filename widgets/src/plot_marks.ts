/** What look-ups leave in the plot: dropped drafts and the places that they took, the steps in doubt, and a triangle under the axis for each. */

import { setAttributes, svg } from "./dom";
import { type Places, placeAt, type Rewind, stepBefore } from "./places";
import { type Scale, shadePath, stride, xOf, yOf } from "./plot_geometry";

/** A look-up as the plot needs it. */
export interface MadeMark extends Rewind {
  trigger_steps: readonly number[];
  upfront: boolean;
}

/** One that was not made: what a policy would do. */
export interface SupposedMark {
  at: number;
  trigger_steps: readonly number[];
}

export interface Marks {
  made: readonly MadeMark[];
  supposed: readonly SupposedMark[];
  /** The look-up that is chosen. */
  selected: number | null;
}

export const NO_MARKS: Marks = { made: [], supposed: [], selected: null };

/** Room that two rows of triangles take under the numbers of the axis. */
export const MARKS_FOOT = 30;
const MADE_ROW = 31;
const SUPPOSED_ROW = 45;
/** A triangle, and a digit of its number. */
const TRIANGLE = 9;
const DIGIT = 6.5;

/** What is drawn at the moment. */
export interface Drawn {
  /** By step, dropped ones too. */
  values: ArrayLike<number>;
  places: Places;
  scale: Scale;
}

export class PlotMarks {
  /** To be laid under and over the curve of what was kept. */
  readonly under = svg("g", { class: "marks-under" });
  readonly over = svg("g", { class: "marks-over" });
  #bands = svg("path", { class: "shade" });
  #drafts = svg("path", { class: "draft-line" });
  #draftDots = svg("path", { class: "dots draft" });
  #doubts = svg("path", { class: "dots trigger" });
  #rings = svg("path", { class: "dots ring" });
  #ringHoles = svg("path", { class: "dots hole" });
  #chosen = svg("line", { class: "chosen-line", visibility: "hidden" });
  #rows = svg("g", { class: "mark-rows", "aria-hidden": "true" });
  #last: Picture | null = null;
  #rowsKey = "";

  constructor() {
    this.under.append(this.#bands, this.#chosen, this.#drafts, this.#draftDots);
    this.over.append(this.#rings, this.#ringHoles, this.#doubts, this.#rows);
  }

  /** The look-up whose triangle an event came from, or null. */
  lookUpOf(target: EventTarget | null): number | null {
    const mark = target instanceof Element ? target.closest<SVGElement>("[data-look-up]") : null;
    return mark === null ? null : Number(mark.dataset["lookUp"]);
  }

  draw(drawn: Drawn, marks: Marks): void {
    // A drag of the threshold moves none of it.
    if (this.#last !== null && isSame(this.#last, { drawn, marks })) return;
    this.#last = { drawn, marks };
    const { scale, places } = drawn;
    const { made, supposed, selected } = marks;
    const bands = places.drafts.map(([first, end]): [number, number] => {
      const place = places.of[first] ?? 0;
      return [place, place + end - first];
    });
    setAttributes(this.#bands, { d: shadePath(bands, scale) });
    setAttributes(this.#drafts, { d: draftPath(drawn) });
    const drafts = places.drafts.flatMap(([first, end]) => range(first, end));
    const crowded = stride(scale) < 4;
    setAttributes(this.#draftDots, { d: crowded ? "" : stepDots(drafts, drawn) });
    const triggers = (marks: readonly SupposedMark[]) => [
      ...new Set(marks.flatMap(({ trigger_steps }) => trigger_steps)),
    ];
    const size = crowded ? " crowded" : "";
    setAttributes(this.#doubts, { d: stepDots(triggers(made), drawn), class: `dots trigger${size}` });
    const rings = stepDots(triggers(supposed), drawn);
    setAttributes(this.#rings, { d: rings });
    setAttributes(this.#ringHoles, { d: rings });
    this.#drawRows(drawn, made, supposed, selected);
  }

  #drawRows(
    { scale, places }: Drawn,
    made: readonly MadeMark[],
    supposed: readonly SupposedMark[],
    selected: number | null,
  ): void {
    const { right, top, bottom } = scale.frame;
    const xs = made.map((mark) => markX(mark, places, scale));
    const x = selected === null ? undefined : xs[selected];
    setAttributes(this.#chosen, { visibility: x === undefined ? "hidden" : "visible" });
    if (x !== undefined) setAttributes(this.#chosen, { x1: x, x2: x, y1: top, y2: bottom });
    const triangles = labelled(xs, selected).map(({ index, text }) => {
      const at = xs[index] ?? 0;
      const chosen = index === selected;
      // At the right edge the number of the chosen one goes before its triangle, clear of the row's name.
      const edge = text.length > 1 && at + triangleWidth(index) > right + 4;
      const shown = edge ? (chosen ? `${index + 1}▲` : "▲") : text;
      return { index, at, chosen, turned: edge && chosen, shown };
    });
    const suppositions = supposed.map((mark) => markX({ ...mark, upfront: false }, places, scale));
    // What a press began on must still be there when it ends, also while tokens come.
    const key = JSON.stringify([triangles, suppositions, right, bottom]);
    if (key === this.#rowsKey) return;
    this.#rowsKey = key;
    const name = (text: string, row: number) =>
      svg("text", { x: right + 8, y: bottom + row, class: "unit" }, text);
    this.#rows.replaceChildren(
      ...triangles.map((mark) => triangle(mark, bottom + MADE_ROW)),
      ...(made.length > 0 ? [name("looked up", MADE_ROW)] : []),
      ...suppositions.map((x) =>
        svg("text", { class: "supposed", "text-anchor": "middle", x, y: bottom + SUPPOSED_ROW }, "△"),
      ),
      ...(supposed.length > 0 ? [name("would have", SUPPOSED_ROW)] : []),
    );
  }
}

interface Triangle {
  index: number;
  at: number;
  chosen: boolean;
  /** Its number stands before it. */
  turned: boolean;
  shown: string;
}

function triangle({ index, at, chosen, turned, shown }: Triangle, y: number): SVGTextElement {
  const name = `made${chosen ? " selected" : ""}${turned ? " last" : ""}`;
  const x = turned ? at + TRIANGLE / 2 : at - TRIANGLE / 2;
  return svg("text", { class: name, "data-look-up": index, x, y }, shown);
}

type Picture = { drawn: Drawn; marks: Marks };

function isSame(a: Picture, b: Picture): boolean {
  const { frame, domain } = a.drawn.scale;
  const { frame: other, domain: otherDomain } = b.drawn.scale;
  return (
    a.drawn.values === b.drawn.values &&
    a.drawn.places === b.drawn.places &&
    domain === otherDomain &&
    frame.right === other.right &&
    frame.bottom === other.bottom &&
    a.marks.made === b.marks.made &&
    a.marks.supposed === b.marks.supposed &&
    a.marks.selected === b.marks.selected
  );
}

/** A look-up stands at the place where the text went on; one before the answer at the edge. */
function markX({ at, upfront }: { at: number; upfront: boolean }, places: Places, scale: Scale): number {
  return upfront ? scale.frame.left : xOf(placeAt(places, at), scale);
}

/**
 * The triangles in the order in which they are drawn, each with its number where the one before leaves room
 * for it; the chosen one comes last, always with its number.
 */
export function labelled(xs: readonly number[], selected: number | null): { index: number; text: string }[] {
  const order = xs.map((x, index) => ({ x, index })).sort((a, b) => a.x - b.x || a.index - b.index);
  const chosen = selected === null ? undefined : xs[selected];
  const shown: { index: number; text: string }[] = [];
  let free = Number.NEGATIVE_INFINITY;
  order.forEach(({ x, index }, k) => {
    if (index === selected) return;
    const next = order[k + 1]?.x ?? Number.POSITIVE_INFINITY;
    const covered = chosen !== undefined && Math.abs(chosen - x) < TRIANGLE + 2 * DIGIT;
    const room = x >= free && next - x >= triangleWidth(index) && !covered;
    shown.push({ index, text: room ? `▲${index + 1}` : "▲" });
    if (room) free = x + triangleWidth(index);
  });
  if (selected !== null && chosen !== undefined) shown.push({ index: selected, text: `▲${selected + 1}` });
  return shown;
}

/** Pixels that a triangle takes with its number. */
function triangleWidth(index: number): number {
  return TRIANGLE + DIGIT * String(index + 1).length;
}

/** Each draft as a line that leaves the curve where the text was given up later. */
function draftPath({ places, values, scale }: Drawn): string {
  let path = "";
  for (const [first, end] of places.drafts) {
    const place = places.of[first] ?? 0;
    const before = place > 0 ? stepBefore(places, first, place - 1) : null;
    let pen = false;
    for (const i of [...(before === null ? [] : [before]), ...range(first, end)]) {
      const value = values[i] ?? Number.NaN;
      if (Number.isNaN(value)) pen = false;
      else {
        path += `${pen ? "L" : "M"}${point(i, value, places, scale)}`;
        pen = true;
      }
    }
  }
  return path;
}

function stepDots(steps: readonly number[], { values, places, scale }: Drawn): string {
  let path = "";
  for (const i of steps) {
    const value = values[i] ?? Number.NaN;
    if (!Number.isNaN(value)) path += `M${point(i, value, places, scale)}h0`;
  }
  return path;
}

function point(i: number, value: number, places: Places, scale: Scale): string {
  const round = (pixels: number) => Math.round(pixels * 10) / 10;
  return `${round(xOf(places.of[i] ?? i, scale))} ${round(yOf(value, scale.frame))}`;
}

function range(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, k) => first + k);
}

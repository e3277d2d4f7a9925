/** The raw max probability of every token, on the token axis, with the threshold as a line that is dragged. */

import { h, setAttributes, svg } from "./dom";
import { lowRuns } from "./metrics";
import { type Places, placeAt, placesOf } from "./places";
import {
  curvePath,
  domainOf,
  dotsPath,
  frameOf,
  indexAt,
  type Scale,
  shadePath,
  stride,
  ticks,
  xOf,
  yOf,
} from "./plot_geometry";
import { MARKS_FOOT, type Marks, NO_MARKS, PlotMarks } from "./plot_marks";
import { ThresholdLine } from "./threshold";

export interface PlotEvents {
  onSelect(index: number): void;
  onHover(index: number | null, anchor: Element | null): void;
  onLookUp(index: number): void;
  /** `done` when the hand has let go. */
  onThreshold(value: number, done: boolean): void;
}

/** What is drawn: one value and the flags of each step, and whether more may come. */
export interface PlotData {
  values: Float64Array;
  flags: ArrayLike<number>;
  live: boolean;
  /** Tokens before this one were taken over from another run. */
  branchedAt: number;
}

export interface PlotOptions {
  /** Draw where something was looked up, with room under the axis, in place of the stretches below the threshold. */
  marks: boolean;
}

const NOTHING: PlotData = { values: new Float64Array(0), flags: [], live: false, branchedAt: 0 };
const DEFAULT_SIZE = { width: 640, height: 200 };
const Y_TICKS = [0, 0.25, 0.5, 0.75, 1];
const DOTS_FROM = 4;

export class Plot {
  readonly node: HTMLElement;
  #events: PlotEvents;
  #svg = svg("svg", { role: "group", "aria-label": "raw max probability by token" });
  #grid = svg("g", { class: "grid" });
  #axis = svg("g", { class: "axis" });
  #shade = svg("path", { class: "shade" });
  #curve = svg("path", { class: "curve" });
  #dots = svg("path", { class: "dots" });
  #lowDots = svg("path", { class: "dots low" });
  #branchLine = svg("line", { class: "branch-line", visibility: "hidden" });
  #hoverLine = svg("line", { class: "hover-line", visibility: "hidden" });
  #hoverDot = svg("circle", { class: "hover-dot", r: 3.5, visibility: "hidden" });
  #selection = svg("g", { class: "selection" });
  #line: ThresholdLine;
  #marksLayer = new PlotMarks();
  #options: PlotOptions;
  #data = NOTHING;
  #places: Places = placesOf([]);
  /** The values of the steps that stand, by place. */
  #kept: Float64Array = NOTHING.values;
  #marks: Marks = NO_MARKS;
  #selected: number | null = null;
  #firm = false;
  #size = DEFAULT_SIZE;
  #scale: Scale = { frame: frameOf(DEFAULT_SIZE.width, DEFAULT_SIZE.height), domain: 2 };

  constructor(events: PlotEvents, signal: AbortSignal, options: PlotOptions = { marks: false }) {
    this.#events = events;
    this.#options = options;
    this.#line = new ThresholdLine(
      {
        onThreshold: events.onThreshold,
        toFrame: (event) => this.#point(event).y,
        frame: () => this.#scale.frame,
      },
      signal,
    );
    this.#svg.append(
      this.#grid,
      this.#shade,
      this.#marksLayer.under,
      this.#branchLine,
      this.#axis,
      this.#curve,
      this.#dots,
      this.#lowDots,
      this.#marksLayer.over,
      this.#selection,
      this.#hoverLine,
      this.#hoverDot,
      this.#line.node,
    );
    const by = options.marks ? " by place in the answer; dashed: dropped" : " by token";
    const title = h("div", { class: "plot-title" }, h("b", {}, "raw max probability"), by);
    const canvas = h("div", { class: "canvas" }, this.#svg);
    this.node = h("div", { class: "plot", "data-testid": "plot" }, title, canvas);
    this.#svg.addEventListener("pointermove", (event) => this.#hover(event), { signal });
    this.#svg.addEventListener("pointerleave", () => this.#leave(), { signal });
    this.#svg.addEventListener("click", (event) => this.#select(event), { signal });
    this.#watchSize(canvas, signal);
  }

  get dragging(): boolean {
    return this.#line.dragging;
  }

  /** Redraw with this data, and these marks of look-ups. */
  setData(data: PlotData, marks: Marks = NO_MARKS): void {
    this.#data = data;
    this.#marks = marks;
    this.#places = placesOf(data.flags, marks.made);
    const { kept, drafts } = this.#places;
    this.#kept =
      drafts.length === 0 ? data.values : Float64Array.from(kept, (i) => data.values[i] ?? Number.NaN);
    this.#draw();
  }

  /** Where the steps stand on the axis. */
  get places(): Places {
    return this.#places;
  }

  setThreshold(value: number, marks: Marks = NO_MARKS): void {
    const { made, supposed, selected } = this.#marks;
    const same = made === marks.made && supposed === marks.supposed && selected === marks.selected;
    if (same && value === this.#line.value) return;
    this.#line.value = value;
    this.#marks = marks;
    this.#draw();
  }

  /** `firm` when the user chose it, false while it is merely the newest. */
  select(index: number | null, firm: boolean): void {
    this.#selected = index;
    this.#firm = firm;
    this.#drawSelection();
  }

  /** Point at a token, as when the text is hovered. */
  hover(index: number | null): void {
    const value = this.#valueOf(index);
    const visibility = Number.isNaN(value) ? "hidden" : "visible";
    setAttributes(this.#hoverLine, { visibility });
    setAttributes(this.#hoverDot, { visibility });
    if (index === null || Number.isNaN(value)) return;
    const { top, bottom } = this.#scale.frame;
    const x = this.#xOf(index);
    setAttributes(this.#hoverLine, { x1: x, x2: x, y1: top, y2: bottom });
    setAttributes(this.#hoverDot, { cx: x, cy: yOf(value, this.#scale.frame) });
  }

  #watchSize(canvas: HTMLElement, signal: AbortSignal): void {
    if (typeof ResizeObserver !== "function") return;
    const observer = new ResizeObserver(([entry]) => {
      const box = entry?.contentRect;
      if (box === undefined || box.width < 1 || box.height < 1) return;
      if (box.width === this.#size.width && box.height === this.#size.height) return;
      this.#size = { width: box.width, height: box.height };
      this.#draw();
    });
    observer.observe(canvas);
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  }

  #point(event: MouseEvent): { x: number; y: number } {
    const box = this.#svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #valueOf(index: number | null): number {
    return index === null ? Number.NaN : (this.#data.values[index] ?? Number.NaN);
  }

  #xOf(index: number): number {
    return xOf(this.#places.of[index] ?? index, this.#scale);
  }

  /** The step at a point: of those that share a place the one that is nearest in height. */
  #stepAt({ x, y }: { x: number; y: number }): number | null {
    const place = indexAt(x, this.#scale, this.#places.count);
    if (place === null) return null;
    const { kept, drafts, of } = this.#places;
    let best = kept[place] ?? null;
    const height = (index: number) => Math.abs(yOf(this.#valueOf(index), this.#scale.frame) - y);
    for (const [first, end] of drafts) {
      const index = first + place - (of[first] ?? 0);
      if (index < first || index >= end) continue;
      if (best === null || height(index) < height(best)) best = index;
    }
    return best;
  }

  #hover(event: PointerEvent): void {
    const index = this.#stepAt(this.#point(event));
    if (this.#line.dragging || index === null) {
      this.#leave();
      return;
    }
    this.hover(index);
    this.#events.onHover(index, this.#hoverDot);
  }

  #leave(): void {
    this.hover(null);
    this.#events.onHover(null, null);
  }

  #select(event: MouseEvent): void {
    if (this.#line.justDragged) return;
    const lookUp = this.#marksLayer.lookUpOf(event.target);
    const index = this.#stepAt(this.#point(event));
    if (lookUp !== null) this.#events.onLookUp(lookUp);
    else if (index !== null) this.#events.onSelect(index);
  }

  #draw(): void {
    const { width, height } = this.#size;
    const values = this.#kept;
    const threshold = this.#line.value;
    const foot = this.#options.marks ? MARKS_FOOT : 0;
    this.#scale = {
      frame: frameOf(width, height, foot),
      domain: domainOf(this.#places.count, this.#data.live),
    };
    const scale = this.#scale;
    const step = stride(scale);
    setAttributes(this.#svg, { viewBox: `0 0 ${width} ${height}`, width, height });
    this.#drawAxes();
    this.#drawBranch();
    const shaded = this.#options.marks ? [] : lowRuns(values, threshold);
    setAttributes(this.#shade, { d: shadePath(shaded, scale) });
    setAttributes(this.#curve, { d: curvePath(values, scale), class: step < 1 ? "curve dense" : "curve" });
    // Where points would touch one another the curve alone is clearer; the low ones are always marked.
    setAttributes(this.#dots, { d: step < DOTS_FROM ? "" : dotsPath(values, scale, (v) => v >= threshold) });
    setAttributes(this.#lowDots, { d: dotsPath(values, scale, (v) => v < threshold) });
    this.#lowDots.style.strokeWidth = step < DOTS_FROM ? `${Math.max(2, step)}px` : "";
    const { values: all } = this.#data;
    this.#marksLayer.draw({ values: all, places: this.#places, scale }, this.#marks);
    this.#drawSelection();
    this.#line.draw(width);
  }

  #drawBranch(): void {
    const { branchedAt, values } = this.#data;
    const shown = branchedAt > 0 && branchedAt <= values.length;
    setAttributes(this.#branchLine, { visibility: shown ? "visible" : "hidden" });
    if (!shown) return;
    const { top, bottom } = this.#scale.frame;
    const x = xOf(placeAt(this.#places, branchedAt) - 0.5, this.#scale);
    setAttributes(this.#branchLine, { x1: x, x2: x, y1: top, y2: bottom });
  }

  #drawAxes(): void {
    const { left, right, bottom } = this.#scale.frame;
    this.#grid.replaceChildren(
      ...Y_TICKS.map((value) => {
        const y = yOf(value, this.#scale.frame);
        return svg("line", { x1: left, x2: right, y1: y, y2: y });
      }),
    );
    const rows = Y_TICKS.map((value) =>
      svg(
        "text",
        { x: left - 8, y: yOf(value, this.#scale.frame) + 3.5, "text-anchor": "end" },
        String(value),
      ),
    );
    const columns = ticks(this.#scale).map((index) =>
      svg("text", { x: xOf(index, this.#scale), y: bottom + 15, class: "tick" }, String(index)),
    );
    // A place may have been written more than once; then it is no longer the number of its token.
    const name = this.#places.drafts.length > 0 ? "place" : "token";
    const unit = svg("text", { x: right + 8, y: bottom + 15, class: "unit" }, name);
    this.#axis.replaceChildren(...rows, ...columns, unit);
  }

  #drawSelection(): void {
    const index = this.#selected;
    const value = this.#valueOf(index);
    this.#selection.replaceChildren();
    this.#selection.classList.toggle("firm", this.#firm);
    if (index === null || index >= this.#data.values.length) return;
    const { left, right, top, bottom } = this.#scale.frame;
    const x = this.#xOf(index);
    this.#selection.append(svg("line", { x1: x, x2: x, y1: top, y2: bottom }));
    if (!Number.isNaN(value)) {
      const low = value < this.#line.value;
      const y = yOf(value, this.#scale.frame);
      this.#selection.append(svg("circle", { cx: x, cy: y, r: 4.5, class: low ? "low" : "" }));
    }
    const place = String(this.#places.of[index] ?? index);
    const label = svg("text", { y: bottom + 15, class: "tick" }, place);
    const half = 5 + 3.5 * place.length;
    const at = Math.min(right - half, Math.max(left + half, x));
    setAttributes(label, { x: at });
    this.#selection.append(label);
    for (const tick of this.#axis.querySelectorAll(".tick"))
      setAttributes(tick, {
        visibility: Math.abs(Number(tick.getAttribute("x")) - at) < 2 * half + 6 ? "hidden" : null,
      });
  }
}

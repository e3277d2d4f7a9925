/** The raw max probability of every token, on the token axis, with the threshold as a line that is dragged. */

import { h, setAttributes, svg } from "./dom";
import { lowRuns } from "./metrics";
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
import { ThresholdLine } from "./threshold";

export interface PlotEvents {
  onSelect(index: number): void;
  onHover(index: number | null, anchor: Element | null): void;
  /** `done` when the hand has let go. */
  onThreshold(value: number, done: boolean): void;
}

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
  #values: Float64Array = new Float64Array(0);
  #live = false;
  #branchedAt = 0;
  #selected: number | null = null;
  #firm = false;
  #size = DEFAULT_SIZE;
  #scale: Scale = { frame: frameOf(DEFAULT_SIZE.width, DEFAULT_SIZE.height), domain: 2 };

  constructor(events: PlotEvents, signal: AbortSignal) {
    this.#events = events;
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
      this.#branchLine,
      this.#axis,
      this.#curve,
      this.#dots,
      this.#lowDots,
      this.#selection,
      this.#hoverLine,
      this.#hoverDot,
      this.#line.node,
    );
    const title = h("div", { class: "plot-title" }, h("b", {}, "raw max probability"), " by token");
    const canvas = h("div", { class: "canvas" }, this.#svg);
    this.node = h("div", { class: "plot", "data-testid": "plot" }, title, canvas);
    this.#svg.addEventListener("pointermove", (event) => this.#hover(event), { signal });
    this.#svg.addEventListener("pointerleave", () => this.#leave(), { signal });
    this.#svg.addEventListener("click", (event) => this.#select(this.#point(event).x), { signal });
    this.#watchSize(canvas, signal);
  }

  get dragging(): boolean {
    return this.#line.dragging;
  }

  /** Tokens before `branchedAt` were taken over from another run. */
  setData(values: Float64Array, live: boolean, branchedAt: number): void {
    this.#values = values;
    this.#live = live;
    this.#branchedAt = branchedAt;
    this.#draw();
  }

  setThreshold(value: number): void {
    this.#line.value = value;
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
    const value = index === null ? Number.NaN : (this.#values[index] ?? Number.NaN);
    const visibility = Number.isNaN(value) ? "hidden" : "visible";
    setAttributes(this.#hoverLine, { visibility });
    setAttributes(this.#hoverDot, { visibility });
    if (index === null || Number.isNaN(value)) return;
    const { top, bottom } = this.#scale.frame;
    const x = xOf(index, this.#scale);
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

  #hover(event: PointerEvent): void {
    const index = indexAt(this.#point(event).x, this.#scale, this.#values.length);
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

  #select(x: number): void {
    const index = indexAt(x, this.#scale, this.#values.length);
    if (index !== null && !this.#line.justDragged) this.#events.onSelect(index);
  }

  #draw(): void {
    const { width, height } = this.#size;
    const values = this.#values;
    const threshold = this.#line.value;
    this.#scale = { frame: frameOf(width, height), domain: domainOf(values.length, this.#live) };
    const scale = this.#scale;
    const step = stride(scale);
    setAttributes(this.#svg, { viewBox: `0 0 ${width} ${height}`, width, height });
    this.#drawAxes();
    this.#drawBranch();
    setAttributes(this.#shade, { d: shadePath(lowRuns(values, threshold), scale) });
    setAttributes(this.#curve, { d: curvePath(values, scale), class: step < 1 ? "curve dense" : "curve" });
    // Where points would touch one another the curve alone is clearer; the low ones are always marked.
    setAttributes(this.#dots, { d: step < DOTS_FROM ? "" : dotsPath(values, scale, (v) => v >= threshold) });
    setAttributes(this.#lowDots, { d: dotsPath(values, scale, (v) => v < threshold) });
    this.#lowDots.style.strokeWidth = step < DOTS_FROM ? `${Math.max(2, step)}px` : "";
    this.#drawSelection();
    this.#line.draw(width);
  }

  #drawBranch(): void {
    const shown = this.#branchedAt > 0 && this.#branchedAt <= this.#values.length;
    setAttributes(this.#branchLine, { visibility: shown ? "visible" : "hidden" });
    if (!shown) return;
    const { top, bottom } = this.#scale.frame;
    const x = xOf(this.#branchedAt - 0.5, this.#scale);
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
    const unit = svg("text", { x: right + 8, y: bottom + 15, class: "unit" }, "token");
    this.#axis.replaceChildren(...rows, ...columns, unit);
  }

  #drawSelection(): void {
    const index = this.#selected;
    const value = index === null ? Number.NaN : (this.#values[index] ?? Number.NaN);
    this.#selection.replaceChildren();
    this.#selection.classList.toggle("firm", this.#firm);
    if (index === null || index >= this.#values.length) return;
    const { left, right, top, bottom } = this.#scale.frame;
    const x = xOf(index, this.#scale);
    this.#selection.append(svg("line", { x1: x, x2: x, y1: top, y2: bottom }));
    if (!Number.isNaN(value)) {
      const low = value < this.#line.value;
      const y = yOf(value, this.#scale.frame);
      this.#selection.append(svg("circle", { cx: x, cy: y, r: 4.5, class: low ? "low" : "" }));
    }
    const label = svg("text", { y: bottom + 15, class: "tick" }, String(index));
    const half = 5 + 3.5 * String(index).length;
    const at = Math.min(right - half, Math.max(left + half, x));
    setAttributes(label, { x: at });
    this.#selection.append(label);
    for (const tick of this.#axis.querySelectorAll(".tick"))
      setAttributes(tick, {
        visibility: Math.abs(Number(tick.getAttribute("x")) - at) < 2 * half + 6 ? "hidden" : null,
      });
  }
}

/** The threshold: a dashed line across the plot that is dragged, or moved by the keyboard as a slider. */

import { setAttributes, setText, svg } from "./dom";
import { clampValue, type Frame, valueAt, yOf } from "./plot_geometry";

export interface ThresholdEvents {
  onThreshold(value: number, done: boolean): void;
  /** A pointer's height in the plot. */
  toFrame(event: PointerEvent): number;
  frame(): Frame;
}

const SLACK = 3;
const STEPS: Record<string, number> = {
  ArrowUp: 0.01,
  ArrowRight: 0.01,
  ArrowDown: -0.01,
  ArrowLeft: -0.01,
  PageUp: 0.1,
  PageDown: -0.1,
};

export class ThresholdLine {
  readonly node: SVGGElement;
  value = 0.4;
  #events: ThresholdEvents;
  #line = svg("line", { class: "line" });
  #grip = svg("rect", { class: "grip", rx: 4, width: 58, height: 30 });
  #word = svg("text", { "text-anchor": "middle" }, "threshold");
  #number = svg("text", { class: "number", "text-anchor": "middle" });
  #hit = svg("rect", { class: "hit", height: 13 });
  #pressedAt: number | null = null;
  #moved = false;

  constructor(events: ThresholdEvents, signal: AbortSignal) {
    this.#events = events;
    this.node = svg(
      "g",
      {
        class: "threshold",
        "data-testid": "threshold",
        role: "slider",
        tabindex: 0,
        "aria-label": "threshold on the raw max probability",
        "aria-orientation": "vertical",
        "aria-valuemin": 0,
        "aria-valuemax": 1,
      },
      this.#line,
      this.#hit,
      this.#grip,
      this.#word,
      this.#number,
    );
    const on = <K extends keyof SVGElementEventMap>(type: K, listener: (e: SVGElementEventMap[K]) => void) =>
      this.node.addEventListener(type, listener, { signal });
    on("pointerdown", (event) => this.#press(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#release(event));
    on("pointercancel", (event) => this.#release(event));
    on("keydown", (event) => this.#key(event));
  }

  get dragging(): boolean {
    return this.#pressedAt !== null && this.#moved;
  }

  /** Whether the hand has just let go: the click that follows a drag selects nothing. */
  get justDragged(): boolean {
    return this.#moved;
  }

  draw(width: number): void {
    const { left, right, top, bottom } = this.#events.frame();
    const y = yOf(this.value, { left, right, top, bottom });
    const middle = Math.min(bottom - 7, Math.max(top + 11, y));
    const x = (right + 4 + width) / 2;
    setAttributes(this.#line, { x1: left, x2: right + 4, y1: y, y2: y });
    setAttributes(this.#hit, { x: left, y: y - 6.5, width: right - left });
    setAttributes(this.#grip, { x: x - 29, y: middle - 15 });
    setAttributes(this.#word, { x, y: middle - 2.5 });
    setAttributes(this.#number, { x, y: middle + 10.5 });
    setText(this.#number, this.value.toFixed(2));
    setAttributes(this.node, { "aria-valuenow": this.value, "aria-valuetext": this.value.toFixed(2) });
  }

  #press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.#pressedAt = event.clientY;
    this.#moved = false;
    this.node.setPointerCapture?.(event.pointerId);
  }

  #move(event: PointerEvent): void {
    if (this.#pressedAt === null) return;
    if (!this.#moved && Math.abs(event.clientY - this.#pressedAt) < SLACK) return;
    this.#moved = true;
    this.#set(valueAt(this.#events.toFrame(event), this.#events.frame()), false);
  }

  #release(event: PointerEvent): void {
    if (this.#pressedAt === null) return;
    this.#pressedAt = null;
    this.node.releasePointerCapture?.(event.pointerId);
    if (!this.#moved) return;
    this.#events.onThreshold(this.value, true);
    setTimeout(() => {
      this.#moved = false;
    });
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = STEPS[event.key];
    const value =
      event.key === "Home" ? 0 : event.key === "End" ? 1 : step === undefined ? null : this.value + step;
    if (value === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#set(clampValue(value), false);
  }

  #set(value: number, done: boolean): void {
    if (value !== this.value) this.#events.onThreshold(value, done);
  }
}

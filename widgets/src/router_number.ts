/** A number that is moved with a slider or written into a field; a limit may be taken away. */

import { h, setAttributes } from "./dom";
import { Hold } from "./router_hold";
import type { Scale } from "./router_scales";

const NO_LIMIT = "no limit";

export interface NumberSpec {
  label: string;
  /** Said after the number, to those who hear it and in the label. */
  unit: string;
  scale: Scale;
  least: number;
  most?: number;
  whole?: boolean;
  /** What the arrows of the field move it by. */
  step: number;
  /** An empty field is no limit. */
  endless?: boolean;
  /** How the number stands in the field. */
  write(value: number): string;
  testId: string;
  title?: string;
  /** A class of its swatch, where it has one. */
  swatch?: string;
}

export class NumberControl {
  readonly node: HTMLElement;
  #spec: NumberSpec;
  #slider: HTMLInputElement;
  #field: HTMLInputElement;
  #hold: Hold<number | null>;
  #told: number | null = null;
  #onValue: (value: number | null) => void;

  constructor(spec: NumberSpec, onValue: (value: number | null) => void, signal: AbortSignal) {
    this.#spec = spec;
    this.#onValue = onValue;
    this.#hold = new Hold<number | null>(() => this.#draw(), signal, alike);
    const name = spec.unit === "" ? spec.label : `${spec.label} (${spec.unit})`;
    this.#slider = h("input", { type: "range", min: 0, max: spec.scale.last, step: 1, "aria-label": name });
    this.#field = h("input", { type: "number", step: spec.step, min: spec.least, "aria-label": name });
    if (spec.most !== undefined) setAttributes(this.#field, { max: spec.most });
    if (spec.endless) setAttributes(this.#field, { placeholder: NO_LIMIT });
    const swatch = spec.swatch === undefined ? null : h("i", { class: `swatch ${spec.swatch}` });
    const label = h("span", { class: "knob-name" }, swatch, spec.label, this.#unit());
    this.node = h("div", { class: "knob", "data-testid": spec.testId, title: spec.title ?? null });
    this.node.append(label, this.#slider, this.#field);
    this.#listen(signal);
  }

  /** Show what the kernel says, unless the reader holds another value. */
  update(told: number | null): void {
    this.#told = told !== null && Number.isFinite(told) ? told : null;
    this.#draw();
  }

  /** The number now belongs to something else: what was held of it is forgotten. */
  forget(): void {
    this.#hold.release();
  }

  #unit(): HTMLElement | null {
    return this.#spec.unit === "" ? null : h("span", { class: "unit" }, ` ${this.#spec.unit}`);
  }

  #listen(signal: AbortSignal): void {
    const on = (node: HTMLElement, type: string, listener: () => void) =>
      node.addEventListener(type, listener, { signal });
    on(this.#slider, "pointerdown", () => this.#hold.grip(true));
    for (const type of ["pointerup", "pointercancel", "change", "blur"])
      on(this.#slider, type, () => this.#hold.grip(false));
    on(this.#slider, "input", () => this.#moved());
    on(this.#field, "change", () => this.#written());
    // A browser may not call what a script or a form filler has written a change.
    this.#field.addEventListener("keydown", ({ key }) => key === "Enter" && this.#written(), { signal });
    on(this.#field, "blur", () => this.#draw());
  }

  #moved(): void {
    this.#tell(this.#spec.scale.toValue(Number(this.#slider.value)));
  }

  /** An empty field takes a limit away; what is no number within bounds is taken back. */
  #written(): void {
    const value = this.#read();
    if (value === undefined || alike(value, this.#hold.shown(this.#told))) this.#draw(true);
    else this.#tell(value);
  }

  /** What stands in the field; undefined if it is no number within bounds. */
  #read(): number | null | undefined {
    const text = this.#field.value.trim();
    if (text === "") return this.#spec.endless && !this.#field.validity.badInput ? null : undefined;
    const value = Number(text);
    const { least, most = Number.POSITIVE_INFINITY, whole } = this.#spec;
    if (!Number.isFinite(value) || value < least || value > most) return undefined;
    return whole ? Math.round(value) : value;
  }

  #tell(value: number | null): void {
    this.#hold.take(value);
    this.#draw(true);
    this.#onValue(value);
  }

  /** `whole`: also a field in which the reader is writing. */
  #draw(whole = false): void {
    const { scale, write, unit } = this.#spec;
    const value = this.#hold.shown(this.#told);
    const text = value === null ? "" : write(value);
    // A position stands for a stretch of values: one that fits is left where it is.
    if (!alike(scale.toValue(Number(this.#slider.value)), value))
      this.#slider.value = String(scale.toPosition(value));
    const spoken = value === null ? NO_LIMIT : `${text} ${unit}`.trim();
    setAttributes(this.#slider, { "aria-valuetext": spoken });
    if ((whole || !this.#writing) && this.#field.value !== text) this.#field.value = text;
  }

  get #writing(): boolean {
    const root = this.#field.getRootNode();
    return root instanceof ShadowRoot && root.activeElement === this.#field;
  }
}

/** Whether two values are the same as far as they are shown. */
function alike(a: number | null, b: number | null): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a));
}

/** The readout under the pointer. */

import { h, setText } from "./dom";
import * as format from "./format";
import { METRICS, type Metric } from "./metrics";
import type { Step } from "./store";

export class Tooltip {
  readonly node: HTMLElement;
  #head = h("span", {});
  #label = h("bdi", { class: "label" });
  #figures = h("span", { class: "numbers" });

  constructor() {
    this.node = h(
      "div",
      { class: "tooltip", "aria-hidden": "true", hidden: true },
      this.#head,
      this.#label,
      this.#figures,
    );
  }

  /** Show a step beside an element, within `frame`. */
  show(step: Step, place: number, anchor: Element, frame: HTMLElement, metric: Metric): void {
    setText(this.#head, place === step.index ? `token ${step.index}` : `token ${step.index}, place ${place}`);
    setText(this.#label, format.visible(step.label || step.text));
    setText(this.#figures, readout(step, metric));
    this.node.hidden = false;
    const around = frame.getBoundingClientRect();
    const box = anchor.getBoundingClientRect();
    const own = this.node.getBoundingClientRect();
    const x = box.left + box.width / 2 - own.width / 2 - around.left;
    const above = box.top - own.height - 8 - around.top;
    const left = Math.max(4, Math.min(around.width - own.width - 4, x));
    const top = above < 0 ? box.bottom + 8 - around.top : above;
    this.node.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide(): void {
    this.node.hidden = true;
  }
}

export function readout(step: Step, metric: Metric): string {
  if (!Number.isFinite(step.prob)) return "not inspected";
  const words = [
    format.prob(step.prob),
    `rank ${format.count(step.rank)}`,
    `max ${format.prob(step.maxProb)}`,
  ];
  if (metric === "entropy" || metric === "surprisal")
    words.push(`${metric} ${METRICS[metric].format(METRICS[metric].value(step))}`);
  return words.join(" · ");
}

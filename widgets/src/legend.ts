/** What the text is coloured by, and what its marks mean. */

import { h, setText } from "./dom";
import { isMetric, METRICS, type Metric } from "./metrics";

export class Legend {
  readonly node: HTMLElement;
  #select = h("select", { "aria-label": "colour the text by" });
  #sure = h("span", {});
  #unsure = h("span", {});
  #low = h("span", { class: "mark low" });

  /** `lookUps`: name the marks of a run that looks things up as well. */
  constructor(onMetric: (metric: Metric) => void, signal: AbortSignal, lookUps: boolean) {
    for (const [value, { title }] of Object.entries(METRICS))
      this.#select.append(h("option", { value }, title));
    this.#select.addEventListener(
      "change",
      () => {
        if (isMetric(this.#select.value)) onMetric(this.#select.value);
      },
      { signal },
    );
    this.node = h(
      "div",
      { class: "legend" },
      h("label", {}, "colour by", this.#select),
      h("span", { class: "scale" }, this.#sure, h("span", { class: "ramp" }), this.#unsure),
      this.#low,
      h("span", { class: "mark alternative" }, "not first choice"),
      lookUps ? h("span", { class: "mark retrieved" }, "from a passage") : null,
      lookUps ? h("span", { class: "mark dropped" }, "dropped") : null,
    );
  }

  update(metric: Metric, threshold: number): void {
    if (this.#select.value !== metric) this.#select.value = metric;
    setText(this.#sure, `sure ${METRICS[metric].sure}`);
    setText(this.#unsure, `${METRICS[metric].unsure} unsure`);
    setText(this.#low, `below ${threshold.toFixed(2)}`);
  }
}

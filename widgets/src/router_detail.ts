/** The selected cell, told: each term with its arithmetic, the sum, who would be next, what would change it. */

import { h, setText } from "./dom";
import type { Basis, Detail, ModelRow } from "./router_protocol";
import { BASES } from "./router_protocol";
import * as words from "./router_words";

const SWATCHES = new Set(["quality", "latency", "cost", "local bonus"]);
const EMPTY = "Select a cell to see how its score comes about, and what would change the choice.";

export class DetailPanel {
  readonly node = h("section", { class: "detail", "data-testid": "router-detail", "aria-live": "off" });
  #title = h("h3", {});
  #probe = h("button", { type: "button", class: "link", "data-testid": "probe-one" }, "Probe this model");
  #body = h("div", { class: "detail-body" });
  #shown = "";
  #model: string | null = null;

  constructor(onProbe: (model: string) => void, signal: AbortSignal) {
    this.#probe.addEventListener(
      "click",
      () => {
        if (this.#model !== null) onProbe(this.#model);
      },
      { signal },
    );
    this.node.append(h("div", { class: "detail-head" }, this.#title, this.#probe), this.#body);
  }

  /** `model`: the row of the selected cell; `probes`: somebody is there who can measure it. */
  update(detail: Detail | null, model: ModelRow | undefined, probes: boolean): void {
    this.#model = model?.id ?? null;
    this.#probe.hidden = model === undefined || model.where !== "local";
    this.#probe.disabled = !probes;
    // Redrawn only if it is another one: a selection of its text and an open tooltip stay.
    const content = JSON.stringify(detail);
    if (content === this.#shown) return;
    this.#shown = content;
    setText(this.#title, detail?.title ?? "Nothing is selected");
    if (detail === null) this.#body.replaceChildren(h("p", { class: "quiet" }, EMPTY));
    else this.#body.replaceChildren(arithmetic(detail), changes(detail));
  }
}

function arithmetic({ lines, sum, worth, fallbacks }: Detail): HTMLElement {
  const rows = lines.map(({ name, points, basis, arithmetic: how }) => {
    const swatch = SWATCHES.has(name) ? h("i", { class: `swatch ${swatchOf(name)}` }) : null;
    if (swatch !== null && isBasis(basis)) swatch.dataset["basis"] = basis;
    return h(
      "div",
      { class: "line", "data-testid": "detail-line" },
      h("dt", {}, swatch, h("bdi", {}, name)),
      h("dd", { class: "number" }, words.points(points)),
      h("dd", { class: "basis" }, h("bdi", {}, basis)),
      h("dd", { class: "how" }, h("bdi", {}, how)),
    );
  });
  return h(
    "div",
    { class: "arithmetic" },
    rows.length > 0 ? h("dl", { class: "lines" }, ...rows) : null,
    h(
      "dl",
      { class: "sums" },
      ...(lines.length > 0 ? pair("score", sum, "sum") : pair("why not", sum)),
      ...pair("worth", worth, "sum"),
      ...(fallbacks.length > 0 ? [h("dt", {}, "then"), fallbackList(fallbacks)] : []),
    ),
  );
}

function pair(name: string, text: string, kind = ""): HTMLElement[] {
  return text === "" ? [] : [h("dt", {}, name), h("dd", { class: kind }, h("bdi", {}, text))];
}

function fallbackList(models: readonly string[]): HTMLElement {
  const list = h("dd", { class: "fallbacks", "data-testid": "fallbacks" });
  models.forEach((model, k) => {
    if (k > 0) list.append(" → ");
    list.append(h("bdi", {}, model));
  });
  return list;
}

function changes({ changes: all }: Detail): HTMLElement {
  const items = all.map(({ text }) => h("li", {}, h("bdi", {}, text)));
  return h(
    "div",
    { class: "changes", "data-testid": "changes" },
    h("h3", {}, "What would change it"),
    items.length > 0
      ? h("ul", {}, ...items)
      : h("p", { class: "quiet" }, "Nothing that was tried changes the choice."),
  );
}

function swatchOf(name: string): string {
  return name === "local bonus" ? "local_bonus" : name;
}

function isBasis(text: string): text is Basis {
  return BASES.some((basis) => basis === text);
}

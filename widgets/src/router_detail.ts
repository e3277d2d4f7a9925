/** The selected cell, told: each term with its arithmetic, the sum, who would be next, what would change it. */

import { h, setText } from "./dom";
import type { Basis, Detail, ModelRow, Place } from "./router_protocol";
import { BASES } from "./router_protocol";
import * as words from "./router_words";

const SWATCHES = new Set(["quality", "latency", "cost", "local bonus"]);
const EMPTY = "Select a cell to see how its score comes about, and what would change the choice.";

export class DetailPanel {
  readonly node = h("section", {
    class: "detail",
    "data-testid": "router-detail",
    "aria-label": "the selected cell",
  });
  #title = h("h3", {});
  #probe = h("button", { type: "button", class: "link", "data-testid": "probe-one" }, "Probe this model");
  #told = h("div", { class: "arithmetic" });
  #changes = h("div", { class: "changes", "data-testid": "changes" });
  #shown = "";
  #shownChanges: string | null = null;
  #cell = "";
  #model: string | null = null;

  constructor(onProbe: (model: string) => void, signal: AbortSignal) {
    this.#probe.addEventListener(
      "click",
      () => {
        if (this.#model !== null) onProbe(this.#model);
      },
      { signal },
    );
    const body = h("div", { class: "detail-body" }, this.#told, this.#changes);
    this.node.append(h("div", { class: "detail-head" }, this.#title, this.#probe), body);
  }

  /** `model`: the row of the selected cell; `probes`: somebody is there who can measure it. */
  update(detail: Detail | null, place: Place | null, model: ModelRow | undefined, probes: boolean): void {
    this.#model = model?.id ?? null;
    this.#probe.hidden = model === undefined || model.where !== "local";
    this.#probe.disabled = !probes;
    setText(this.#title, detail?.title ?? "Nothing is selected");
    this.#tell(detail);
    this.#tellChanges(detail?.changes ?? null, place === null ? "" : `${place.workload}\n${place.model}`);
  }

  /** Redrawn only if something is another: a selection of the text stays. */
  #tell(detail: Detail | null): void {
    const content = JSON.stringify({ ...detail, changes: null });
    if (content === this.#shown) return;
    this.#shown = content;
    this.#told.replaceChildren(
      ...(detail === null ? [h("p", { class: "quiet" }, EMPTY)] : arithmetic(detail)),
    );
  }

  /**
   * What would change the choice takes the kernel longer than all the rest: until it is known, as while a
   * weight is dragged, what was known of the same cell stands there.
   */
  #tellChanges(changes: Detail["changes"] | null, cell: string): void {
    const waits = changes?.length === 0 && cell === this.#cell && (this.#shownChanges ?? "") !== "";
    this.#changes.classList.toggle("late", waits);
    this.#changes.hidden = changes === null;
    if (waits || changes === null) return;
    const content = changes.length === 0 ? "" : JSON.stringify(changes);
    if (content === this.#shownChanges && cell === this.#cell) return;
    this.#shownChanges = content;
    this.#cell = cell;
    const items = changes.map(({ text }) => h("li", {}, h("bdi", {}, text)));
    this.#changes.replaceChildren(
      h("h3", {}, "What would change it"),
      items.length > 0 ? h("ul", {}, ...items) : h("p", { class: "quiet" }, "Not worked out."),
    );
  }
}

function arithmetic({ lines, sum, worth, fallbacks }: Detail): HTMLElement[] {
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
  const sums = h(
    "dl",
    { class: "sums" },
    ...(lines.length > 0 ? pair("score", sum, "sum") : pair("why not", sum)),
    ...pair("worth", worth, "sum"),
    ...(fallbacks.length > 0 ? [h("dt", {}, "then"), fallbackList(fallbacks)] : []),
  );
  return rows.length > 0 ? [h("dl", { class: "lines" }, ...rows), sums] : [sums];
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

function swatchOf(name: string): string {
  return name === "local bonus" ? "local_bonus" : name;
}

function isBasis(text: string): text is Basis {
  return BASES.some((basis) => basis === text);
}

/** Above the table: what is asked, what goes on, what the colours mean. */

import { h, setText } from "./dom";
import * as format from "./format";
import { scaleOf } from "./router_grid";
import { questionChips } from "./router_knobs";
import type { Busy, RouterState } from "./router_protocol";
import * as words from "./router_words";

export interface HeadEvents {
  onProbe(): void;
  onReset(): void;
}

export class Head {
  readonly node = h("header", { class: "header router-head" });
  #chips = h("div", { class: "chips" });
  #probe = button("Probe models", "probe-all", "Measure speed, memory and quality of every local model here");
  #reset = button("Reset weights", "reset", "Give every workload the weights that it had at first");

  constructor(events: HeadEvents, signal: AbortSignal) {
    this.#probe.addEventListener("click", () => events.onProbe(), { signal });
    this.#reset.addEventListener("click", () => events.onReset(), { signal });
    const title = h("b", {}, "Which model answers?");
    const buttons = h("div", { class: "buttons" }, this.#probe, this.#reset);
    this.node.append(h("div", { class: "what" }, title, this.#chips), buttons);
  }

  update(state: RouterState, enabled: boolean): void {
    const chips = questionChips(state.question, state.strategy);
    chips.forEach((text, i) => {
      const chip = this.#chips.children[i] ?? this.#chips.appendChild(h("bdi", { class: "chip" }));
      setText(chip, text);
    });
    while (this.#chips.children.length > chips.length) this.#chips.lastElementChild?.remove();
    const local = state.models.some(({ where }) => where === "local");
    this.#probe.disabled = !enabled || state.busy !== null || !local;
    this.#reset.disabled = !enabled || !state.workloads.some(({ changed }) => changed);
  }
}

function button(text: string, testId: string, title: string): HTMLButtonElement {
  return h("button", { type: "button", class: "button", "data-testid": testId, title }, text);
}

export class BusyLine {
  readonly node = h("div", { class: "busy", "data-testid": "busy", role: "status", hidden: true });
  #bar = h("div", { class: "progress", role: "progressbar" }, h("i"));
  #text = h("bdi", {});

  constructor() {
    this.node.append(this.#bar, this.#text);
  }

  update(busy: Busy | null): void {
    this.node.hidden = busy === null;
    if (busy === null) return;
    const { what, done, total } = busy;
    const share = total > 0 ? Math.min(1, done / total) : null;
    setText(
      this.#text,
      total > 0 ? `${what} · ${format.count(done)} of ${format.count(total)}` : `${what} …`,
    );
    this.#bar.setAttribute("aria-label", what);
    this.#bar.classList.toggle("endless", share === null);
    if (share === null) this.#bar.removeAttribute("aria-valuenow");
    else this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const fill = this.#bar.firstElementChild;
    if (fill instanceof HTMLElement) fill.style.width = share === null ? "" : `${100 * share}%`;
  }
}

export class NoticeList {
  readonly node = h("ul", { class: "notices", "data-testid": "router-notices", hidden: true });
  #shown = "";

  update(notices: readonly string[]): void {
    const content = JSON.stringify(notices);
    if (content === this.#shown) return;
    this.#shown = content;
    this.node.hidden = notices.length === 0;
    this.node.replaceChildren(...notices.map((text) => h("li", {}, h("bdi", {}, text))));
  }
}

const KEYS = [
  ["quality", "quality"],
  ["latency", "latency"],
  ["cost", "cost"],
  ["local_bonus", "local bonus"],
] as const;

/** What a bar is made of, and how the choice comes out of it. */
export class KeyLine {
  readonly node = h("div", { class: "key-line", "data-testid": "key-line" });
  #formula = h("span", { class: "formula" });

  constructor() {
    const keys = KEYS.map(([name, text]) =>
      h("span", { class: "key" }, h("i", { class: `swatch ${name}` }), text),
    );
    const bases = (["measured", "declared", "assumed"] as const).map((basis) => {
      const swatch = h("i", { class: "swatch plain" });
      swatch.dataset["basis"] = basis;
      return h("span", { class: "key" }, swatch, basis);
    });
    const worth = h("span", { class: "key" }, h("i", { class: "worth-key" }), "worth");
    this.node.append(
      h("span", { class: "keys" }, ...keys),
      h("span", { class: "keys" }, ...bases, worth),
      this.#formula,
    );
  }

  update({ workloads, strategy }: RouterState): void {
    setText(
      this.#formula,
      `score = Σ weight × term + local bonus; ranked by worth = reliability × score; wins of ` +
        `${format.plural(strategy.draws, "draw")}; bars from 0 to ${words.weight(scaleOf(workloads))}`,
    );
  }
}

/** What ran and how it was sampled (above), notices and failure, and the figures over the whole run (below). */

import { h, setText } from "./dom";
import * as format from "./format";
import { countBelow, lowRuns, mean } from "./metrics";
import { FLAGS, type RunInfo } from "./protocol";
import type { RunStore } from "./store";

type Params = Record<string, unknown>;

/** The sampler's settings in the order in which it applies them; a stage that does nothing is `off`. */
export function describeParams(params: Params): string[] {
  const number = (name: string) => (typeof params[name] === "number" ? params[name] : null);
  const words: string[] = [];
  const add = (name: string, value: string | null) => {
    if (value !== null) words.push(`${name} ${value}`);
  };
  const unless = (name: string, off: number, show: (value: number) => string) => {
    const value = number(name);
    return value === null ? null : value === off ? "off" : show(value);
  };
  const penalty = number("repeat_penalty");
  const temperature = number("temperature");
  if (penalty !== null && penalty !== 1) add("repeat penalty", penalty.toFixed(2));
  add("temperature", temperature === null ? null : temperature === 0 ? "0 (greedy)" : temperature.toFixed(2));
  add("top-k", unless("top_k", 0, format.count));
  add(
    "top-p",
    unless("top_p", 1, (value) => value.toFixed(2)),
  );
  add(
    "min-p",
    unless("min_p", 0, (value) => value.toFixed(2)),
  );
  const seed = params["seed"];
  if (typeof seed === "number" || typeof seed === "string") add("seed", String(seed));
  const most = number("max_tokens");
  if (most !== null) words.push(`at most ${format.plural(most, "token")}`);
  return words;
}

export class Header {
  readonly node = h("header", { class: "header", hidden: true });
  #shown: RunInfo | null = null;
  readonly #showModel: boolean;

  /** A host that names the model itself leaves that line out. */
  constructor(showModel: boolean) {
    this.#showModel = showModel;
  }

  update(info: RunInfo | null): void {
    if (info === this.#shown) return;
    this.#shown = info;
    this.node.hidden = info === null;
    if (info === null) return;
    const chip = (text: string) => (text === "" ? null : h("span", { class: "chip" }, text));
    const what = h(
      "div",
      { class: "what" },
      h("b", {}, info.model),
      chip(info.engine),
      chip([info.device, info.dtype].filter((part) => part !== "").join(" · ")),
      chip(info.context_length > 0 ? `${format.count(info.context_length)} ctx` : ""),
    );
    const how = h(
      "div",
      { class: "how" },
      ...describeParams(info.params).map((words) => h("span", {}, words)),
    );
    const asked = h("div", { class: "asked", title: info.prompt, dir: "auto" }, info.prompt);
    // It is the legend of the mark as well, and beside the settings the page below stays where it is.
    const origin = info.branch
      ? h("div", { class: "origin", "data-testid": "origin" }, info.branch.text)
      : null;
    const settings = h("div", { class: "settings" }, how, origin);
    const policy = info.policy;
    const rule = policy
      ? h(
          "div",
          { class: "what rule", "data-testid": "policy" },
          h("span", { class: "name" }, policy.name),
          ...[policy.trigger, policy.retriever].map(chip),
        )
      : null;
    const rows = [this.#showModel ? what : null, rule, settings, info.prompt === "" ? null : asked];
    this.node.replaceChildren(...rows.filter((row) => row !== null));
  }
}

export class Notices {
  readonly node = h("div", {});
  #notices = h("ul", { class: "notices", "data-testid": "notices", hidden: true });
  #failure = h("div", { class: "failure", "data-testid": "failure", role: "alert", hidden: true });

  constructor() {
    this.node.append(this.#notices, this.#failure);
  }

  update({ notices, failure }: RunStore): void {
    const shown = [...this.#notices.children].map((item) => item.textContent);
    if (notices.length !== shown.length || notices.some((text, i) => text !== shown[i]))
      this.#notices.replaceChildren(...notices.map((text) => h("li", {}, text)));
    this.#notices.hidden = notices.length === 0;
    this.#failure.hidden = failure === null;
    const text = failure === null ? "" : failure.message + failure.hint;
    if (this.#failure.textContent === text) return;
    this.#failure.replaceChildren(
      ...(failure === null ? [] : [h("b", {}, failure.message), h("span", {}, failure.hint)]),
    );
  }
}

const FIGURES = ["perplexity", "entropy", "below", "prompt"] as const;

export class Footer {
  readonly node: HTMLElement;
  #values = Object.fromEntries(FIGURES.map((name) => [name, h("span", {})])) as Record<
    (typeof FIGURES)[number],
    HTMLElement
  >;

  constructor() {
    const remark = h("span", { class: "remark" }, "natural logs · raw = before the sampler");
    this.node = h("footer", { class: "footer" }, ...FIGURES.map((name) => this.#values[name]), remark);
  }

  update(store: RunStore, threshold: number): void {
    const { logprob, entropy, max_prob: maxProb, flags } = store.numbers;
    const kept = (i: number) => (flags.at(i) & FLAGS.kept) !== 0;
    const perplexity = Math.exp(-mean(logprob.values, kept));
    const standing = store.dropped === 0 ? maxProb.values : maxProb.values.filter((_, i) => kept(i));
    const runs = lowRuns(standing, threshold).length;
    const below = countBelow(standing, threshold);
    setFigure(this.#values.perplexity, "perplexity", format.nats(perplexity), "");
    setFigure(this.#values.entropy, "mean entropy", format.nats(mean(entropy.values, kept)), "nats");
    setFigure(
      this.#values.below,
      `below ${threshold.toFixed(2)}:`,
      format.count(below),
      `${below === 1 ? "token" : "tokens"}, ${format.plural(runs, "run")} of 3+`,
    );
    const prefill = store.prefill;
    this.#values.prompt.hidden = prefill === null;
    if (prefill === null) return;
    const words = `${prefill.total === 1 ? "token" : "tokens"}, ${format.count(prefill.reused)} re-used`;
    // A branch reads what it takes over as well.
    const name = store.branchedAt > 0 ? "read" : "prompt";
    setFigure(this.#values.prompt, name, format.count(prefill.total), words);
  }
}

function setFigure(node: HTMLElement, before: string, value: string, after: string): void {
  if (node.childElementCount === 0) node.append(h("span", {}), " ", h("b", {}), " ", h("span", {}));
  const [first, middle, last] = node.children;
  if (first === undefined || middle === undefined || last === undefined) return;
  setText(first, before);
  setText(middle, value);
  setText(last, after);
}

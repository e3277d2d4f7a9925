/** The side panel: one token, its alternatives, what the sampler did to them, and the draw. */

import { h } from "./dom";
import { drawBar, isDrawn } from "./draw_bar";
import * as format from "./format";
import type { Candidate, RunStore, Step } from "./store";

const SHORT = 10;
const STAGE_NAMES: Record<string, string> = { top_k: "top-k", top_p: "top-p", min_p: "min-p" };

export function stageName(stage: string): string {
  return STAGE_NAMES[stage] ?? stage;
}

/** The first rows; the chosen token takes the last place if it would not be among them. */
export function shortList(candidates: readonly Candidate[], size = SHORT): Candidate[] {
  if (candidates.length <= size) return [...candidates];
  const first = candidates.slice(0, size);
  const chosen = candidates.find((c) => c.chosen);
  return chosen === undefined || first.includes(chosen) ? first : [...first.slice(0, -1), chosen];
}

export class SidePanel {
  readonly node: HTMLElement;
  #onFollow: () => void;
  #all = false;
  #shown: { store: RunStore; index: number | null; follows: boolean } | null = null;

  constructor(onFollow: () => void, signal: AbortSignal) {
    this.#onFollow = onFollow;
    this.node = h("section", { class: "side", "data-testid": "candidates", "aria-label": "selected token" });
    this.node.addEventListener("click", (event) => this.#click(event), { signal });
  }

  /** `follows` while the panel goes with the newest token. */
  show(store: RunStore, index: number | null, follows: boolean): void {
    this.#shown = { store, index, follows };
    const focused = this.#focusedAction();
    this.node.replaceChildren(...this.#content(store, index, follows));
    if (focused !== null) this.node.querySelector<HTMLElement>(`[data-action="${focused}"]`)?.focus();
  }

  #content(store: RunStore, index: number | null, follows: boolean): HTMLElement[] {
    if (index === null)
      return [
        h(
          "p",
          { class: "quiet" },
          "The token that you select is taken apart here: what else was likely, what the sampler removed, and where the draw fell.",
        ),
      ];
    const step = store.step(index);
    const candidates = store.candidates(index);
    const head = [this.#title(step, follows, store.live), figures(step)];
    if (candidates.length === 0)
      return [
        ...head,
        h(
          "p",
          { class: "quiet" },
          "This run was recorded without inspection: only the tokens and their times are known.",
        ),
      ];
    const rows = this.#all ? candidates : shortList(candidates);
    const greedy = store.info?.params["temperature"] === 0;
    const others = othersOf(store, step, candidates, rows);
    const table = candidateTable(rows, candidates, step, { greedy, others });
    return [...head, table, this.#toggle(candidates.length), drawBar(candidates, step, greedy)];
  }

  #title(step: Step, follows: boolean, live: boolean): HTMLElement {
    const label = format.visible(step.label || step.text);
    const states = [
      step.special ? "control token" : null,
      step.incomplete ? "part of a character" : null,
      step.forced ? "forced" : null,
      step.kept ? null : "rolled back",
    ].filter((state) => state !== null);
    const follow = follows
      ? h("span", { class: "follows" }, live ? "following the newest" : "the last token")
      : h(
          "button",
          { type: "button", class: "link", "data-action": "follow" },
          live ? "follow the newest" : "back to the last",
        );
    return h(
      "div",
      { class: "side-title" },
      h("b", {}, `Token ${step.index}`),
      h("bdi", { class: "label", title: label }, label),
      ...states.map((state) => h("span", { class: "state" }, state)),
      follow,
    );
  }

  #toggle(total: number): HTMLElement {
    const words = this.#all ? `show the first ${SHORT}` : `show all ${total}`;
    const button = h(
      "button",
      { type: "button", class: "link", "data-action": "all", "aria-expanded": String(this.#all) },
      words,
    );
    return h("div", { class: "more" }, total > SHORT ? button : null);
  }

  #click(event: Event): void {
    const target =
      event.target instanceof Element ? event.target.closest<HTMLElement>("[data-action]") : null;
    if (target?.dataset["action"] === "follow") this.#onFollow();
    if (target?.dataset["action"] !== "all" || this.#shown === null) return;
    this.#all = !this.#all;
    this.show(this.#shown.store, this.#shown.index, this.#shown.follows);
  }

  #focusedAction(): string | null {
    const root = this.node.getRootNode() as Document | ShadowRoot;
    const active = root.activeElement;
    return active instanceof HTMLElement && this.node.contains(active)
      ? (active.dataset["action"] ?? null)
      : null;
  }
}

/** The numbers of a step, each with its name. */
function figures(step: Step): HTMLElement {
  const rows: [string, string, string][] = [
    ["raw", format.prob(step.prob), "raw probability of this token, before the sampler"],
    ["sampled", format.prob(step.processedProb), "probability that this token was drawn with"],
    ["rank", step.rank > 0 ? format.count(step.rank) : "–", "place in the raw distribution"],
    ["max", format.prob(step.maxProb), "raw probability of the likeliest token"],
    ["margin", format.prob(step.margin), "raw probability of the likeliest less that of the second"],
    ["id", String(step.tokenId), "the token's number in the vocabulary"],
    ["entropy", `${format.nats(step.entropy)} nats`, "of the raw distribution"],
    ["surprisal", `${format.nats(-step.logprob)} nats`, "of this token, raw"],
    ["elapsed", format.seconds(step.elapsed), "from the request to this token"],
  ];
  const known = Number.isNaN(step.logprob)
    ? rows.filter(([name]) => name === "id" || name === "elapsed")
    : rows;
  const list = h("dl", { class: "figures" });
  for (const [name, value, title] of known)
    list.append(h("div", { title }, h("dt", {}, name), h("dd", {}, value)));
  return list;
}

/** The row that makes the table whole: every token that has no row of its own. */
interface Others {
  /** Null where the size of the vocabulary is not known. */
  count: number | null;
  raw: number;
  processed: number;
}

/** Tokens that were not recorded, and those recorded that the short list leaves out. */
function othersOf(
  store: RunStore,
  step: Step,
  all: readonly Candidate[],
  rows: readonly Candidate[],
): Others {
  const size = store.info?.vocab_size;
  const count = size === undefined ? null : size - rows.length;
  // A mass is what 1 has left over, with the rounding errors of the sum; of no tokens it is none.
  if (count === 0) return { count, raw: 0, processed: 0 };
  const hidden = all.filter((candidate) => !rows.includes(candidate));
  const sum = (mass: number, of: (candidate: Candidate) => number) =>
    hidden.reduce((total, candidate) => total + of(candidate), mass);
  return {
    count,
    raw: sum(step.restMass, (candidate) => candidate.raw),
    processed: sum(step.processedRestMass, (candidate) => candidate.processed),
  };
}

/** What the rows of a table have in common. */
interface About {
  greedy: boolean;
  others: Others;
}

function candidateTable(
  rows: readonly Candidate[],
  all: readonly Candidate[],
  step: Step,
  { greedy, others }: About,
): HTMLElement {
  const full = Math.max(
    ...all.map((c) => Math.max(c.raw, c.processed)),
    others.raw || 0,
    others.processed || 0,
  );
  const body = h("tbody", {}, ...rows.map((c) => candidateRow(c, full, fate(c, step, greedy))));
  body.append(othersRow(others, full));
  const head = h("thead", {}, headRow());
  const columns = ["rank", "name", "bars", "raw", "processed", "fate"].map((name) =>
    h("col", { class: name }),
  );
  return h("div", { class: "table" }, h("table", {}, h("colgroup", {}, ...columns), head, body));
}

function headRow(): HTMLElement {
  const th = (text: string, name: string) => h("th", { scope: "col", class: name }, text);
  return h(
    "tr",
    {},
    th("", "rank"),
    th("candidate", "name"),
    th("", "bars"),
    th("raw", "number key raw"),
    th("sampled", "number key processed"),
    th("", "fate"),
  );
}

function candidateRow(candidate: Candidate, full: number, end: HTMLElement | null): HTMLElement {
  const { chosen, removedBy } = candidate;
  const label = format.visible(candidate.label);
  const name = `${chosen ? "chosen" : ""} ${removedBy ? "removed" : ""}`.trim();
  return h(
    "tr",
    { class: name, "data-testid": "candidate", "aria-current": chosen ? "true" : null },
    h("td", { class: "rank" }, format.count(candidate.rank)),
    h("td", { class: "name" }, h("bdi", { class: "label", title: `${label} · id ${candidate.id}` }, label)),
    bars(candidate.raw, candidate.processed, full),
    h("td", { class: "number" }, format.prob(candidate.raw)),
    h("td", { class: "number" }, candidate.processed > 0 ? format.prob(candidate.processed) : "–"),
    h("td", { class: "fate" }, end),
  );
}

function fate({ chosen, removedBy }: Candidate, step: Step, greedy: boolean): HTMLElement | null {
  if (chosen && step.forced) return h("span", {}, "forced");
  if (chosen) return h("span", {}, isDrawn(step, greedy) ? "drawn" : "taken");
  return removedBy === "" ? null : h("span", { class: "stage" }, stageName(removedBy));
}

function othersRow({ count, raw, processed }: Others, full: number): HTMLElement {
  const label = count === null ? "all others" : format.plural(count, "other");
  return h(
    "tr",
    { class: "others" },
    h("td", { class: "name", colspan: 2 }, label),
    bars(raw, processed, full),
    h("td", { class: "number" }, format.prob(raw)),
    h("td", { class: "number" }, processed > 1e-6 ? format.prob(processed) : "–"),
    h("td", { class: "fate" }),
  );
}

function bars(raw: number, processed: number, full: number): HTMLElement {
  const bar = (kind: string, value: number) => {
    const node = h("i", { class: kind });
    node.style.width = `${value > 0 ? Math.min(100, (100 * value) / full) : 0}%`;
    return node;
  };
  return h("td", { class: "bars", "aria-hidden": "true" }, bar("raw", raw), bar("processed", processed));
}

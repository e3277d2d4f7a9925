/** The alternatives of one token as a table: both probabilities, and what became of each. */

import { h } from "./dom";
import { isDrawn } from "./draw_bar";
import * as format from "./format";
import type { Candidate, RunStore, Step } from "./store";

const STAGE_NAMES: Record<string, string> = { top_k: "top-k", top_p: "top-p", min_p: "min-p" };

export function stageName(stage: string): string {
  return STAGE_NAMES[stage] ?? stage;
}

/** The row that makes the table whole: every token that has no row of its own. */
export interface Others {
  /** Null where the size of the vocabulary is not known. */
  count: number | null;
  raw: number;
  processed: number;
}

/** Tokens that were not recorded, and those recorded that the short list leaves out. */
export function othersOf(
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
export interface About {
  greedy: boolean;
  others: Others;
  offers: boolean;
}

/** `rows` are those shown of `all` candidates; the bars are on the scale of all. */
export function candidateTable(
  rows: readonly Candidate[],
  all: readonly Candidate[],
  step: Step,
  { greedy, others, offers }: About,
): HTMLElement {
  const full = Math.max(
    ...all.map((c) => Math.max(c.raw, c.processed)),
    others.raw || 0,
    others.processed || 0,
  );
  const name = (c: Candidate) => (offers && !c.chosen ? takeButton(c, step) : nameOf(c));
  const body = h("tbody", {}, ...rows.map((c) => candidateRow(c, full, name(c), fate(c, step, greedy))));
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

function nameOf({ label, id }: Candidate): HTMLElement {
  const shown = format.visible(label);
  return h("bdi", { class: "label", title: `${shown} · id ${id}` }, shown);
}

/** The candidate's name as the way to go on with it. */
function takeButton({ label, id }: Candidate, step: Step): HTMLElement {
  const shown = format.visible(label);
  return h(
    "button",
    {
      type: "button",
      class: "label take",
      dir: "auto",
      "data-action": "take",
      "data-token": id,
      "aria-label": `go on from token ${step.index} with '${shown.replaceAll("␣", " ")}' instead`,
      title: `${shown} · id ${id} · click to go on with it from here`,
    },
    shown,
  );
}

function candidateRow(
  candidate: Candidate,
  full: number,
  label: HTMLElement,
  end: HTMLElement | null,
): HTMLElement {
  const { chosen, removedBy } = candidate;
  const name = `${chosen ? "chosen" : ""} ${removedBy ? "removed" : ""}`.trim();
  return h(
    "tr",
    { class: name, "data-testid": "candidate", "aria-current": chosen ? "true" : null },
    h("td", { class: "rank" }, format.count(candidate.rank)),
    h("td", { class: "name" }, label),
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

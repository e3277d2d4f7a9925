/** The figures of a table of models in words. Pure. */

import * as format from "./format";
import { duration } from "./look_up_words";
import type { Cell, FilteredCell, ModelRow, ScoredCell, Term, Workload } from "./router_protocol";

const NONE = "–";
/** A weight is written with this many decimals, with one more where they do not say it all. */
const DECIMALS = 2;
const UNSAID = 5e-4;

/** A score, a worth or points: three decimals. */
export function points(value: number): string {
  return Number.isFinite(value) ? value.toFixed(3) : NONE;
}

export function weight(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  const short = value.toFixed(DECIMALS);
  return Math.abs(Number(short) - value) < UNSAID ? short : value.toFixed(DECIMALS + 1);
}

/** A share in percent; what would read 0 % or 100 % without being it is `<1%` or `>99%`. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return NONE;
  if (share > 0 && share < 0.005) return "<1%";
  if (share < 1 && share > 0.995) return ">99%";
  return `${Math.round(100 * share)}%`;
}

/** A price in US dollars, three figures. */
export function usd(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  if (value === 0) return "$0";
  return value < 1e-6 ? "<$0.000001" : `$${Number(value.toPrecision(3))}`;
}

export function milliseconds(value: number): string {
  return Number.isFinite(value) ? duration(value) : NONE;
}

/** `0.45 / 0.40 / 0.15`: of quality, latency and cost. */
export function weightsOf({ quality, latency, cost }: Workload): string {
  return [quality, latency, cost].map(weight).join(" / ");
}

export function weightsInWords({ quality, latency, cost, local_bonus, first_token }: Workload): string {
  const what = first_token ? "latency (to the first token alone)" : "latency";
  return (
    `quality counts ${weight(quality)}, ${what} ${weight(latency)}, cost ${weight(cost)}; ` +
    `a model that runs here gets ${weight(local_bonus)} more`
  );
}

/** `local · loaded · 47 calls, 6 failed` */
export function whereabouts(model: ModelRow): string {
  const { where, loaded } = model;
  return [where, ...(loaded ? ["loaded"] : []), callsOf(model)].join(" · ");
}

/** What its figures are, unless the note says so. */
export function basisOf({ basis, note }: ModelRow): string {
  const parts = note.toLowerCase().includes(basis) ? [note] : [basis, note];
  return parts.filter((part) => part !== "").join(" · ");
}

/** `47 calls, 6 failed` */
function callsOf({ calls, successes, failures }: ModelRow): string {
  if (calls === 0) return "no calls yet";
  const open = calls - successes - failures;
  const rest = open > 0 ? `, ${format.count(open)} undecided` : "";
  return `${format.plural(calls, "call")}, ${format.count(failures)} failed${rest}`;
}

export function termText({ name, weight: w, value, points: p, basis }: Term): string {
  return `${name} ${weight(w)} × ${points(value)} = ${points(p)} (${basis})`;
}

/** A cell as one sentence, for those who hear it and for those who hover. */
export function cellSentence(model: ModelRow, workload: Workload, cell: Cell): string {
  const said = cell.kind === "filtered" ? filteredText(cell) : scoredText(cell);
  return `${model.title}, ${workload.title}: ${said}`;
}

export function filteredText({ reasons }: FilteredCell): string {
  return `left out: ${reasons.length === 0 ? "no reason given" : reasons.join("; ")}`;
}

function scoredText(cell: ScoredCell): string {
  const { score, rank, wins, worth, reliability, bonus, latency_ms, usd: price } = cell;
  const costs = price === null ? "" : `, ${usd(price)}`;
  return [
    `rank ${rank}, score ${points(score)}, wins ${percent(wins)} of the draws`,
    `${cell.terms.map(termText).join(", ")}, local bonus ${weight(bonus)}`,
    `worth ${points(reliability)} × ${points(score)} = ${points(worth)}`,
    `expected ${milliseconds(latency_ms)}${costs}`,
  ].join("; ");
}

/** Who is first in each workload, by its title; to tell what a change has changed. */
export function winners(
  workloads: readonly Workload[],
  models: readonly ModelRow[],
  cells: readonly (readonly Cell[])[],
): Map<string, string> {
  return new Map(
    workloads.map(({ title }, j) => {
      const i = cells.findIndex((row) => row[j]?.kind === "scored" && row[j].rank === 1);
      return [title, models[i]?.title ?? "nobody"];
    }),
  );
}

/** `Batch: now qwen3-8b.` for each workload that another model has won. */
export function changedWinners(
  before: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
): string {
  return [...now]
    .filter(([title, model]) => before.has(title) && before.get(title) !== model)
    .map(([title, model]) => `${title}: now ${model}.`)
    .join(" ");
}

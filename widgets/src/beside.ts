/** The same question under other policies, and what the run on the page has used of its budget. */

import { h } from "./dom";
import * as format from "./format";
import { duration } from "./look_up_words";
import type { BesideRow, BudgetUsed } from "./retrieval_protocol";

/** `look-ups 1 of 3, …` as pairs of what and how much. */
export function budgetFigures(budget: BudgetUsed): [string, string][] {
  const { context_tokens: context, max_context_tokens: most } = budget;
  const passages = context === null ? "" : format.count(context);
  const limit = most === null ? "" : ` of ${format.count(most)}`;
  return [
    ["look-ups that found", `${format.count(budget.retrievals)} of ${format.count(budget.max_retrievals)}`],
    ["in vain", format.count(budget.fruitless)],
    ["tokens kept", `${format.count(budget.kept)} of ${format.count(budget.decoded)} decoded`],
    ["tokens of passages", passages === "" ? "–" : passages + limit],
  ];
}

export class BudgetLine {
  readonly node = h("dl", { class: "budget", "data-testid": "budget", "aria-label": "budget used" });
  #shown: BudgetUsed | null = null;

  update(budget: BudgetUsed | null): void {
    this.node.hidden = budget === null;
    if (budget === null || budget === this.#shown) return;
    this.#shown = budget;
    this.node.replaceChildren(
      ...budgetFigures(budget).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    );
  }
}

const COLUMNS = ["policy", "answer", "look-ups", "decoded", "read", "time"] as const;

export class BesideTable {
  readonly node = h("section", { class: "beside", "data-testid": "beside", hidden: true });
  #body = h("tbody", {});
  #shown: readonly BesideRow[] = [];

  /** `onPick`: the reader wants to see the run of a row. */
  constructor(onPick: (row: number) => void, signal: AbortSignal) {
    const head = h(
      "tr",
      {},
      ...COLUMNS.map((name, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, name)),
    );
    const columns = COLUMNS.map((name) => h("col", { class: `beside-${name}` }));
    const table = h("table", {}, h("colgroup", {}, ...columns), h("thead", {}, head), this.#body);
    table.setAttribute("aria-label", "the same question under other policies");
    this.node.append(h("h3", {}, "The same question under other policies"), table);
    this.#body.addEventListener(
      "click",
      (event) => {
        const target = event.target instanceof Element ? event.target : null;
        const button = target?.closest<HTMLElement>("[data-row]");
        if (button) onPick(Number(button.dataset["row"]));
      },
      { signal },
    );
  }

  /** `offers`: somebody is there who can show the run of a row. */
  update(rows: readonly BesideRow[], offers: boolean): void {
    this.node.hidden = rows.length === 0;
    if (rows === this.#shown) return;
    this.#shown = rows;
    const root = this.node.getRootNode();
    const active = root instanceof ShadowRoot ? root.activeElement : null;
    const focused = active instanceof HTMLElement ? active.dataset["row"] : undefined;
    this.#body.replaceChildren(...rows.map((row, i) => besideRow(row, i, offers)));
    if (focused !== undefined) this.#body.querySelector<HTMLElement>(`[data-row="${focused}"]`)?.focus();
  }
}

function besideRow(row: BesideRow, i: number, offers: boolean): HTMLElement {
  const { policy, answer, failed, running, shown } = row;
  const waits = !running && failed === "" && row.ms === null;
  const numbers = waits || failed !== "" ? ["–", "–", "–", "–"] : figures(row);
  const name =
    offers && !shown && !waits && failed === ""
      ? h(
          "button",
          { type: "button", class: "link", "data-row": i, title: `show the run of ${policy}` },
          policy,
        )
      : policy;
  const state = failed !== "" ? "failed" : running ? "running" : waits ? "waits" : "";
  return h(
    "tr",
    {
      class: `${state}${shown ? " chosen" : ""}`.trim(),
      "data-testid": "beside-row",
      "aria-current": shown ? "true" : null,
    },
    h("th", { scope: "row" }, name),
    h("td", { class: "answer" }, answerText(answer, failed, running, waits)),
    ...numbers.map((number) => h("td", { class: "number" }, number)),
  );
}

function figures({ look_ups, decoded, prefilled, ms }: BesideRow): string[] {
  return [
    format.count(look_ups),
    format.count(decoded),
    format.count(prefilled),
    ms === null ? "–" : duration(ms),
  ];
}

function answerText(answer: string, failed: string, running: boolean, waits: boolean): HTMLElement {
  if (failed !== "") return h("span", { class: "fault" }, `failed: ${failed}`);
  if (waits) return h("span", { class: "quiet" }, "waits for its turn");
  const text = h("bdi", { class: "answer-text", title: answer }, answer.trim());
  return running ? h("span", { class: "unfinished" }, text, h("span", { class: "state" }, "running")) : text;
}

/** The parts of the table: heads of columns and rows, and cells, each brought up to date in place. */

import { h, setAttributes, setText } from "./dom";
import type { Baseline, Basis, Cell, ModelRow, ScoredCell, Workload } from "./router_protocol";
import { TERMS } from "./router_protocol";
import * as words from "./router_words";

/** More reasons than so many are counted, not told; the detail has them all. */
const SHOWN_REASONS = 2;
const SEPARATOR = " · ";

/** A workload: its name, and what it weighs. */
export class ColumnHead {
  readonly node = h("th", { scope: "col", class: "workload", "data-testid": "router-workload" });
  #title = h("bdi", { class: "title" });
  #weights = h("span", { class: "weights" });
  #bonus = h("span", { class: "weights" });
  #marks = h("span", { class: "marks" });

  constructor() {
    this.node.append(this.#title, this.#weights, this.#bonus, this.#marks);
  }

  update(workload: Workload): void {
    const { title, changed, first_token } = workload;
    setText(this.#title, title);
    setText(this.#weights, words.weightsOf(workload));
    setText(this.#bonus, `+ ${words.weight(workload.local_bonus)} if local`);
    const marks = [...(first_token ? ["latency: first token"] : []), ...(changed ? ["changed"] : [])];
    setText(this.#marks, marks.join(" · "));
    this.node.classList.toggle("changed", changed);
    setAttributes(this.node, { title: `${title}: ${words.weightsInWords(workload)}` });
  }
}

/** A model: its name, where it runs, what its figures are worth, what became of its calls. */
export class RowHead {
  readonly node = h("th", { scope: "row", class: "model", "data-testid": "router-model" });
  #title = h("bdi", { class: "title" });
  #where = h("span", { class: "facts" });
  #basis = h("bdi", { class: "facts" });

  constructor() {
    this.node.append(this.#title, this.#where, this.#basis);
  }

  update(model: ModelRow, out: boolean): void {
    setText(this.#title, model.title);
    setParts(this.#where, words.whereabouts(model));
    setParts(this.#basis, words.basisOf(model));
    this.node.classList.toggle("out", out);
    const facts = `${words.whereabouts(model)}\n${words.basisOf(model)}`;
    setAttributes(this.node, { title: `${model.id}\n${facts}` });
  }
}

/** Facts with dots between; a line breaks between two of them, and not within a date. */
function setParts(node: HTMLElement, text: string): void {
  if (node.textContent === text) return;
  const parts = text.split(SEPARATOR).map((part) => h("span", { class: "part" }, part));
  node.replaceChildren(...parts.flatMap((part, i) => (i > 0 ? [SEPARATOR, part] : [part])));
}

const SEGMENTS = [...TERMS, "bonus"] as const;

/** A score as a bar of its terms; a line where its worth ends. */
class Stack {
  readonly node = h("div", { class: "stack", "aria-hidden": "true" });
  #parts = SEGMENTS.map((name) => h("i", { class: name }));
  #worth = h("em", { class: "worth" });

  constructor() {
    this.node.append(...this.#parts, this.#worth);
  }

  /** `scale`: the score at which the bar is full. */
  update(cell: ScoredCell, scale: number): void {
    const parts: [number, Basis | null][] = TERMS.map((name) => {
      const term = cell.terms.find((each) => each.name === name);
      return [term?.points ?? 0, term?.basis ?? "assumed"];
    });
    parts.push([cell.bonus, null]);
    parts.forEach(([points, basis], k) => {
      const part = this.#parts[k];
      if (part === undefined) return;
      part.style.width = share(points, scale);
      if (basis === null) delete part.dataset["basis"];
      else part.dataset["basis"] = basis;
    });
    this.#worth.hidden = !Number.isFinite(cell.worth);
    this.#worth.style.left = share(cell.worth, scale);
  }
}

function share(value: number, scale: number): string {
  const part = Number.isFinite(value) && scale > 0 ? Math.max(0, Math.min(1, value / scale)) : 0;
  return `${(100 * part).toFixed(2)}%`;
}

/** A model in a workload: its score and rank, or why it is left out. */
export class CellView {
  readonly node = h("td", { tabindex: -1, "data-testid": "router-cell" });
  #score = h("b", {});
  #rank = h("span", { class: "rank" });
  #wins = h("span", { class: "wins" });
  #stack = new Stack();
  #head = h("div", { class: "cell-head" }, this.#score, this.#rank, this.#wins);
  #out = h("span", { class: "left-out" }, "left out");
  #why = h("bdi", { class: "why" });
  #kind: Cell["kind"] | null = null;

  update(cell: Cell, model: ModelRow, workload: Workload, scale: number): void {
    if (cell.kind !== this.#kind) {
      this.#kind = cell.kind;
      if (cell.kind === "scored") this.node.replaceChildren(this.#head, this.#stack.node);
      else this.node.replaceChildren(this.#out, this.#why);
    }
    if (cell.kind === "scored") this.#drawScore(cell, scale);
    else setText(this.#why, reasonsText(cell.reasons));
    const first = cell.kind === "scored" && cell.rank === 1;
    const kind = cell.kind === "scored" ? "scored" : "filtered";
    this.node.className = `cell ${kind}${first ? " first" : ""}`;
    const sentence = words.cellSentence(model, workload, cell);
    setAttributes(this.node, { "aria-label": sentence, title: sentence });
  }

  select(selected: boolean): void {
    setAttributes(this.node, { "aria-selected": String(selected) });
  }

  #drawScore(cell: ScoredCell, scale: number): void {
    setText(this.#score, words.points(cell.score));
    setText(this.#rank, `#${cell.rank}`);
    setText(this.#wins, `wins ${words.percent(cell.wins)}`);
    this.#stack.update(cell, scale);
  }
}

/** The first reasons, and how many more there are. */
export function reasonsText(reasons: readonly string[]): string {
  if (reasons.length === 0) return "no reason given";
  const more = reasons.length - SHOWN_REASONS;
  return `${reasons.slice(0, SHOWN_REASONS).join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

/** What one constant or random choice comes to, for comparison. */
export function baselineRow({ name, note, cells }: Baseline): HTMLElement {
  const head = h(
    "th",
    { scope: "row", class: "model", title: note },
    h("bdi", { class: "title" }, name),
    h("bdi", { class: "facts" }, note),
  );
  const row = h("tr", { class: "baseline", "data-testid": "router-baseline" }, head);
  for (const { text, hint } of cells)
    row.append(
      h(
        "td",
        { class: "cell", tabindex: -1, title: hint, "aria-label": `${name}: ${text}; ${hint}` },
        h("bdi", {}, text),
      ),
    );
  return row;
}

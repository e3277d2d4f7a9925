/** The table: workloads across, models down. One tab stop; the arrows move in it, Enter and Space select. */

import { h, setAttributes } from "./dom";
import { baselineRow, CellView, ColumnHead, RowHead } from "./router_cells";
import type { Baseline, Place, RouterState, Workload } from "./router_protocol";

interface At {
  row: number;
  column: number;
}

const MOVES: Record<string, (at: At, rows: number, columns: number, whole: boolean) => At> = {
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  Home: ({ row }, _rows, _columns, whole) => ({ row: whole ? 0 : row, column: 0 }),
  End: ({ row }, rows, columns, whole) => ({ row: whole ? rows - 1 : row, column: columns - 1 }),
};

/** The largest score that there can be, which all bars share: 1, and the largest bonus. */
export function scaleOf(workloads: readonly Workload[]): number {
  return 1 + Math.max(0, ...workloads.map(({ local_bonus: bonus }) => (Number.isFinite(bonus) ? bonus : 0)));
}

export class Grid {
  readonly node: HTMLElement;
  #table = h("table", { role: "grid", class: "grid", "aria-label": "models by workload" });
  #columns: { name: string; head: ColumnHead }[] = [];
  #rows: { id: string; head: RowHead; cells: CellView[] }[] = [];
  #foot = h("tbody", { class: "baselines" });
  #baselines = "";
  #at: At = { row: 0, column: 0 };
  #selected: Place | null = null;
  #onSelect: (place: Place) => void;

  constructor(onSelect: (place: Place) => void, signal: AbortSignal) {
    this.#onSelect = onSelect;
    this.#table.addEventListener("click", (event) => this.#click(event.target), { signal });
    this.#table.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.#table.addEventListener("focusin", (event) => this.#focused(event.target), { signal });
    this.node = h("div", { class: "scroller", "data-testid": "router-grid" }, this.#table);
  }

  update(state: RouterState, selected: Place | null): void {
    const { workloads, models, cells } = state;
    this.#build(state);
    const scale = scaleOf(workloads);
    workloads.forEach((workload, j) => void this.#columns[j]?.head.update(workload));
    models.forEach((model, i) => {
      const row = this.#rows[i];
      const values = cells[i] ?? [];
      row?.head.update(model, values.length > 0 && values.every(({ kind }) => kind === "filtered"));
      values.forEach((cell, j) => {
        const workload = workloads[j];
        if (workload !== undefined) row?.cells[j]?.update(cell, model, workload, scale);
      });
    });
    this.#drawBaselines(state.baselines);
    this.select(selected);
    this.node.hidden = models.length === 0;
  }

  select(selected: Place | null): void {
    this.#selected = selected;
    this.#columns.forEach(({ name }, j) => {
      for (const { id, cells } of this.#rows)
        cells[j]?.select(selected?.workload === name && selected.model === id);
    });
    if (!this.#holdsFocus()) this.#start();
  }

  /** Make the rows and columns anew if they are others than before; what is in focus stays so. */
  #build({ workloads, models }: RouterState): void {
    const known =
      workloads.length === this.#columns.length &&
      models.length === this.#rows.length &&
      workloads.every(({ name }, j) => this.#columns[j]?.name === name) &&
      models.every(({ id }, i) => this.#rows[i]?.id === id);
    if (known) return;
    const focused = this.#holdsFocus() ? this.#placeAt(this.#at) : null;
    this.#columns = workloads.map(({ name }) => ({ name, head: new ColumnHead() }));
    this.#rows = models.map(({ id }) => ({
      id,
      head: new RowHead(),
      cells: workloads.map(() => new CellView()),
    }));
    this.#assemble();
    this.#start(focused);
    if (focused !== null) this.#cellAt(this.#at)?.focus();
  }

  #assemble(): void {
    const { length } = this.#columns;
    const columns = [h("col", { class: "of-models" }), ...this.#columns.map(() => h("col", {}))];
    const corner = h("th", { scope: "col", class: "model corner" }, "model");
    const head = h("tr", {}, corner, ...this.#columns.map(({ head: { node } }) => node));
    const rows = this.#rows.map(({ head: { node }, cells }) =>
      h("tr", { "data-testid": "router-row" }, node, ...cells.map((cell) => cell.node)),
    );
    this.#table.style.setProperty("--workloads", String(length));
    this.#table.replaceChildren(
      h("colgroup", {}, ...columns),
      h("thead", {}, head),
      h("tbody", {}, ...rows),
      this.#foot,
    );
  }

  #drawBaselines(baselines: readonly Baseline[]): void {
    const content = JSON.stringify(baselines);
    if (content === this.#baselines) return;
    this.#baselines = content;
    this.#foot.replaceChildren(...baselines.map(baselineRow));
  }

  // Where the keyboard is

  get #body(): HTMLElement[][] {
    const baselines = [...this.#foot.rows].map((row) => [...row.querySelectorAll("td")]);
    return [...this.#rows.map(({ cells }) => cells.map(({ node }) => node)), ...baselines];
  }

  #cellAt({ row, column }: At): HTMLElement | undefined {
    return this.#body[row]?.[column];
  }

  #placeAt({ row, column }: At): Place | null {
    const model = this.#rows[row]?.id;
    const workload = this.#columns[column]?.name;
    return model === undefined || workload === undefined ? null : { model, workload };
  }

  /** Let the tab key come to a cell: the one given or selected, else the first. */
  #start(place: Place | null = this.#selected): void {
    const row = this.#rows.findIndex(({ id }) => id === place?.model);
    const column = this.#columns.findIndex(({ name }) => name === place?.workload);
    this.#moveTo(row < 0 || column < 0 ? { row: 0, column: 0 } : { row, column });
  }

  #moveTo(at: At): void {
    this.#at = at;
    const cell = this.#cellAt(at);
    for (const other of this.#table.querySelectorAll<HTMLElement>('td[tabindex="0"]'))
      if (other !== cell) other.tabIndex = -1;
    if (cell !== undefined) setAttributes(cell, { tabindex: 0 });
  }

  #holdsFocus(): boolean {
    const root = this.node.getRootNode();
    const active = root instanceof ShadowRoot ? root.activeElement : null;
    return active !== null && this.#table.contains(active);
  }

  #find(target: EventTarget | null): At | null {
    const cell = target instanceof Element ? target.closest<HTMLElement>("td") : null;
    if (cell === null) return null;
    const body = this.#body;
    const row = body.findIndex((cells) => cells.includes(cell));
    return row < 0 ? null : { row, column: (body[row] ?? []).indexOf(cell) };
  }

  #focused(target: EventTarget | null): void {
    const at = this.#find(target);
    if (at !== null) this.#moveTo(at);
  }

  #click(target: EventTarget | null): void {
    const at = this.#find(target);
    if (at === null) return;
    this.#cellAt(at)?.focus();
    this.#choose(at);
  }

  #choose(at: At): void {
    const place = this.#placeAt(at);
    if (place !== null) this.#onSelect(place);
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.metaKey) return;
    const at = this.#find(event.target);
    if (at === null) return;
    if (event.key === "Enter" || event.key === " ") {
      this.#take(event);
      this.#choose(at);
      return;
    }
    const move = MOVES[event.key];
    if (move === undefined) return;
    this.#take(event);
    const to = move(at, this.#body.length, this.#columns.length, event.ctrlKey);
    const cell = this.#cellAt(to);
    if (cell === undefined) return;
    this.#moveTo(to);
    cell.focus();
  }

  #take(event: KeyboardEvent): void {
    event.preventDefault();
    event.stopPropagation();
  }
}

/** The shared example states of a router's table, and a view of them. */

import busy from "../../tests/fixtures/protocol/router_busy.json";
import empty from "../../tests/fixtures/protocol/router_empty.json";
import filtered from "../../tests/fixtures/protocol/router_filtered.json";
import hostile from "../../tests/fixtures/protocol/router_hostile.json";
import table from "../../tests/fixtures/protocol/router_table.json";
import update from "../../tests/fixtures/protocol/router_update.json";
import { parseState, type RouterState } from "../src/router_protocol";
import { FakeModel, type Mounted, mount, shown } from "./helpers";

const as = (example: unknown) => () => parseState(structuredClone(example));

export const states = {
  busy: as(busy),
  empty: as(empty),
  filtered: as(filtered),
  hostile: as(hostile),
  table: as(table),
};

export const updateExample = update;

export class Table {
  readonly model: FakeModel;
  readonly view: Mounted;

  /** A view of a saved state, or of none yet. */
  constructor(snapshot: unknown = null) {
    this.model = new FakeModel({ view: "router", snapshot });
    this.view = mount(this.model);
  }

  /** A state from the kernel; each is newer than the one before unless it says otherwise. */
  async tell(state: RouterState, seq = state.seq): Promise<void> {
    this.model.receive({ content: { type: "update", v: 1, state: { ...state, seq } }, buffers: [] });
    await shown();
  }

  find(id: string): HTMLElement {
    return this.view.find(id);
  }

  all(id: string): HTMLElement[] {
    return [...this.view.root.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`)];
  }

  /** A cell by the place of its model and its workload. */
  cell(model: number, workload: number): HTMLElement {
    const row = this.all("router-row")[model];
    const found = row?.querySelectorAll<HTMLElement>('[data-testid="router-cell"]')[workload];
    if (found === undefined) throw new Error(`no cell ${model}, ${workload}`);
    return found;
  }

  /** A control of a knob: its slider or its field. */
  knob(id: string, type: "range" | "number"): HTMLInputElement {
    const found = this.find(id).querySelector<HTMLInputElement>(`input[type="${type}"]`);
    if (found === null) throw new Error(`no ${type} in ${id}`);
    return found;
  }

  /** Drag a slider to a position, or write into a field. */
  turn(input: HTMLInputElement, value: string | number): void {
    input.value = String(value);
    input.dispatchEvent(new Event(input.type === "range" ? "input" : "change", { bubbles: true }));
  }

  press(key: string, init: KeyboardEventInit = {}): KeyboardEvent {
    const event = new KeyboardEvent("keydown", {
      key,
      bubbles: true,
      composed: true,
      cancelable: true,
      ...init,
    });
    this.view.root.activeElement?.dispatchEvent(event);
    return event;
  }

  /** What was sent, without the greeting. */
  get sent(): unknown[] {
    return this.model.sent.filter((message) => (message as { type: string }).type !== "ready");
  }
}

/** A table that a kernel attends. */
export async function attended(state: RouterState): Promise<Table> {
  const made = new Table();
  await made.tell(state);
  return made;
}

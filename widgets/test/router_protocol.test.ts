/** States and messages of a router's table, by the examples that both halves share. */

import { beforeEach, describe, expect, test, vi } from "vitest";
import fromBrowser from "../../tests/fixtures/protocol/router_from_browser.json";
import { outgoing, parseMessage, parseState, type RouterMessage } from "../src/router_protocol";
import { logScale, WEIGHT_SCALE } from "../src/router_scales";
import * as words from "../src/router_words";
import { attended, states, Table, updateExample } from "./router_helpers";

beforeEach(() => void vi.spyOn(console, "warn").mockImplementation(() => {}));

const example = () => structuredClone(updateExample) as { v: number; type: string; state: Changeable };
type Example = ReturnType<typeof example>;
type Changeable = Record<string, unknown> & { cells: Record<string, unknown>[][]; models: object[] };

describe("what the kernel sends", () => {
  test("is read as it was written", () => {
    const state = parseMessage(example());
    expect(state).toEqual(parseState(updateExample.state));
    expect(state.seq).toBe(4);
    expect(state.models.map(({ id }) => id)[3]).toBe("vllm/qwen3-8b");
    expect(state.cells[3]?.[0]).toMatchObject({ kind: "scored", rank: 1, wins: 0.66 });
    expect(state.cells[4]?.[0]).toMatchObject({ kind: "filtered", filters: ["availability"] });
    expect(state.runs.map(({ verdict }) => verdict)).toEqual([null, null, true, null]);
  });

  test.each([
    ["another version", (m: Example) => void Object.assign(m, { v: 2 })],
    ["another kind", (m: Example) => void Object.assign(m, { type: "reset" })],
    ["a state of another version", ({ state }: Example) => void Object.assign(state, { v: 2 })],
    ["no cells", ({ state }: Example) => void delete (state as Partial<Changeable>).cells],
    ["a row too few", ({ state }: Example) => void state.cells.pop()],
    ["a cell too few", ({ state }: Example) => void state.cells[2]?.pop()],
    ["a cell of no kind", ({ state }: Example) => void (state.cells[0] ?? []).splice(0, 1, { kind: "x" })],
    [
      "a score that is text",
      ({ state }: Example) => void Object.assign(state.cells[0]?.[0] ?? {}, { score: "1" }),
    ],
    [
      "a basis that nobody knows",
      ({ state }: Example) => void Object.assign(state.models[0] ?? {}, { basis: "guessed" }),
    ],
    ["a seq below zero", ({ state }: Example) => void Object.assign(state, { seq: -1 })],
    ["a detail that is a list", ({ state }: Example) => void Object.assign(state, { detail: [] })],
  ])("with %s is refused", (_what, spoil) => {
    const message = example();
    spoil(message);
    expect(() => parseMessage(message)).toThrow();
  });

  test("says where it is wrong", () => {
    const { state } = example();
    Object.assign(state.cells[0]?.[0] ?? {}, { worth: "much" });
    expect(() => parseState(state)).toThrow('cells.0.0.worth is "much", expected a number or null');
  });

  test("is not half drawn where it is wrong: the table stays as it was", async () => {
    const table = await attended(states.table());
    const before = table.view.root.innerHTML;
    const message = example();
    Object.assign(message.state, { seq: 9, notices: ["new"], runs: [{}] });
    table.model.receive({ content: message, buffers: [] });
    await new Promise((resolve) => requestAnimationFrame(resolve));
    expect(table.view.root.innerHTML).toBe(before);
    expect(console.warn).toHaveBeenCalledWith(
      "cartoolkit: a message was ignored:",
      expect.stringContaining("runs.0.trace_id"),
    );
  });

  test("is ignored where it is older than what is shown", async () => {
    const table = await attended({ ...states.table(), seq: 7 });
    await table.tell({ ...states.table(), notices: ["old"] }, 6);
    expect(table.find("router-notices").textContent).toBe("");
    await table.tell({ ...states.table(), notices: ["new"] }, 8);
    expect(table.find("router-notices").textContent).toBe("new");
  });

  test("may be kept in the notebook, and the newer of both is shown", async () => {
    const table = new Table({ ...states.table(), seq: 5, notices: ["kept"] });
    expect(table.model.sent).toEqual([{ v: 1, type: "ready", seq: 5 }]);
    expect(table.find("router-notices").textContent).toBe("kept");
    await table.tell({ ...states.table(), notices: ["older"] }, 4);
    expect(table.find("router-notices").textContent).toBe("kept");
    expect(table.view.root.querySelector("fieldset")?.disabled).toBe(false);
  });
});

test("every message that the browser sends is one that the kernel takes", () => {
  const valid = fromBrowser.valid.map(({ v: _v, ...message }) => message as unknown as RouterMessage);
  expect(valid.map(outgoing)).toEqual(fromBrowser.valid);
});

describe("scales", () => {
  test("a weight is a hundredth of a slider", () => {
    expect([0, 0.45, 1].map(WEIGHT_SCALE.toPosition)).toEqual([0, 45, 100]);
    expect(WEIGHT_SCALE.toValue(58)).toBe(0.58);
  });

  test("a logarithmic one gives each step the same factor, and goes there and back", () => {
    const scale = logScale(1, 131_072, { whole: true });
    expect([scale.toValue(0), scale.toValue(120)]).toEqual([1, 130_000]);
    // 120 steps for 17 doublings.
    expect([1, 32, 131_072].map(scale.toPosition)).toEqual([0, 35, 120]);
    const usd = logScale(0.00001, 1, { endless: true });
    expect([24, 48, 120, 121].map(usd.toValue)).toEqual([0.0001, 0.001, 1, null]);
    expect([0, 5, null].map(usd.toPosition)).toEqual([0, 120, 121]);
  });
});

describe("words", () => {
  test("shares of draws are never rounded to all or none", () => {
    expect([0, 0.004, 0.005, 0.66, 0.995, 0.996, 1, Number.NaN].map(words.percent)).toEqual([
      "0%",
      "<1%",
      "1%",
      "66%",
      "100%",
      ">99%",
      "100%",
      "–",
    ]);
  });

  test("a weight has as many decimals as it needs, three at most", () => {
    expect([0.45, 0.5, 1 / 3, 0.125, Number.NaN].map(words.weight)).toEqual([
      "0.45",
      "0.50",
      "0.333",
      "0.125",
      "–",
    ]);
  });

  test("a price has three figures", () => {
    expect([0, 0.0061, 0.00012345, 1e-9, 12].map(words.usd)).toEqual([
      "$0",
      "$0.0061",
      "$0.000123",
      "<$0.000001",
      "$12",
    ]);
  });
});

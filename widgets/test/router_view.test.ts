/** The table of models by workload. Expected figures are worked out by hand from tests/fixtures/write_router_examples.py. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RouterState } from "../src/router_protocol";
import { shown } from "./helpers";
import { attended, states, Table, updateExample } from "./router_helpers";

beforeEach(() => void vi.spyOn(console, "warn").mockImplementation(() => {}));
afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
});

const texts = (nodes: Iterable<Element>) => [...nodes].map((node) => node.textContent);
const widths = (cell: Element) =>
  [...cell.querySelectorAll<HTMLElement>(".stack i")].map((i) => i.style.width);

describe("the table", () => {
  test("has workloads across with their weights, and models down with what is known of them", async () => {
    const table = await attended(states.table());
    expect(texts(table.all("router-workload"))).toEqual([
      "Interactive0.45 / 0.40 / 0.15+ 0.00 if local",
      "Batch0.60 / 0.15 / 0.25+ 0.08 if local",
      "Background0.65 / 0.05 / 0.30+ 0.15 if local",
      "LocalPreferred0.55 / 0.20 / 0.25+ 0.20 if local",
      "Fastest0.10 / 0.85 / 0.05+ 0.20 if locallatency: first token",
    ]);
    const models = texts(table.all("router-model")).slice(0, 6);
    expect(models[0]).toBe(
      "smollm2-135m · gguflocal · loaded · 47 calls, 6 failed135M · Q8_0 · measured 2026-11-30",
    );
    expect(models[3]).toBe("qwen3-8bremote · 92 calls, 4 faileddeclared · 8B");
    expect(models[5]).toBe("smollm2-135m · mlxlocal · no calls yetassumed · 135M · not measured yet");
  });

  test("a cell is score, rank, share of draws, and its terms on a scale that all cells share", async () => {
    const table = await attended(states.table());
    const cell = table.cell(0, 0);
    // 0.216 + 0.4 × 5000/6900 + 0.15, of which worth is 0.85536; the largest bonus is 0.20.
    expect(texts(cell.querySelectorAll(".cell-head > *"))).toEqual(["0.656", "#2", "wins 20%"]);
    expect(widths(cell)).toEqual(["18%", "24.15%", "12.5%", "0%"]);
    expect(cell.querySelector<HTMLElement>(".worth")?.style.left).toBe("46.75%");
    expect(widths(table.cell(0, 2))[3]).toBe("12.5%");
    expect(table.find("key-line").textContent).toMatch(/bars from 0 to 1\.20$/);
    expect(table.cell(3, 0).classList.contains("first")).toBe(true);
  });

  test("how sure a term is is drawn and said", async () => {
    const table = await attended(states.table());
    const bases = (cell: Element) =>
      [...cell.querySelectorAll<HTMLElement>(".stack i")].map((i) => i.dataset["basis"]);
    expect(bases(table.cell(0, 0))).toEqual(["measured", "measured", "assumed", undefined]);
    expect(table.cell(3, 0).getAttribute("aria-label")).toBe(
      "qwen3-8b, Interactive: rank 1, score 0.738, wins 66% of the draws; " +
        "quality 0.45 × 0.770 = 0.347 (declared), latency 0.40 × 0.746 = 0.299 (declared), " +
        "cost 0.15 × 0.621 = 0.093 (declared), local bonus 0.00; worth 0.947 × 0.738 = 0.699; " +
        "expected 1.70 s, $0.0061",
    );
  });

  test("a model that is left out says why, in words", async () => {
    const table = await attended(states.table());
    const cell = table.cell(4, 1);
    expect(cell.textContent).toBe("left outnot available here: no key set: OPENAI_API_KEY");
    expect(cell.getAttribute("aria-label")).toBe(
      "gpt-4o-mini, Batch: left out: not available here: no key set: OPENAI_API_KEY",
    );
    expect(table.all("router-model")[4]?.classList.contains("out")).toBe(true);
    expect(table.all("router-model")[5]?.classList.contains("out")).toBe(false);
  });

  test("a cell that is no longer left out shows its score in the same place", async () => {
    const state = states.table();
    const table = await attended(state);
    const cell = table.cell(5, 0);
    const other = state.cells[5]?.[1];
    if (other !== undefined && state.cells[5] !== undefined) state.cells[5][0] = other;
    await table.tell(state, 2);
    expect(table.cell(5, 0)).toBe(cell);
    expect(cell.textContent).toBe("0.684#5wins 1%");
  });

  test("baselines stand under the models", async () => {
    const table = await attended(states.table());
    const rows = table.all("router-baseline");
    expect(rows.map((row) => row.querySelector("th")?.textContent)).toEqual([
      "best constant modelchosen on 60 other items",
      "random at equal costexpected, 60 held-out items",
      "oracleany model right",
    ]);
    expect(rows[0]?.querySelector("td")?.textContent).toBe("qwen3-8b · 77% right");
    expect(rows[0]?.querySelector("td")?.getAttribute("aria-label")).toMatch(/46 of 60 held-out items right/);
  });

  test("a number that the kernel does not know is a dash, and its bar is empty", async () => {
    const state = structuredClone(updateExample.state);
    const cell = one(one(state.cells, 0), 0);
    Object.assign(cell, { score: null, wins: null, worth: null });
    Object.assign(one(cell.terms ?? [], 0), { points: null, value: null });
    const table = new Table(state);
    await shown();
    expect(table.cell(0, 0).querySelector(".cell-head")?.textContent).toBe("–#2wins –");
    expect(widths(table.cell(0, 0))[0]).toBe("0%");
    expect(table.cell(0, 0).querySelector<HTMLElement>(".worth")?.hidden).toBe(true);
  });

  test("without a model there is a sentence, and the question can still be changed", async () => {
    const table = await attended(states.empty());
    expect(table.find("router-notices").textContent).toBe(
      "There is no model to choose from. Add one: router.add(…).",
    );
    expect(table.find("router-grid").hidden).toBe(true);
    expect(table.view.root.querySelector("fieldset")?.disabled).toBe(false);
    await table.tell({ ...states.empty(), notices: [] }, 2);
    expect(table.find("router-empty").textContent).toBe("There is no model to choose from yet.");
  });

  test("many models keep their order and their own cells", async () => {
    const state = states.table();
    const many: RouterState = {
      ...state,
      workloads: [one(state.workloads, 0)],
      models: Array.from({ length: 30 }, (_, k) => ({
        ...one(state.models, 0),
        id: `m/${k}`,
        title: `${k}`,
      })),
      cells: Array.from({ length: 30 }, () => [one(one(state.cells, 0), 0)]),
      baselines: [],
    };
    const table = await attended(many);
    expect(table.all("router-row")).toHaveLength(30);
    expect(table.all("router-row")[29]?.querySelector("th .title")?.textContent).toBe("29");
  });
});

describe("a selected cell", () => {
  test("is asked for by a click and marked at once", async () => {
    const table = await attended(states.table());
    table.cell(0, 3).click();
    expect(table.sent).toEqual([
      { v: 1, type: "select", workload: "local_preferred", model: "cartoolkit/smollm2-135m:gguf" },
    ]);
    expect(table.cell(0, 3).getAttribute("aria-selected")).toBe("true");
    expect(table.cell(3, 0).getAttribute("aria-selected")).toBe("false");
    await shown();
    expect(table.find("router-detail").classList.contains("late")).toBe(true);
  });

  test("is told line by line, with its sum, its worth, who is next and what would change it", async () => {
    const table = await attended(states.table());
    const detail = table.find("router-detail");
    expect(detail.querySelector("h3")?.textContent).toBe("Interactive → vllm/qwen3-8b");
    expect(texts(table.all("detail-line")[1]?.children ?? [])).toEqual([
      "latency",
      "0.299",
      "declared",
      "0.40 × 0.746 = 0.299, where 0.746 = 5,000 / (5,000 + 1,700) " +
        "[first token 250 declared + answer 1,450 declared]",
    ]);
    expect(texts(detail.querySelectorAll(".sums dt"))).toEqual(["score", "worth", "then"]);
    expect(table.find("fallbacks").textContent).toBe(
      "smollm2-135m · gguf → smollm2-135m · torch → gemma3-270m · torch",
    );
    expect(texts(table.find("changes").querySelectorAll("li"))[0]).toBe(
      "Latency weight above 0.58 (now 0.40) → smollm2-135m · gguf.",
    );
  });

  test("that is left out says why, and a local model can be measured from there", async () => {
    const table = await attended(states.filtered());
    const detail = table.find("router-detail");
    expect(texts(detail.querySelectorAll(".sums dt"))).toEqual(["why not", "then"]);
    table.find("probe-one").click();
    expect(table.sent).toEqual([{ v: 1, type: "probe", model: "cartoolkit/smollm2-135m:mlx" }]);
  });

  test("keeps what would change it until that is worked out anew", async () => {
    const state = states.table();
    const { detail } = state;
    if (detail === null) throw new Error("nothing is selected");
    const table = await attended(state);
    const items = () => texts(table.find("changes").querySelectorAll("li"));
    const late = () => table.find("changes").classList.contains("late");
    await table.tell({ ...state, detail: { ...detail, changes: [] } }, 2);
    expect([items().length, late()]).toEqual([6, true]);
    await table.tell({ ...state, detail: { ...detail, changes: [{ text: "new" }] } }, 3);
    expect([items(), late()]).toEqual([["new"], false]);
    const selected = { workload: "batch", model: "vllm/qwen3-8b" };
    await table.tell({ ...state, selected, detail: { ...detail, changes: [] } }, 4);
    expect([items(), late()]).toEqual([[], false]);
    await table.tell({ ...state, selected: null, detail: null }, 5);
    expect(table.find("changes").hidden).toBe(true);
  });

  test("of a remote model offers no measurement", async () => {
    const table = await attended(states.table());
    expect(table.find("probe-one").hidden).toBe(true);
  });

  test("goes back to the kernel's after a while without an answer", async () => {
    const table = await attended(states.table());
    vi.useFakeTimers();
    table.cell(0, 3).click();
    vi.advanceTimersByTime(2000);
    expect(table.cell(0, 3).getAttribute("aria-selected")).toBe("false");
    expect(table.cell(3, 0).getAttribute("aria-selected")).toBe("true");
  });
});

describe("the keyboard", () => {
  test("comes into the table at the selected cell, and only there", async () => {
    const table = await attended(states.table());
    const stops = [...table.find("router-grid").querySelectorAll('[tabindex="0"]')];
    expect(stops).toEqual([table.cell(3, 0)]);
  });

  test("moves by arrows, Home and End, and stays inside", async () => {
    const table = await attended(states.table());
    const at = () => table.view.root.activeElement;
    table.cell(0, 0).focus();
    table.press("ArrowDown");
    table.press("ArrowRight");
    expect(at()).toBe(table.cell(1, 1));
    table.press("End");
    expect(at()).toBe(table.cell(1, 4));
    table.press("ArrowRight");
    expect(at()).toBe(table.cell(1, 4));
    table.press("Home", { ctrlKey: true });
    expect(at()).toBe(table.cell(0, 0));
    table.press("End", { ctrlKey: true });
    expect(at()).toBe(table.all("router-baseline")[2]?.querySelectorAll("td")[4]);
    expect(table.find("router-grid").querySelectorAll('[tabindex="0"]')).toHaveLength(1);
    expect(table.sent).toEqual([]);
  });

  test.each(["Enter", " "])("selects by %j, which the page does not see", async (key) => {
    const table = await attended(states.table());
    table.cell(1, 1).focus();
    expect(table.press(key).defaultPrevented).toBe(true);
    expect(table.sent).toEqual([
      { v: 1, type: "select", workload: "batch", model: "cartoolkit/smollm2-135m:torch" },
    ]);
  });

  test("a baseline selects nothing", async () => {
    const table = await attended(states.table());
    table.all("router-baseline")[0]?.querySelector<HTMLElement>("td")?.focus();
    table.press("Enter");
    expect(table.sent).toEqual([]);
  });

  test("stays on its cell when models come or go", async () => {
    const state = states.table();
    const table = await attended(state);
    table.cell(3, 2).focus();
    const fewer = { ...state, models: state.models.slice(1), cells: state.cells.slice(1) };
    await table.tell(fewer, 2);
    expect(table.view.root.activeElement).toBe(table.cell(2, 2));
  });
});

describe("weights", () => {
  test("are those of the selected cell's workload, or of another one that is picked", async () => {
    const table = await attended(states.filtered());
    const menu = table.find("workload") as HTMLSelectElement;
    expect([menu.value, table.knob("weight-latency", "number").value]).toEqual(["fastest", "0.85"]);
    menu.value = "batch";
    menu.dispatchEvent(new Event("change"));
    expect(table.knob("weight-quality", "number").value).toBe("0.60");
    await table.tell(states.filtered(), 9);
    expect(menu.value).toBe("batch");
  });

  test("are sent while a slider is dragged, at most one in 40 ms, the last of them for sure", async () => {
    const table = await attended(states.table());
    vi.useFakeTimers();
    const slider = table.knob("weight-latency", "range");
    for (const value of [41, 45, 50, 58]) table.turn(slider, value);
    const weight = (value: number) => ({
      v: 1,
      type: "weight",
      workload: "interactive",
      name: "latency",
      value,
    });
    expect(table.sent).toEqual([weight(0.41)]);
    expect(table.knob("weight-latency", "number").value).toBe("0.58");
    vi.advanceTimersByTime(39);
    expect(table.sent).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(table.sent).toEqual([weight(0.41), weight(0.58)]);
    vi.advanceTimersByTime(1000);
    expect(table.sent).toHaveLength(2);
  });

  test("stay in the hand while older ones come back, and the others follow the kernel", async () => {
    const state = states.table();
    const table = await attended(state);
    const slider = table.knob("weight-latency", "range");
    slider.dispatchEvent(new Event("pointerdown"));
    table.turn(slider, 60);
    await table.tell(withWeights(state, { latency: 0.5, quality: 0.375, cost: 0.125 }), 2);
    expect(slider.value).toBe("60");
    expect(table.knob("weight-latency", "number").value).toBe("0.60");
    expect(table.knob("weight-quality", "number").value).toBe("0.375");
    slider.dispatchEvent(new Event("pointerup"));
    await table.tell(withWeights(state, { latency: 0.6, quality: 0.3, cost: 0.1 }), 3);
    await table.tell(withWeights(state, { latency: 0.25, quality: 0.5, cost: 0.25 }), 4);
    expect(slider.value).toBe("25");
  });

  test("that the kernel refuses go back to its own", async () => {
    const table = await attended(states.table());
    vi.useFakeTimers();
    table.turn(table.knob("weight-cost", "range"), 90);
    vi.advanceTimersByTime(2000);
    expect(table.knob("weight-cost", "range").value).toBe("15");
    expect(table.knob("weight-cost", "number").value).toBe("0.15");
  });

  test("can be written; what is no weight is taken back", async () => {
    const table = await attended(states.table());
    const field = table.knob("weight-local_bonus", "number");
    for (const text of ["1.5", "-0.1", ""]) {
      table.turn(field, text);
      expect(field.value).toBe("0.00");
    }
    expect(table.sent).toEqual([]);
    table.turn(field, "0.125");
    expect(table.sent).toEqual([
      { v: 1, type: "weight", workload: "interactive", name: "local_bonus", value: 0.125 },
    ]);
  });

  test("can be reset once they are changed", async () => {
    const state = states.table();
    const table = await attended(state);
    const reset = table.find("reset") as HTMLButtonElement;
    expect(reset.disabled).toBe(true);
    await table.tell(withWeights(state, { changed: true }), 2);
    expect(reset.disabled).toBe(false);
    expect(table.all("router-workload")[0]?.textContent).toMatch(/changed$/);
    reset.click();
    expect(table.sent).toEqual([{ v: 1, type: "reset" }]);
  });

  test("that were just dragged are shown as they were as soon as a reset is answered", async () => {
    const state = states.table();
    const table = await attended(state);
    const slider = table.knob("weight-latency", "range");
    slider.dispatchEvent(new Event("pointerdown"));
    table.turn(slider, 60);
    await table.tell(withWeights(state, { latency: 0.6, quality: 0.3, cost: 0.1, changed: true }), 2);
    slider.dispatchEvent(new Event("pointerup"));
    (table.find("reset") as HTMLButtonElement).click();
    await table.tell(state, 3);
    expect(slider.value).toBe("40");
    expect(table.knob("weight-latency", "number").value).toBe("0.40");
  });

  test("a change of who is first is told to those who do not see it", async () => {
    const state = states.table();
    const table = await attended(state);
    const spoken = table.view.root.querySelector(".spoken");
    expect(spoken?.textContent).toBe("");
    const [first, fourth] = [one(one(state.cells, 0), 0), one(one(state.cells, 3), 0)];
    Object.assign(first, { rank: 1 });
    Object.assign(fourth, { rank: 2 });
    await table.tell(state, 2);
    expect(spoken?.textContent).toBe("Interactive: now smollm2-135m · gguf.");
  });
});

describe("the question", () => {
  test("stands in chips", async () => {
    const table = await attended(states.table());
    expect(texts(table.view.root.querySelectorAll(".chip"))).toEqual([
      "prompt 300 tokens",
      "answer 128 tokens",
      "task chat",
      "at most 2.00 s",
      "Thompson, prior strength 4",
    ]);
  });

  test("has lengths that are written or dragged on a logarithmic scale", async () => {
    const table = await attended(states.table());
    const [slider, field] = (["range", "number"] as const).map((type) =>
      table.knob("question-prompt_tokens", type),
    );
    // 120 steps from 1 to 131,072: the middle is √131072 = 362, in two figures 360.
    if (slider !== undefined) table.turn(slider, 60);
    expect(table.sent).toEqual([{ v: 1, type: "question", name: "prompt_tokens", value: 360 }]);
    expect(slider?.getAttribute("aria-valuetext")).toBe("360 tokens");
    if (field !== undefined) table.turn(field, "12.4");
    expect(field?.value).toBe("12");
  });

  test("every step of the arrows moves a length, also where several round to the same", async () => {
    const table = await attended({
      ...states.table(),
      question: { ...states.table().question, prompt_tokens: 1 },
    });
    const slider = table.knob("question-prompt_tokens", "range");
    expect(slider.value).toBe("0");
    table.turn(slider, 1);
    expect(slider.value).toBe("1");
  });

  test("has bounds that can be taken away", async () => {
    const table = await attended(states.table());
    const slider = table.knob("question-max_cost_usd", "range");
    expect([slider.value, slider.max, slider.getAttribute("aria-valuetext")]).toEqual([
      "121",
      "121",
      "no limit",
    ]);
    table.turn(table.knob("question-max_cost_usd", "number"), "0.002");
    expect(Number(slider.value)).toBeLessThan(121);
    table.turn(table.knob("question-max_latency_ms", "number"), "");
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(table.sent).toEqual([
      { v: 1, type: "question", name: "max_cost_usd", value: 0.002 },
      { v: 1, type: "question", name: "max_latency_ms", value: null },
    ]);
    expect(table.knob("question-max_latency_ms", "range").value).toBe("121");
  });

  test("is sent once when Enter is followed by a change", async () => {
    const table = await attended(states.table());
    const field = table.knob("question-max_latency_ms", "number");
    field.focus();
    field.value = "1000";
    table.press("Enter");
    field.dispatchEvent(new Event("change"));
    expect(table.sent).toEqual([{ v: 1, type: "question", name: "max_latency_ms", value: 1000 }]);
  });

  test("has a task", async () => {
    const table = await attended(states.table());
    const menu = table.find("task") as HTMLSelectElement;
    expect(texts(menu.options)).toEqual(["chat", "classify", "summarize", "reasoning", "code", "extract"]);
    menu.value = "code";
    menu.dispatchEvent(new Event("change"));
    expect(table.sent).toEqual([{ v: 1, type: "question", name: "task", value: "code" }]);
    await table.tell({ ...states.table(), notices: ["still the old task"] }, 2);
    expect(menu.value).toBe("code");
  });
});

describe("what goes on", () => {
  test("is a bar, and meanwhile nothing else is measured", async () => {
    const table = await attended(states.busy());
    expect(table.find("busy").textContent).toBe("Probing smollm2-135m · gguf · 7 of 40");
    expect(table.find("busy").querySelector('[role="progressbar"]')?.getAttribute("aria-valuenow")).toBe(
      "18",
    );
    expect((table.find("probe-all") as HTMLButtonElement).disabled).toBe(true);
    await table.tell({ ...states.busy(), busy: { what: "Answering", done: 0, total: 0 } }, 8);
    expect(table.find("busy").textContent).toBe("Answering …");
    await table.tell({ ...states.busy(), busy: null }, 9);
    expect(table.find("busy").hidden).toBe(true);
    table.find("probe-all").click();
    expect(table.sent).toEqual([{ v: 1, type: "probe", model: null }]);
  });
});

describe("answers", () => {
  const thumbs = (card: HTMLElement | undefined) =>
    [...(card?.querySelectorAll<HTMLButtonElement>(".thumbs button") ?? [])].map((button) => [
      button.getAttribute("aria-pressed"),
      button.disabled,
    ]);

  test("say who, how long, what, and how it came to it", async () => {
    const table = await attended(states.table());
    const lines = table.all("router-answer").map((card) => texts(card.children).slice(0, 3));
    expect(lines[0]).toEqual([
      "vllm/qwen3-8bfailed · 311 ms · 0 tokens",
      "",
      "vllm/qwen3-8b was tried first and failed: the server answered with status 503.",
    ]);
    expect(lines[1]?.slice(0, 2)).toEqual([
      "cartoolkit/smollm2-135m:gguf1.91 s · 21 tokens",
      "The sky is blue because air scatters blue light more than red light.\nThat is all.",
    ]);
    expect(lines[3]?.[0]).toBe("cartoolkit/gemma3-270m:torchanswering · 1 token");
  });

  test("are judged once, and only where there is an answer", async () => {
    const table = await attended(states.table());
    const cards = table.all("router-answer");
    expect(cards.map((card) => card.querySelector<HTMLElement>(".thumbs")?.hidden)).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(thumbs(cards[1])).toEqual([
      ["false", false],
      ["false", false],
    ]);
    expect(thumbs(cards[2])).toEqual([
      ["true", true],
      ["false", true],
    ]);
    cards[1]?.querySelectorAll<HTMLButtonElement>(".thumbs button")[1]?.click();
    expect(table.sent).toEqual([{ v: 1, type: "verdict", trace_id: "t2", accepted: false }]);
    expect(thumbs(cards[1])).toEqual([
      ["false", true],
      ["true", true],
    ]);
  });

  test("a verdict that the kernel did not take can be given again", async () => {
    const table = await attended(states.table());
    vi.useFakeTimers();
    table.all("router-answer")[1]?.querySelector<HTMLButtonElement>(".thumbs button")?.click();
    vi.advanceTimersByTime(2000);
    expect(thumbs(table.all("router-answer")[1])).toEqual([
      ["false", false],
      ["false", false],
    ]);
  });

  test("a long one opens on demand", async () => {
    const table = await attended(states.hostile());
    const card = table.all("router-answer")[0];
    const text = card?.querySelector(".answer-text");
    const more = card?.querySelector<HTMLElement>(".answer-foot .link");
    expect(text?.classList.contains("cut")).toBe(true);
    more?.click();
    expect(text?.classList.contains("cut")).toBe(false);
    expect(more?.textContent).toBe("show less");
  });
});

describe("a saved notebook", () => {
  test("shows the table; without a kernel nothing can be changed, and it says so", async () => {
    vi.useFakeTimers();
    const table = new Table(states.table());
    expect(table.cell(3, 0).textContent).toBe("0.738#1wins 66%");
    expect(table.view.root.querySelector("fieldset")?.disabled).toBe(true);
    expect(table.find("knobs-note").hidden).toBe(true);
    vi.advanceTimersByTime(3000);
    expect(table.find("knobs-note").textContent).toMatch(/^No kernel answers/);
    const disabled = ["probe-all", "reset", "thumb-good", "thumb-bad"].map(
      (id) => (table.find(id) as HTMLButtonElement).disabled,
    );
    expect(disabled).toEqual([true, true, true, true]);
    table.cell(0, 0).click();
    expect(table.sent).toEqual([]);
    expect(table.cell(3, 0).getAttribute("aria-selected")).toBe("true");
  });

  test("before anything has come it waits, and says if nobody answers", () => {
    vi.useFakeTimers();
    const table = new Table();
    expect(table.find("router-empty").textContent).toBe("Waiting for the table.");
    vi.advanceTimersByTime(3000);
    expect(table.find("router-empty").textContent).toMatch(/^No kernel answers/);
  });
});

describe("hostile names", () => {
  test("are text wherever they appear", async () => {
    const table = await attended(states.hostile());
    const { root } = table.view;
    expect(root.querySelectorAll("img, script")).toHaveLength(0);
    const nasty = "<img src=x onerror=alert(1)>";
    expect(table.all("router-model")[0]?.querySelector(".title")?.textContent).toBe(`evil/${nasty}`);
    expect(table.find("router-notices").querySelector("li")?.textContent).toBe(nasty);
    expect(root.querySelector(".answer-text")?.textContent?.startsWith(nasty)).toBe(true);
    expect(table.cell(1, 0).textContent).toContain(nasty);
    expect(table.all("router-baseline")[0]?.textContent).toContain(nasty);
    expect(table.find("changes").textContent).toContain(nasty);
  });

  test("stand apart from the text around them", async () => {
    const table = await attended(states.hostile());
    const names = [...table.view.root.querySelectorAll(".title, .answer .story, .fallbacks > *, .how > *")];
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((node) => node.localName !== "bdi")).toEqual([]);
  });
});

test("a view leaves nothing behind when it is closed", async () => {
  const table = await attended(states.table());
  const slider = table.knob("weight-latency", "range");
  table.turn(slider, 41);
  table.turn(slider, 42);
  table.view.dispose();
  expect(table.sent.at(-1)).toMatchObject({ type: "weight", value: 0.42 });
  expect(table.model.listenerCount).toBe(0);
  expect(table.view.el.childElementCount).toBe(0);
});

function one<T>(list: readonly T[], i: number): T {
  const found = list[i];
  if (found === undefined) throw new Error(`nothing at ${i}`);
  return found;
}

/** The state with other settings of its first workload. */
function withWeights(state: RouterState, settings: Partial<RouterState["workloads"][number]>): RouterState {
  const [first, ...others] = state.workloads;
  if (first === undefined) throw new Error("no workload");
  return { ...state, workloads: [{ ...first, ...settings }, ...others] };
}

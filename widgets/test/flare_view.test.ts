/** The view of a run that looks things up. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  begin,
  examples,
  FakeModel,
  type Mounted,
  mount,
  type Sent,
  type Spec,
  shown,
  update,
} from "./helpers";

beforeEach(() => void vi.spyOn(console, "warn").mockImplementation(() => {}));
afterEach(() => document.body.replaceChildren());

async function played(...messages: Sent[]): Promise<{ model: FakeModel; view: Mounted }> {
  const model = new FakeModel({ view: "flare", threshold: 0.6 });
  const view = mount(model);
  for (const message of messages) model.receive(message);
  await shown();
  return { model, view };
}

const all = (view: Mounted, id: string) => [
  ...view.root.querySelectorAll<HTMLElement>(`[data-testid="${id}"]`),
];
const one = (view: Mounted, id: string, i = 0) => all(view, id)[i] ?? document.createElement("i");
const tab = (view: Mounted, name: string) =>
  view.root.querySelector<HTMLElement>(`[data-tab="${name}"]`) ?? document.createElement("i");
const selected = (view: Mounted) =>
  [...view.root.querySelectorAll('[role="tab"][aria-selected="true"]')].map((node) => node.textContent);
const press = (target: Element, key: string) =>
  target.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true }),
  );

const LOOK_UP = {
  at: 3,
  position: 3,
  keep: 1,
  dropped: 2,
  query: "q",
  reason: "r",
  trigger_steps: [1],
  upfront: false,
  outcome: "found",
  note: "",
  hits: [],
  ms: 1,
  prefill_tokens: null,
  reused_tokens: null,
  prefill_ms: null,
  chances: [],
};
const POLICY = { name: "rollback", trigger: "t", threshold: 0.6, retriever: "r" };
const words = (...texts: string[]): Spec[] => texts.map((text) => ({ text }));

test("before a run it says what to do", async () => {
  const { view } = await played();
  expect(view.find("status").textContent).toBe(
    "Nothing has been asked yet. Write a question and press Answer.",
  );
  expect(view.find("run-view").hasAttribute("data-none")).toBe(true);
});

test("a run is told as it goes: the prompt, the look-up, the passages, the end", async () => {
  const { model, view } = await played(examples.flareStart());
  const status = () => view.find("status").textContent;
  expect(status()).toBe("reading the prompt 0 / 29 tokens");
  expect(view.find("policy").textContent).toMatch(/^rollback.*below 0\.6/);
  model.receive(examples.flareDoubt());
  await shown();
  expect(status()).toBe("looking up… · 3 tokens");
  expect(view.root.querySelector("[aria-live].spoken")?.textContent).toBe("Looking something up.");
  model.receive(examples.flareLookUp());
  await shown();
  expect(status()).toBe("reading the passages 12 / 42 tokens · 2 tokens kept, 1 dropped");
  model.receive(examples.flareReplay());
  await shown();
  expect(status()).toMatch(/^5 tokens kept, 1 dropped · 8.0 tok\/s/);
});

test("a replay shows the same page as the updates that it replaces", async () => {
  const steady = await played(
    examples.flareStart(),
    examples.flareDoubt(),
    examples.flareLookUp(),
    examples.flareReplay(),
  );
  const late = await played(examples.flareReplay());
  const page = ({ view }: { view: Mounted }) => view.find("tokens").innerHTML;
  expect(page(late)).toBe(page(steady));
  expect(one(late.view, "look-ups").innerHTML).toBe(one(steady.view, "look-ups").innerHTML);
});

describe("the text", () => {
  test("keeps what was dropped in sight, struck, and marks words from a passage", async () => {
    const { view } = await played(examples.flareReplay());
    const has = (name: string) => view.tokens().map((token) => token.classList.contains(name));
    expect(has("dropped")).toEqual([false, false, true, false, false, false]);
    expect(has("retrieved")).toEqual([false, false, false, true, false, false]);
    expect(view.tokens()[2]?.getAttribute("aria-label")).toMatch(/rolled back$/);
    expect(view.tokens()[3]?.getAttribute("aria-label")).toMatch(/from a passage$/);
  });

  test("has a mark between what was dropped and what came instead", async () => {
    const { view } = await played(examples.flareReplay());
    const options = [...view.find("tokens").querySelectorAll<HTMLElement>('[role="option"]')];
    expect(options.map(({ dataset }) => dataset["lookUp"] ?? dataset["index"])).toEqual([
      "0",
      "1",
      "2",
      "0",
      "3",
      "4",
      "1",
      "5",
    ]);
    expect(all(view, "look-up-mark").map((mark) => mark.getAttribute("aria-label"))).toEqual([
      "look-up 1, at token 2, after “It is”: 2 passages, 1 of them new in the prompt",
      "look-up 2, at token 4, after “It is Canberra.”: the look-up failed: <index> is gone; the text went on",
    ]);
  });

  test("puts a mark before the answer, at its end, and where tokens come after it later", async () => {
    const first = { ...LOOK_UP, at: 0, keep: 0, dropped: 0, upfront: true };
    const { model, view } = await played(begin("r"), update({ seq: 2, look_ups: [first] }));
    expect(one(view, "look-up-mark").getAttribute("aria-label")).toMatch(/^look-up 1, before the answer/);
    const mark = one(view, "look-up-mark");
    model.receive(update({ seq: 3, look_ups: [first, { ...LOOK_UP, at: 1, dropped: 0 }] }, 0, words("a\n")));
    model.receive(update({ seq: 4 }, 1, words("b")));
    await shown();
    const options = [...view.find("tokens").querySelectorAll<HTMLElement>('[role="option"]')];
    expect(options.map(({ dataset }) => dataset["lookUp"] ?? "token")).toEqual(["0", "token", "1", "token"]);
    expect(options[0]).toBe(mark);
  });

  test("is copied without what was dropped and without marks", async () => {
    const { view } = await played(examples.flareReplay());
    const copied = (select: (range: Range) => void) => {
      const range = document.createRange();
      select(range);
      const selection = { rangeCount: 1, getRangeAt: () => range } as unknown as Selection;
      Object.assign(view.root, { getSelection: () => selection });
      const setData = vi.fn();
      const event = Object.assign(new Event("copy", { cancelable: true }), { clipboardData: { setData } });
      view.find("tokens").dispatchEvent(event);
      return [setData.mock.calls, event.defaultPrevented];
    };
    const text = [["text/plain", "It is Canberra."]];
    expect(copied((range) => range.selectNodeContents(view.find("tokens")))).toEqual([text, true]);
    const dropped = view.tokens()[2] ?? document.body;
    expect(copied((range) => range.selectNodeContents(dropped))).toEqual([[], true]);
  });

  test("loses what a stop string takes away, with everything else in place", async () => {
    const { model, view } = await played(
      begin("r", words("a", " b\n", "END")),
      update({ seq: 2, retrieved: [1], look_ups: [{ ...LOOK_UP, at: 1, dropped: 0 }] }),
    );
    const first = view.tokens()[0];
    model.set("selected", 2);
    model.receive(update({ seq: 3 }, 1, [{ text: " b" }, { text: "", label: "END" }]));
    await shown();
    expect(view.find("tokens").textContent).toBe("a b");
    expect(view.tokens()).toHaveLength(3);
    expect(view.tokens()[0]).toBe(first);
    expect(view.tokens()[1]?.classList.contains("retrieved")).toBe(true);
    expect(view.tokens()[2]?.classList.contains("selected")).toBe(true);
    expect(view.find("tokens").querySelectorAll(".paragraph")).toHaveLength(1);
    expect(all(view, "look-up-mark")).toHaveLength(1);
  });
});

describe("a mark", () => {
  test("chooses its look-up by a click, in the text, the timeline and the plot", async () => {
    const { view } = await played(examples.flareReplay());
    tab(view, "token").click();
    one(view, "look-up-mark", 1).click();
    expect(selected(view)).toEqual(["Look-ups 2"]);
    expect(all(view, "look-up").map((card) => card.classList.contains("selected"))).toEqual([false, true]);
    expect(one(view, "look-up-mark", 1).getAttribute("aria-selected")).toBe("true");
    expect(view.root.querySelector(".made.selected")?.textContent).toBe("▲2");
    press(one(view, "look-up", 1), "Escape");
    expect(view.root.querySelector(".look-up.selected, .look-up-mark.selected, .made.selected")).toBeNull();
  });

  test("is reached with the arrows, between its tokens, and chosen with Enter", async () => {
    const { view } = await played(examples.flareReplay());
    view.tokens()[2]?.focus();
    press(view.tokens()[2] ?? document.body, "ArrowRight");
    expect(view.root.activeElement).toBe(one(view, "look-up-mark"));
    expect(view.root.querySelectorAll('.tokens [tabindex="0"]')).toHaveLength(1);
    press(one(view, "look-up-mark"), "Enter");
    expect(one(view, "look-up").classList.contains("selected")).toBe(true);
    press(one(view, "look-up-mark"), "ArrowRight");
    expect(view.root.activeElement).toBe(view.tokens()[3]);
    press(view.tokens()[3] ?? document.body, "ArrowLeft");
    expect(view.root.activeElement).toBe(one(view, "look-up-mark"));
  });

  test("in the plot chooses its look-up and no token", async () => {
    const { model, view } = await played(examples.flareReplay());
    view.root
      .querySelector('.made[data-look-up="0"]')
      ?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    expect(one(view, "look-up").classList.contains("selected")).toBe(true);
    expect(model.traits.selected).toBeNull();
  });
});

describe("the timeline", () => {
  const parts = (card: HTMLElement) =>
    Object.fromEntries(
      [...card.querySelectorAll("dt")].map((dt) => [dt.textContent, dt.nextElementSibling?.textContent]),
    );

  test("says why, what was asked, what came, what it changed and what it cost", async () => {
    const { view } = await played(examples.flareReplay());
    const card = one(view, "look-up");
    expect(card.querySelector("h4")?.textContent).toBe("1at token 2, after “It is”");
    expect(parts(card)).toEqual({
      why: "' Sydney' at 0.375, below 0.6",
      asked: "What is the capital of Australia? It is",
      found: "2 passages, 1 of them new in the prompt",
      note: "1 did not fit into max_context_tokens=64",
      changed: "␣Sydney0.375 → 0.063␣Canberra0.250 → 0.875",
      cost: "dropped 1 token · read 30 tokens · re-used 12 · look-up 4.5 ms · reading 63 ms",
    });
    expect(card.querySelector("mark")?.textContent).toBe("Canberra");
    expect([...card.querySelectorAll(".hit")].map((hit) => hit.classList.contains("left-out"))).toEqual([
      false,
      true,
    ]);
    expect(card.querySelector(".left-out .why-not")?.textContent).toBe("did not enter the prompt");
  });

  test("tells a look-up that failed in words", async () => {
    const { view } = await played(examples.flareReplay());
    const card = one(view, "look-up", 1);
    expect(card.dataset["outcome"]).toBe("failed");
    expect(parts(card)["found"]).toBe("the look-up failed: <index> is gone; the text went on");
  });

  test("says so while there is none", async () => {
    const { model, view } = await played(begin("r", words("a"), { policy: POLICY }));
    expect(view.find("look-ups").textContent).toBe("Nothing has been looked up so far.");
    model.receive(update({ seq: 2, state: "finished" }));
    await shown();
    expect(view.find("look-ups").textContent).toMatch(/^Nothing was looked up/);
  });

  test("opens a long passage and a long query on demand, and keeps them open", async () => {
    const hit = { id: "1", title: "", source: "", score: 1, text: "x".repeat(2000), added: true, used: [] };
    const look = { ...LOOK_UP, query: "y ".repeat(200), hits: [hit] };
    const { model, view } = await played(begin("r", words("a")), update({ seq: 2, look_ups: [look] }));
    const text = () => view.root.querySelector(".passage-text")?.textContent?.length;
    const button = () => view.root.querySelector<HTMLElement>('.hit [data-action="open"]');
    expect(text()).toBe(242);
    expect(button()?.textContent).toBe("show all 2,000 characters");
    button()?.focus();
    button()?.click();
    expect(text()).toBe(2000);
    expect(view.root.activeElement).toBe(button());
    model.receive(update({ seq: 3, look_ups: [{ ...look, prefill_ms: 7 }] }));
    await shown();
    expect(text()).toBe(2000);
    expect(view.root.querySelector("q")?.className).toBe("cut");
    view.root.querySelector<HTMLElement>('[data-hit="-1"]')?.click();
    expect(view.root.querySelector("q")?.className).toBe("");
  });

  test("keeps the elements of cards that have not changed", async () => {
    const { model, view } = await played(begin("r", words("a")), update({ seq: 2, look_ups: [LOOK_UP] }));
    const title = one(view, "look-up").querySelector("button");
    model.receive(update({ seq: 3, look_ups: [{ ...LOOK_UP }, { ...LOOK_UP, query: "q2" }] }));
    await shown();
    expect(all(view, "look-up")).toHaveLength(2);
    expect(one(view, "look-up").querySelector("button")).toBe(title);
  });
});

describe("beside the text", () => {
  test("a token that is chosen comes to the front, and the tabs take the arrow keys", async () => {
    const { view } = await played(examples.flareReplay());
    expect(selected(view)).toEqual(["Look-ups 2"]);
    view.tokens()[2]?.click();
    expect(selected(view)).toEqual(["Token"]);
    expect(view.find("candidates").hidden).toBe(false);
    expect(view.find("look-ups").hidden).toBe(true);
    press(tab(view, "token"), "ArrowRight");
    expect(selected(view)).toEqual(["Look-ups 2"]);
    expect(view.root.activeElement).toBe(tab(view, "look-ups"));
  });

  test("a token names its place in the answer where that is not its number", async () => {
    const { model, view } = await played(examples.flareReplay());
    const states = () =>
      [...view.find("candidates").querySelectorAll(".state")].map((node) => node.textContent);
    model.set("selected", 2);
    expect(states()).toEqual(["rolled back"]);
    model.set("selected", 3);
    expect(states()).toEqual(["place 2"]);
  });
});

describe("the plot", () => {
  test("draws a dropped token under the one that was written over it", async () => {
    const { view } = await played(examples.flareReplay());
    const d = (name: string) => view.root.querySelector(`path.${name}`)?.getAttribute("d");
    // 544 px for 5 places from 34 on: the third is at 306; heights are those of .875, .375 and .875 of 142 px.
    expect(d("draft-line")).toBe("M197.2 25.8L306 96.8");
    expect(d("curve")).toContain("L306 25.8");
    expect(view.root.querySelector(".marks-under .shade")?.getAttribute("d")).toMatch(/^M251\.6 8h108\.8V/);
    expect(d("trigger")).toContain("M306 96.8h0");
  });

  test("selects the dropped one of two at a place where the pointer is nearer to it", async () => {
    const { model, view } = await played(examples.flareReplay());
    const svg = view.find("plot").querySelector("svg");
    const click = (clientX: number, clientY: number) =>
      svg?.dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true }));
    click(306, 100);
    expect(model.traits.selected).toBe(2);
    click(306, 20);
    expect(model.traits.selected).toBe(3);
  });
});

describe("another threshold", () => {
  const line = (view: Mounted) => view.find("what-if").textContent;
  const supposed = (view: Mounted) => view.root.querySelectorAll(".supposed").length;

  test("is offered while it is the run's own", async () => {
    const { view } = await played(examples.flareReplay());
    expect(line(view)).toMatch(/^Drag the threshold/);
    expect(supposed(view)).toBe(0);
    expect(view.root.querySelectorAll(".made")).toHaveLength(2);
  });

  test("is answered in a sentence and with hollow triangles", async () => {
    const { model, view } = await played(examples.flareReplay());
    model.set("threshold", 0.4);
    expect(line(view)).toMatch(/^Trying 0.40 …/);
    expect(supposed(view)).toBe(0);
    model.receive(examples.flareWhatIf());
    await shown();
    expect(line(view)).toBe(
      "At 0.40 this run would have looked up once (it did twice). same draws, up to the first change",
    );
    expect(view.find("what-if").classList.contains("late")).toBe(false);
    expect(supposed(view)).toBe(1);
    expect(view.root.querySelector(".ring")?.getAttribute("d")).toBe("M306 96.8h0");
    model.set("threshold", 0.3);
    expect(view.find("what-if").classList.contains("late")).toBe(true);
    model.set("threshold", 0.6);
    expect(supposed(view)).toBe(0);
  });

  test("of a run that goes on is answered so far, and for a run that looked nothing up", async () => {
    const { model, view } = await played(begin("r", words("a"), { policy: POLICY }));
    model.set("threshold", 0.8);
    const whatIf = { threshold: 0.8, policy: "p", look_ups: [], runs: true };
    model.receive(update({ seq: 2, what_if: whatIf }));
    await shown();
    expect(line(view)).toMatch(/^At 0.80 this run would have looked nothing up so far \(it did not\)\./);
  });

  test("cannot be tried in a saved notebook", async () => {
    const { content, buffers } = examples.flareReplay();
    const view = mount(new FakeModel({ view: "flare", threshold: 0.6, snapshot: { ...content, buffers } }));
    expect(line(view)).toMatch(/^This run looked up twice. A kernel is needed/);
  });
});

describe("under the plot", () => {
  test("stands what was used of the budget", async () => {
    const { view } = await played(examples.flareReplay());
    expect([...view.find("budget").querySelectorAll("dd")].map((dd) => dd.textContent)).toEqual([
      "1 of 3",
      "1",
      "5 of 6 decoded",
      "11 of 64",
    ]);
  });

  test("stands the same question under other policies, in each state", async () => {
    const { model, view } = await played(examples.flareReplay());
    const rows = all(view, "beside-row");
    expect(rows.map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
      ["rollback", "It is Canberra.", "2", "6", "59", "750 ms"],
      ["none", "It is <i>Sydrunning", "0", "3", "17", "250 ms"],
      ["upfront", "failed: The engine was closed.", "–", "–", "–", "–"],
      ["flare", "waits for its turn", "–", "–", "–", "–"],
    ]);
    expect(rows.map((row) => row.getAttribute("aria-current"))).toEqual(["true", null, null, null]);
    view.root.querySelector<HTMLElement>('[data-row="1"]')?.click();
    expect(model.sent.at(-1)).toEqual({ type: "pick", v: 1, row: 1 });
    expect(view.root.querySelectorAll("[data-row]")).toHaveLength(1);
  });
});

test("another run begins with an empty timeline, its tab in front and nothing chosen", async () => {
  const { model, view } = await played(examples.flareReplay());
  one(view, "look-up-mark").click();
  tab(view, "token").click();
  model.receive(begin("r9", words("a"), { policy: POLICY }));
  await shown();
  expect(all(view, "look-up")).toHaveLength(0);
  expect(all(view, "look-up-mark")).toHaveLength(0);
  expect(selected(view)).toEqual(["Look-ups"]);
  expect(view.find("beside").hidden).toBe(true);
});

test.each(["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\u202e\u05d0", "&amp;"])(
  "the text %j is text wherever it appears",
  async (text) => {
    const hit = { id: text, title: text, source: text, score: 1, text, added: true, used: [[0, 3]] };
    const look = { ...LOOK_UP, at: 1, query: text, reason: text, note: text, hits: [hit] };
    const chances = [{ text, before: 0.5, after: null }];
    const row = { policy: text, answer: text, look_ups: 0, decoded: 0, prefilled: 0, ms: 1, running: true };
    const { view } = await played(
      begin("r", [{ text }], { policy: { name: text, trigger: text, threshold: 0.5, retriever: text } }),
      update({
        seq: 2,
        look_ups: [
          { ...look, chances },
          { ...look, outcome: "failed" },
        ],
        beside: [
          { ...row, failed: "", shown: false },
          { ...row, failed: text, shown: false },
        ],
      }),
    );
    expect(view.root.querySelector("script, img, style ~ style")).toBeNull();
    expect(view.root.querySelector(".passage-text")?.textContent).toBe(text);
    expect(view.root.querySelector("q")?.textContent).toBe(text);
    expect(all(view, "beside-row")).toHaveLength(2);
  },
);

test("a hundred look-ups of two thousand characters over a thousand tokens are shown", async () => {
  const specs: Spec[] = Array.from({ length: 1000 }, (_, i) => ({
    text: ` w${i}`,
    flags: i % 10 >= 8 ? 0 : 8,
  }));
  const hit = {
    id: "1",
    title: "",
    source: "",
    score: 1,
    text: "z ".repeat(1000),
    added: true,
    used: [[0, 9]],
  };
  const looks = Array.from({ length: 100 }, (_, k) => ({
    ...LOOK_UP,
    at: 10 * k + 10,
    keep: 8 * (k + 1),
    dropped: 2,
    hits: [hit, hit],
  }));
  const { view } = await played(begin("r", specs), update({ seq: 2, look_ups: looks }));
  expect(view.tokens()).toHaveLength(1000);
  expect(all(view, "look-up")).toHaveLength(100);
  expect(all(view, "look-up-mark")).toHaveLength(100);
  expect(view.find("status").textContent).toMatch(/^800 tokens kept, 200 dropped/);
});

test("after disposal nothing listens any more", async () => {
  const { model, view } = await played(examples.flareReplay());
  view.dispose();
  expect(model.listenerCount).toBe(0);
  expect(view.el.childNodes).toHaveLength(0);
});

test("a run's own view strikes what was dropped and draws it under what came instead", async () => {
  const model = new FakeModel();
  const view = mount(model);
  model.receive(examples.flareReplay());
  await shown();
  expect(view.tokens()[2]?.classList.contains("dropped")).toBe(true);
  expect(view.root.querySelector("path.draft-line")?.getAttribute("d")).toMatch(/^M[\d.]+ [\d.]+L306 /);
  expect(all(view, "look-up")).toHaveLength(0);
});

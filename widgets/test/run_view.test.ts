import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FLAGS } from "../src/protocol";
import { begin, examples, FakeModel, type Mounted, mount, type Spec, shown, update } from "./helpers";

const words = (...texts: string[]): Spec[] => texts.map((text) => ({ text }));
let warn: ReturnType<typeof vi.spyOn>;

beforeEach(() => {
  warn = vi.spyOn(console, "warn").mockImplementation(() => {});
});

afterEach(() => {
  document.body.replaceChildren();
});

async function played(...messages: ReturnType<typeof begin>[]): Promise<{ model: FakeModel; view: Mounted }> {
  const model = new FakeModel();
  const view = mount(model);
  for (const message of messages) model.receive(message);
  await shown();
  return { model, view };
}

const ready = (run: string | null, steps: number) => ({ type: "ready", v: 1, run, steps });

test("before a run the view says what to do and asks for what there is", async () => {
  const { model, view } = await played();
  expect(view.find("status").textContent).toMatch(/^Nothing has been generated yet/);
  expect(model.sent).toEqual([ready(null, 0)]);
});

test("a run is told as it goes: prefill, tokens, end", async () => {
  const { model, view } = await played(examples.start());
  expect(view.find("status").textContent).toBe("reading the prompt 0 / 41 tokens");
  model.receive(examples.steps());
  await shown();
  expect(view.find("status").textContent).toBe("2 tokens · 20.0 tok/s");
  model.receive(examples.finish());
  await shown();
  expect(view.find("status").textContent).toBe(
    "4 tokens · 20.0 tok/s · first after 0.20 s · ended by end token <|im_end|>",
  );
  expect(view.find("notices").textContent).toBe("The prompt was cut.");
});

test("a run whose model is busy says that it waits", async () => {
  const { view } = await played(
    update({ ...examples.start().content, state: "waiting", prefill: undefined }),
  );
  expect(view.find("status").textContent).toBe("waiting for the model");
});

test("a paused run says so, once, to a screen reader", async () => {
  const { model, view } = await played(begin("r", words("a")));
  model.receive(update({ seq: 2, state: "paused" }));
  await shown();
  expect(view.find("status").textContent).toBe("paused · 1 token");
  expect(view.root.querySelector("[aria-live]")?.textContent).toBe("paused · 1 token");
});

test("a failure is an alert with its advice, and what was generated stays", async () => {
  const { view } = await played(examples.start(), examples.steps(), examples.failure());
  expect(view.find("failure").getAttribute("role")).toBe("alert");
  expect(view.find("failure").textContent).toMatch(/no memory.*The next call reloads the model/);
  expect(view.tokens()).toHaveLength(2);
});

test("a failure before the first token leaves nothing empty beside it", async () => {
  const { view } = await played(examples.start(), examples.failure());
  expect(view.find("status").textContent).toBe("failed before the first token");
  expect(view.find("run-view").hasAttribute("data-none")).toBe(true);
});

test("a gap is answered with ready, and not for every message that shows it", async () => {
  const { model } = await played(begin("r", words("a")));
  model.receive(update({ seq: 5 }, 4, words("e")));
  model.receive(update({ seq: 6 }, 5, words("f")));
  expect(model.sent).toEqual([ready(null, 0), ready("r", 1)]);
});

test("an update of a run that was never introduced is a gap", async () => {
  const { model, view } = await played(update({ run: "x", state: "running" }));
  expect(model.sent).toEqual([ready(null, 0), ready(null, 0)]);
  expect(view.find("status").textContent).toMatch(/^Nothing/);
});

test("an update that comes twice adds nothing", async () => {
  const { view } = await played(examples.start(), examples.steps(), examples.steps());
  expect(view.tokens()).toHaveLength(2);
});

test("a replay shows the same page as the updates that it replaces", async () => {
  const steady = await played(examples.start(), examples.steps(), examples.finish());
  const late = await played(examples.replay());
  expect(late.view.root.innerHTML).toBe(steady.view.root.innerHTML);
});

test("a second view that appears late is brought up to date, and the first is not disturbed", async () => {
  const { model, view } = await played(examples.start(), examples.steps());
  const before = view.tokens();
  const second = mount(model);
  expect(model.sent.at(-1)).toEqual(ready(null, 0));
  model.receive(examples.replay());
  await shown();
  expect(second.tokens()).toHaveLength(5);
  expect(view.tokens().slice(0, 2)).toEqual(before);
  expect(view.tokens()).toHaveLength(5);
});

test("a snapshot alone shows the run, as in a saved notebook", async () => {
  const { content, buffers } = examples.replay();
  const model = new FakeModel({ snapshot: { ...content, buffers }, selected: 1 });
  const view = mount(model);
  expect(view.tokens()).toHaveLength(5);
  expect(view.find("candidates").textContent).toContain("Token 1");
  expect(model.sent).toEqual([ready("r1", 5)]);
});

test("a snapshot that cannot be read is reported and leaves the empty view", () => {
  const view = mount(new FakeModel({ snapshot: { type: "update", v: 99 } }));
  expect(warn).toHaveBeenCalledOnce();
  expect(view.find("status").textContent).toMatch(/^Nothing/);
});

test("malformed messages are reported and change nothing", async () => {
  const { model, view } = await played(examples.start(), examples.steps());
  const page = view.root.innerHTML;
  const broken = examples.finish();
  broken.buffers.pop();
  model.receive(broken);
  model.receive({ content: null as never, buffers: [] });
  model.receive({ content: { type: "launch" }, buffers: [] });
  await shown();
  expect(warn).toHaveBeenCalledTimes(3);
  expect(view.root.innerHTML).toBe(page);
});

test("another run begins on an empty page, with nothing selected", async () => {
  const { model, view } = await played(begin("r", words("a", "b")));
  model.set("selected", 1);
  model.receive(begin("r2"));
  await shown();
  expect(view.tokens()).toHaveLength(0);
  expect(model.traits.selected).toBeNull();
  expect(model.saved.at(-1)?.selected).toBeNull();
});

test("tokens are added, the ones on the page stay the same elements", async () => {
  const { model, view } = await played(begin("r", words("a", "b")));
  const before = view.tokens();
  model.receive(update({ seq: 2 }, 2, words("c")));
  await shown();
  expect(
    view
      .tokens()
      .slice(0, 2)
      .every((token, i) => token === before[i]),
  ).toBe(true);
  expect(view.tokens()).toHaveLength(3);
});

const HOSTILE = [
  "<script>alert(1)</script>",
  "</textarea><img src=x onerror=alert(1)>",
  "&amp;",
  "\u2028",
  "\u202e\u05d0",
  "</style>",
  "\u0301",
];

test.each(HOSTILE)("the text %j is text wherever it appears", async (text) => {
  const candidates = [
    { text, raw: 0.5 },
    { text: `${text}2`, raw: 0.25 },
  ];
  const message = update(
    {
      info: {
        model: text,
        engine: text,
        device: text,
        dtype: text,
        context_length: 1,
        prompt: text,
        params: { seed: text },
      },
      notices: [text],
      failure: { message: text, hint: text },
    },
    0,
    [{ text, candidates }],
  );
  const { view } = await played(message);
  expect(view.find("tokens").textContent).toBe(text);
  expect(view.root.querySelector("script, textarea, img, style ~ style")).toBeNull();
  expect(view.find("failure").textContent).toBe(text + text);
  expect(view.root.querySelectorAll('[data-testid="candidate"]')).toHaveLength(2);
});

test("the side panel follows the newest token until one is selected, and again when told to", async () => {
  const { model, view } = await played(begin("r", words("a", "b")));
  const title = () => view.find("candidates").querySelector("b")?.textContent;
  expect(title()).toBe("Token 1");
  view.tokens()[0]?.click();
  expect(model.traits.selected).toBe(0);
  expect(model.saved).toHaveLength(1);
  model.receive(update({ seq: 2 }, 2, words("c")));
  await shown();
  expect(title()).toBe("Token 0");
  view.find("candidates").querySelector<HTMLElement>('[data-action="follow"]')?.click();
  expect(model.traits.selected).toBeNull();
  expect(title()).toBe("Token 2");
});

test("Python's selection is shown in every view", async () => {
  const { model, view } = await played(begin("r", words("a", "b")));
  const second = mount(model);
  model.receive(begin("r", words("a", "b")));
  await shown();
  model.set("selected", 0);
  for (const one of [view, second]) {
    expect(one.tokens().map((token) => token.getAttribute("aria-selected"))).toEqual(["true", "false"]);
    expect(one.find("candidates").querySelector("b")?.textContent).toBe("Token 0");
  }
});

test("a selection beyond the end is none", async () => {
  const { model, view } = await played(begin("r", words("a")));
  model.set("selected", 99);
  expect(view.find("candidates").querySelector("b")?.textContent).toBe("Token 0");
});

test("a removed candidate is struck and names its stage, the chosen one is marked", async () => {
  const candidates = [
    { text: " a", raw: 0.5, processed: 1 },
    { text: " b", raw: 0.25, processed: 0, removedBy: 4 },
  ];
  const { view } = await played(begin("r", [{ text: " a", candidates }]));
  const [first, second] = view.root.querySelectorAll('[data-testid="candidate"]');
  expect(first?.className).toBe("chosen");
  expect(first?.textContent).toBe("1␣a0.5001.000drawn");
  expect(second?.className).toBe("removed");
  expect(second?.textContent).toBe("2␣b0.250–top-p");
});

test("at temperature 0 a token is taken, not drawn, although u was recorded", async () => {
  const candidates = [{ text: "a", raw: 0.5, processed: 1 }];
  const { view } = await played(begin("r", [{ text: "a", candidates }], { params: { temperature: 0 } }));
  const panel = view.find("candidates");
  expect(panel.querySelector("tr.chosen .fate")?.textContent).toBe("taken");
  expect(panel.querySelector(".draw-mark")).toBeNull();
  expect(panel.querySelector(".draw")?.textContent).toMatch("temperature 0: the likeliest token is taken");
});

test("a draw is marked where it fell", async () => {
  const { view } = await played(begin("r", [{ text: "a", candidates: [{ text: "a", raw: 1 }] }]));
  expect(view.root.querySelector<HTMLElement>(".draw-mark")?.style.left).toBe("25%");
});

test("no others have no mass, whatever the rounding left over", async () => {
  const all = Array.from({ length: 8 }, (_, i) => ({ text: `t${i}`, raw: 1 / 8 }));
  for (const [shown, others] of [
    [all, ["0 others", "", "0", "–", ""]],
    [all.slice(1), ["1 other", "", "<.001", "–", ""]],
  ] as const) {
    const specs = [{ text: "t", candidates: [...shown], restMass: 1e-9 }];
    const { view } = await played(begin("r", specs, { vocab_size: 8 }));
    const cells = [...view.root.querySelectorAll("tr.others td")].map((cell) => cell.textContent);
    expect(cells).toEqual(others);
  }
});

test("the others are all that have no row, also those that the short list leaves out", async () => {
  const candidates = Array.from({ length: 20 }, (_, i) => ({
    text: `t${i}`,
    raw: 1 / 40,
    processed: 1 / 20,
  }));
  const specs = [{ text: "t", candidates, restMass: 1 / 2, processedRestMass: 0 }];
  const { view } = await played(begin("r", specs, { vocab_size: 64 }));
  const others = () => [...view.root.querySelectorAll("tr.others td")].map((cell) => cell.textContent);
  // 10 of 20 are shown: 10/40 + 1/2 raw and 10/20 sampled have no row.
  expect(others()).toEqual(["54 others", "", "0.750", "0.500", ""]);
  view.root.querySelector<HTMLElement>('[data-action="all"]')?.click();
  expect(others()).toEqual(["44 others", "", "0.500", "–", ""]);
});

test("a control token is its label, also where it ends a broken character", async () => {
  const specs = [{ text: "a" }, { text: "\ufffd", label: "<|im_end|>", flags: FLAGS.kept | FLAGS.special }];
  const { view } = await played(begin("r", specs));
  const end = view.tokens()[1];
  expect(end?.className).toMatch("boxed special");
  expect(end?.dataset["sign"]).toBe("<|im_end|>");
  expect(end?.textContent).toBe("");
  expect(end?.getAttribute("aria-label")).toMatch('token 1 "<|im_end|>"');
  expect(view.find("tokens").textContent).toBe("a\ufffd");
});

test("a run without inspection says so", async () => {
  const { view } = await played(begin("r", [{ text: "a", maxProb: Number.NaN, logprob: Number.NaN }]));
  expect(view.find("candidates").textContent).toContain("recorded without inspection");
  expect(view.root.querySelectorAll('[data-testid="candidate"]')).toHaveLength(0);
});

test("the metric is written by the view and shown by all", async () => {
  const { model, view } = await played(begin("r", [{ text: "a", maxProb: 0.25, logprob: Math.log(0.125) }]));
  const colour = () => view.tokens()[0]?.style.getPropertyValue("--d");
  expect(colour()).toBe("0.750");
  const select = view.root.querySelector("select");
  if (select === null) throw new Error("no select");
  select.value = "prob";
  select.dispatchEvent(new Event("change"));
  expect(model.saved.at(-1)?.metric).toBe("prob");
  expect(colour()).toBe("0.875");
});

test("after disposal nothing listens any more and nothing is left on the page", async () => {
  const added = vi.spyOn(EventTarget.prototype, "addEventListener");
  const { model, view } = await played(examples.replay());
  const second = mount(model);
  expect(model.listenerCount).toBe(10);
  view.dispose();
  expect(model.listenerCount).toBe(5);
  second.dispose();
  expect(model.listenerCount).toBe(0);
  // A listener on a signal goes with the signal; every other one must hang on a signal that is over.
  const listening = added.mock.calls.filter(
    ([, , options], i) =>
      !(added.mock.contexts[i] instanceof AbortSignal) &&
      !(typeof options === "object" && options?.signal?.aborted === true),
  );
  expect(listening).toEqual([]);
  expect(view.el.childNodes).toHaveLength(0);
  model.receive(begin("r9", words("a")));
  await shown();
});

test("two views on one page share no ids and leave the page's head alone", async () => {
  const { view } = await played(examples.replay());
  const { view: other } = await played(examples.replay());
  expect(view.tokens()).toHaveLength(5);
  expect(other.tokens()).toHaveLength(5);
  expect(document.querySelectorAll("[id]")).toHaveLength(0);
  expect(document.head.querySelectorAll("style, link, script")).toHaveLength(0);
});

test("an unknown view is named instead of shown blank", () => {
  const el = document.createElement("div");
  const model = new FakeModel({ view: "hologram" });
  expect(() => mount(model)).toThrow("no shadow root");
  expect(document.body.textContent).toContain('cannot show "hologram"');
  el.remove();
});

test("a closed view leaves no timer behind", () => {
  vi.useFakeTimers();
  try {
    const model = new FakeModel();
    const view = mount(model);
    model.receive(examples.start());
    model.receive(update({ run: "another", seq: 7 }));
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    view.dispose();
    expect(vi.getTimerCount()).toBe(0);
    expect(model.listenerCount).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

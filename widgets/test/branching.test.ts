/** Going on from a token with another one: what is offered, what is sent, and how a branch is shown. */

import { afterEach, expect, test, vi } from "vitest";
import { FLAGS } from "../src/protocol";
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

afterEach(() => document.body.replaceChildren());

/** Three candidates a token, of which the first was chosen; the last is cut by top-p. */
const spec = (text: string, rest: Partial<Spec> = {}): Spec => ({
  text,
  candidates: [
    { text, raw: 0.5 },
    { text: " &amp;", raw: 0.25 },
    { text: "<b>\n", raw: 0.125, processed: 0, removedBy: 4 },
  ],
  ...rest,
});
const SPECS = [spec("a"), spec(" b"), spec("c")];

async function played(first: Sent, traits = {}): Promise<{ model: FakeModel; view: Mounted }> {
  const model = new FakeModel({ can_branch: true, ...traits });
  const view = mount(model);
  model.receive(first);
  await shown();
  return { model, view };
}

const takes = (view: Mounted) => [...view.root.querySelectorAll<HTMLButtonElement>('[data-action="take"]')];
const draws = (view: Mounted) => view.root.querySelector<HTMLButtonElement>('[data-action="draw"]');
const title = (view: Mounted) => view.find("candidates").querySelector("b")?.textContent;
const branches = (model: FakeModel) =>
  model.sent.filter((message) => (message as { type: string }).type === "branch");

test("every candidate that was not chosen is a button that says what it does", async () => {
  const { view } = await played(begin("r", SPECS));
  expect(takes(view).map((button) => [button.textContent, button.getAttribute("aria-label")])).toEqual([
    ["␣&amp;", "go on from token 2 with ' &amp;' instead"],
    ["<b>⏎", "go on from token 2 with '<b>⏎' instead"],
  ]);
  expect(takes(view).every((button) => button.type === "button" && button.title.includes("go on"))).toBe(
    true,
  );
  expect(view.root.querySelector("tr.chosen button")).toBeNull();
});

test.each([
  ["a click on a candidate", (view: Mounted) => takes(view)[1], 2],
  ["a click on draw again", (view: Mounted) => draws(view), null],
] as const)("%s is sent with run, step and token", async (_, find, token) => {
  const { model, view } = await played(begin("r", SPECS), { selected: 1 });
  find(view)?.click();
  expect(branches(model)).toEqual([{ type: "branch", v: 1, run: "r", step: 1, token }]);
});

test("the second click of a double click does nothing, a later one does", async () => {
  const { model, view } = await played(begin("r", SPECS));
  takes(view)[0]?.click();
  takes(view)[0]?.click();
  expect(branches(model)).toHaveLength(1);
  vi.mocked(performance.now).mockReturnValue(1000);
  takes(view)[0]?.click();
  expect(branches(model)).toHaveLength(2);
});

test.each([
  ["its owner cannot branch", { can_branch: false }],
  ["the model does not know the trait", { can_branch: undefined }],
])("nothing is offered where %s", async (_, traits) => {
  const { view } = await played(begin("r", SPECS), traits);
  expect([takes(view), draws(view)]).toEqual([[], null]);
  expect(view.find("candidates").textContent).not.toContain("go on");
});

test("a snapshot offers nothing until a kernel has answered for its run", async () => {
  const { content, buffers } = examples.replay();
  const model = new FakeModel({ can_branch: true, snapshot: { ...content, buffers }, selected: 1 });
  const view = mount(model);
  expect([takes(view), draws(view)]).toEqual([[], null]);
  model.receive(examples.replay());
  await shown();
  expect(takes(view)).toHaveLength(2);
  expect(draws(view)).not.toBeNull();
});

test("at temperature 0 only a token that was put there can be drawn again", async () => {
  const put = spec("c", { flags: FLAGS.kept | FLAGS.forced });
  const { model, view } = await played(begin("r", [spec("a"), put], { params: { temperature: 0 } }));
  expect(draws(view)).not.toBeNull();
  model.set("selected", 0);
  expect(draws(view)).toBeNull();
  expect(takes(view)).toHaveLength(2);
});

test("a run without inspection can be drawn again", async () => {
  const bare = { text: "a", maxProb: Number.NaN, logprob: Number.NaN };
  const { model, view } = await played(begin("r", [bare]));
  draws(view)?.click();
  expect(branches(model)).toEqual([{ type: "branch", v: 1, run: "r", step: 0, token: null }]);
});

test("what a press begins on stays while tokens come", async () => {
  const { model, view } = await played(begin("r", SPECS), { selected: 0 });
  const before = takes(view);
  model.receive(update({ seq: 2 }, 3, [spec("d")]));
  await shown();
  expect(view.tokens()).toHaveLength(4);
  expect(takes(view)).toEqual(before);
  expect(before.every((button) => button.isConnected)).toBe(true);
});

test("a panel that follows waits under the pointer, and catches up when it leaves", async () => {
  const { model, view } = await played(begin("r", SPECS));
  const move = (type: string) => new PointerEvent(type, { bubbles: true });
  takes(view)[0]?.dispatchEvent(move("pointermove"));
  model.receive(update({ seq: 2 }, 3, [spec("d")]));
  await shown();
  expect(title(view)).toBe("Token 2");
  expect(view.root.querySelector(".follows")?.textContent).toBe("waiting here");
  view.find("candidates").dispatchEvent(new PointerEvent("pointerleave"));
  expect(title(view)).toBe("Token 3");
  expect(view.root.querySelector(".follows")?.textContent).toBe("following the newest");
});

test("a panel that follows waits while the focus is on a candidate", async () => {
  const { model, view } = await played(begin("r", SPECS));
  takes(view)[1]?.focus();
  model.receive(update({ seq: 2 }, 3, [spec("d")]));
  await shown();
  expect(title(view)).toBe("Token 2");
  expect((view.root.activeElement as HTMLElement).dataset["token"]).toBe("2");
  (view.root.activeElement as HTMLElement).blur();
  expect(title(view)).toBe("Token 3");
});

test("without a kernel to ask the panel waits for nobody", async () => {
  const { model, view } = await played(begin("r", SPECS), { can_branch: false });
  view.root.querySelector(".rows")?.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
  model.receive(update({ seq: 2 }, 3, [spec("d")]));
  await shown();
  expect(title(view)).toBe("Token 3");
});

const POINT = { at: 1, text: "Branched off another run after 1 token, with ' &amp;' put there." };

/** A branch at token 1, as it is seen in a page that has shown another run before. */
async function branched(): Promise<{ model: FakeModel; view: Mounted }> {
  const { model, view } = await played(begin("r", SPECS), { selected: 2 });
  takes(view)[0]?.focus();
  model.set("selected", 1);
  model.receive(begin("r2", [], { branch: POINT }));
  const put = spec(" &amp;", { flags: FLAGS.kept | FLAGS.forced });
  model.receive(update({ run: "r2", seq: 2 }, 0, [spec("a"), put, spec("d")]));
  await shown();
  return { model, view };
}

test("a branch keeps the place that was selected for it, and the focus stays in the panel", async () => {
  const { model, view } = await branched();
  expect(model.traits.selected).toBe(1);
  expect(title(view)).toBe("Token 1");
  expect(view.root.activeElement).toBe(view.find("candidates"));
});

test("a branch is marked in the text and in the plot, and told above", async () => {
  const { model, view } = await branched();
  expect(view.tokens().map((token) => token.classList.contains("branched"))).toEqual([false, true, false]);
  expect(view.tokens()[1]?.getAttribute("aria-label")).toMatch(
    /put there, not drawn, the branch begins here$/,
  );
  expect(view.find("origin").textContent).toBe(POINT.text);
  const line = view.root.querySelector(".branch-line");
  expect(line?.getAttribute("visibility")).toBe("visible");
  // 544 px for 32 tokens from 34 on, 17 each: between tokens 0 and 1.
  expect(line?.getAttribute("x1")).toBe("51");
  model.receive(begin("r3", SPECS));
  await shown();
  expect(line?.getAttribute("visibility")).toBe("hidden");
  expect(view.root.querySelector('[data-testid="origin"]')).toBeNull();
});

test("a token that was taken over says so instead of a time", async () => {
  const { model, view } = await branched();
  model.set("selected", 0);
  expect([...view.root.querySelectorAll(".state")].map((state) => state.textContent)).toEqual(["taken over"]);
  model.set("selected", 2);
  expect(view.root.querySelector(".state")).toBeNull();
});

test("a branch at the first token has nothing to mark but the token itself", async () => {
  const put = spec(" &amp;", { flags: FLAGS.kept | FLAGS.forced });
  const { view } = await played(begin("r", [put], { branch: { at: 0, text: "t" } }));
  expect(view.root.querySelector(".token.branched")).toBeNull();
  expect(view.root.querySelector(".branch-line")?.getAttribute("visibility")).toBe("hidden");
  expect(view.tokens()[0]?.classList.contains("forced")).toBe(true);
});

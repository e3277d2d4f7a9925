import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { begin, FakeModel, type Mounted, mount, type Spec, shown, update } from "./helpers";

const SPECS: Spec[] = [
  { text: "The", maxProb: 0.9 },
  { text: " sky\u00a0", maxProb: 0.3, rank: 2, logprob: Math.log(0.25) },
  { text: " is", maxProb: 0.35 },
  { text: ".\n\n", maxProb: 0.39 },
  { text: "", label: "\\xF0\\x9F", flags: 9, maxProb: 0.5 },
  { text: "\u{1f642}\u2028", maxProb: 0.5 },
  { text: "", label: "<|im_end|>", flags: 10, maxProb: 0.5 },
];
const TEXT = SPECS.map((spec) => spec.text).join("");

let model: FakeModel;
let view: Mounted;

beforeEach(async () => {
  model = new FakeModel();
  view = mount(model);
  model.receive(begin("r", SPECS));
  await shown();
});

afterEach(() => {
  view.dispose();
  document.body.replaceChildren();
});

function press(target: Element, key: string): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true });
  target.dispatchEvent(event);
  return event;
}

const token = (i: number) => view.tokens()[i] ?? document.createElement("i");
const focused = () => view.tokens().indexOf(view.root.activeElement as HTMLElement);

describe("the text", () => {
  test("is exactly the joined texts of its steps", () => expect(view.find("tokens").textContent).toBe(TEXT));

  function copied(selectNodes: (range: Range) => void): string[][] {
    const range = document.createRange();
    selectNodes(range);
    const selection = { rangeCount: 1, getRangeAt: () => range } as unknown as Selection;
    Object.assign(view.root, { getSelection: () => selection });
    const setData = vi.fn();
    const event = Object.assign(new Event("copy", { cancelable: true }), { clipboardData: { setData } });
    view.find("tokens").dispatchEvent(event);
    expect(event.defaultPrevented).toBe(setData.mock.calls.length > 0);
    return setData.mock.calls;
  }

  test("is copied exactly, without signs and labels, with its no-break spaces", () => {
    expect(copied((range) => range.selectNodeContents(view.find("tokens")))).toEqual([["text/plain", TEXT]]);
  });

  test("is copied alone where the selection overshoots it", () => {
    expect(copied((range) => range.selectNodeContents(view.find("run-view")))).toEqual([
      ["text/plain", TEXT],
    ]);
  });

  test("leaves a copy from elsewhere to the browser", () => {
    expect(copied((range) => range.selectNodeContents(view.find("candidates")))).toEqual([]);
  });

  test("has no space inside a token's box at its start", () => {
    expect(token(2).textContent).toBe("is");
    expect(token(2).previousSibling?.textContent).toBe(" ");
  });

  test("breaks lines outside the token's box and shows a sign inside", () => {
    expect(token(3).textContent).toBe(".");
    expect([...token(3).querySelectorAll<HTMLElement>(".sign")].map((sign) => sign.dataset["sign"])).toEqual([
      "⏎",
      "⏎",
    ]);
  });

  test("names what adds no text in a box that is no text", () => {
    expect(token(4).dataset["sign"]).toBe("\\xF0\\x9F");
    expect(token(6).dataset["sign"]).toBe("<|im_end|>");
    expect(token(6).classList.contains("special")).toBe(true);
  });

  test("tells a screen reader what a token is", () => {
    expect(token(1).getAttribute("aria-label")).toBe(
      'token 1 "sky", probability 0.250, rank 2, below threshold',
    );
    expect(token(6).getAttribute("aria-label")).toMatch(/control token$/);
  });

  test("marks doubt and second choices without colour", () => {
    expect(view.tokens().map((one) => one.classList.contains("low"))).toEqual([
      false,
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(
      view
        .tokens()
        .map((one) => one.classList.contains("alternative"))
        .indexOf(true),
    ).toBe(1);
  });

  test("strikes what was rolled back since", async () => {
    const back = SPECS.map((spec, i) => (i === 2 ? { ...spec, flags: 0 } : spec));
    model.receive(update({ seq: 2 }, 0, back));
    await shown();
    expect(token(2).classList.contains("dropped")).toBe(true);
    expect(token(2).getAttribute("aria-label")).toMatch(/rolled back$/);
  });
});

describe("the keyboard", () => {
  test("moves a single tab stop with the arrows, Home and End", () => {
    token(0).focus();
    press(token(0), "ArrowRight");
    expect(focused()).toBe(1);
    press(token(1), "End");
    expect(focused()).toBe(6);
    press(token(6), "ArrowRight");
    expect(focused()).toBe(6);
    press(token(6), "ArrowLeft");
    expect(focused()).toBe(5);
    expect(view.tokens().filter((one) => one.tabIndex === 0)).toEqual([token(5)]);
    press(token(5), "Home");
    expect(focused()).toBe(0);
  });

  test("moves to the nearest token of the next line", () => {
    const boxes = [
      [0, 0],
      [40, 0],
      [80, 0],
      [0, 28],
      [42, 28],
      [90, 28],
      [0, 56],
    ];
    view.tokens().forEach((one, i) => {
      const [x = 0, y = 0] = boxes[i] ?? [];
      one.getBoundingClientRect = () => new DOMRect(x, y, 30, 20);
    });
    token(1).focus();
    press(token(1), "ArrowDown");
    expect(focused()).toBe(4);
    press(token(4), "ArrowUp");
    expect(focused()).toBe(1);
    press(token(1), "ArrowUp");
    expect(focused()).toBe(1);
  });

  test.each(["Enter", " "])("selects with %j", (key) => {
    expect(press(token(2), key).defaultPrevented).toBe(true);
    expect(model.traits.selected).toBe(2);
    expect(token(2).getAttribute("aria-selected")).toBe("true");
  });

  test("clears with Escape", () => {
    token(2).click();
    press(token(2), "Escape");
    expect(model.traits.selected).toBeNull();
    expect(token(2).getAttribute("aria-selected")).toBe("false");
  });

  test("leaves other keys and shortcuts to the page", () => {
    expect(press(token(2), "a").defaultPrevented).toBe(false);
    const event = new KeyboardEvent("keydown", {
      key: "Enter",
      ctrlKey: true,
      bubbles: true,
      cancelable: true,
    });
    token(2).dispatchEvent(event);
    expect(event.defaultPrevented).toBe(false);
    expect(model.traits.selected).toBeNull();
  });
});

describe("the threshold", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  const drag = (type: string, clientY: number) =>
    view
      .find("threshold")
      .dispatchEvent(new PointerEvent(type, { clientY, button: 0, bubbles: true, pointerId: 1 }));

  test("is written once for a drag, and the page follows at once", () => {
    drag("pointerdown", 110);
    for (const y of [100, 80, 60, 40, 20]) drag("pointermove", y);
    expect(model.saved).toEqual([]);
    expect(Number(view.find("threshold").getAttribute("aria-valuenow"))).toBeGreaterThan(0.9);
    expect(token(0).classList.contains("low")).toBe(true);
    vi.advanceTimersByTime(200);
    expect(model.saved).toHaveLength(1);
    drag("pointermove", 30);
    drag("pointerup", 30);
    expect(model.saved).toHaveLength(2);
    vi.advanceTimersByTime(1000);
    expect(model.saved).toHaveLength(2);
  });

  test("is not pulled back by an older value that comes while it is dragged", () => {
    drag("pointerdown", 110);
    drag("pointermove", 20);
    const value = view.find("threshold").getAttribute("aria-valuenow");
    model.set("threshold", 0.1);
    expect(view.find("threshold").getAttribute("aria-valuenow")).toBe(value);
  });

  test("moves by hundredths with the arrows", () => {
    const slider = view.find("threshold");
    press(slider, "ArrowUp");
    press(slider, "ArrowUp");
    press(slider, "ArrowLeft");
    expect(slider.getAttribute("aria-valuetext")).toBe("0.41");
    vi.advanceTimersByTime(200);
    expect(model.saved.map((saved) => saved.threshold)).toEqual([0.41]);
    press(slider, "End");
    press(slider, "ArrowUp");
    expect(slider.getAttribute("aria-valuenow")).toBe("1");
  });

  test("is what is counted below the text", () => {
    const footer = () => view.root.querySelector("footer")?.textContent;
    expect(footer()).toContain("below 0.40: 3 tokens, 1 run of 3+");
    model.set("threshold", 0.32);
    expect(footer()).toContain("below 0.32: 1 token, 0 runs of 3+");
    expect(token(2).getAttribute("aria-label")).not.toContain("below");
  });

  test("a last move is not lost when the view goes", () => {
    press(view.find("threshold"), "ArrowUp");
    view.dispose();
    expect(model.saved.map((saved) => saved.threshold)).toEqual([0.41]);
  });
});

describe("the plot", () => {
  test("selects the token that is clicked", () => {
    const svg = view.find("plot").querySelector("svg");
    // 640 px wide without a layout: 544 for 32 tokens from 34 on, 17 each.
    svg?.dispatchEvent(new MouseEvent("click", { clientX: 34 + 2 * 17 + 3, clientY: 20, bubbles: true }));
    expect(model.traits.selected).toBe(2);
  });

  test("shades three or more tokens below the threshold", () => {
    const shade = () => view.find("plot").querySelector(".shade")?.getAttribute("d");
    expect(shade()).toMatch(/^M51 8h51V\d+H51z$/);
    model.set("threshold", 0.38);
    expect(shade()).toBe("");
  });
});

/** Formatting, metrics and the plot's geometry: expected values by hand. */

import { describe, expect, test } from "vitest";
import { shortList } from "../src/candidates";
import { drawSegments, drawSentence } from "../src/draw_bar";
import * as format from "../src/format";
import { countBelow, doubt, lowRuns, mean, tokensPerSecond } from "../src/metrics";
import {
  clampValue,
  curvePath,
  domainOf,
  frameOf,
  indexAt,
  type Scale,
  ticks,
  valueAt,
  xOf,
  yOf,
} from "../src/plot_geometry";
import { endedBy } from "../src/status";
import type { Candidate, Step } from "../src/store";
import { describeParams } from "../src/summary";
import { layout } from "../src/token_text";

test.each([
  [0.2372, "0.237"],
  [1, "1.000"],
  [0.0005, "0.001"],
  [0.0004, "<.001"],
  [1e-12, "<.001"],
  [0, "0"],
  [-0, "0"],
  [-1e-9, "0"],
  [Number.NaN, "–"],
])("probability %d reads %s", (value, text) => expect(format.prob(value)).toBe(text));

test.each([
  [1.444, "1.44"],
  [-0, "0.00"],
  [-0.0001, "0.00"],
  [Number.NaN, "–"],
])("%d nats read %s", (value, text) => expect(format.nats(value)).toBe(text));

test.each([
  [" a b", "␣a␣b"],
  ["\n\t\r", "⏎⇥␍"],
  ["\u200f\u05d0", "⟨U+200F⟩\u05d0"],
  ["\u2028", "⟨U+2028⟩"],
  ["\u00a0", "⟨U+00A0⟩"],
  ["\u0301", "◌\u0301"],
  ["e\u0301", "e\u0301"],
  ["\u0000", "⟨U+0000⟩"],
  ["<b>&amp;", "<b>&amp;"],
])("the label of %j is %s", (text, label) => expect(format.visible(text)).toBe(label));

test.each([
  [" word", " ", "word", ""],
  ["  \tword ", "  \t", "word ", ""],
  [".\n", "", ".⏎", "\n"],
  ["\r\n\n", "", "⏎⏎", "\r\n\n"],
  [" \n", " ", "⏎", "\n"],
  ["    ", "", "    ", ""],
  ["a\nb", "", "a⏎\nb", ""],
  ["\u202eab", "", "⟨U+202E⟩\u202eab", ""],
])("%j is set as lead %j, body %j, tail %j", (text, lead, body, tail) => {
  const parts = layout({ text, special: false });
  expect(parts.body.map((piece) => piece.sign + piece.text).join("")).toBe(body);
  expect([parts.lead, parts.tail]).toEqual([lead, tail]);
  expect(parts.lead + parts.body.map((piece) => piece.text).join("") + parts.tail).toBe(text);
});

test("a control token's text is set before its box", () => {
  expect(layout({ text: "\ufffd", special: true })).toEqual({ lead: "\ufffd", body: [], tail: "" });
});

describe("figures over a run agree with cartoolkit.trace.metrics' own examples", () => {
  test("stretches below the threshold", () => {
    expect(lowRuns([0.9, 0.1, 0.2, 0.3, 0.9, 0.1], 0.4)).toEqual([[1, 4]]);
    expect(lowRuns([0.1, 0.1, 0.1], 0.4)).toEqual([[0, 3]]);
    expect(lowRuns([0.1, Number.NaN, 0.1, 0.1], 0.4)).toEqual([]);
  });
  test("perplexity", () =>
    expect(Math.exp(-mean([Math.log(0.5), Math.log(0.125), Number.NaN]))).toBeCloseTo(4, 9));
  test("speed", () => expect(tokensPerSecond([1, 1.5, 2])).toBe(2));
  test("a token without a time was taken over and does not count", () =>
    expect(tokensPerSecond([Number.NaN, Number.NaN, 1, 1.5, 2])).toBe(2));
  test("speed of one token is unknown", () => expect(tokensPerSecond([1])).toBeNaN());
  test("count below", () => expect(countBelow([0.4, 0.39, Number.NaN, 0], 0.4)).toBe(2));
});

test("doubt runs from 0 to 1 and is 0 where nothing is known", () => {
  const step = { maxProb: 0.25, logprob: Math.log(0.125), entropy: 10 };
  expect(doubt("max_prob", step)).toBe(0.75);
  expect(doubt("prob", step)).toBeCloseTo(0.875, 9);
  expect(doubt("entropy", step)).toBe(1);
  expect(doubt("surprisal", { ...step, logprob: Number.NaN })).toBe(0);
});

describe("the plot's geometry", () => {
  const scale: Scale = { frame: { left: 0, right: 100, top: 0, bottom: 50 }, domain: 10 };
  test("a token is in the middle of its stretch", () => expect(xOf(3, scale)).toBe(35));
  test("probability goes up", () => expect(yOf(0.75, scale.frame)).toBe(12.5));
  test("a pointer finds its token, and the last one beyond the end", () => {
    expect(indexAt(39, scale, 10)).toBe(3);
    expect(indexAt(99, scale, 4)).toBe(3);
    expect(indexAt(5, scale, 0)).toBeNull();
  });
  test("the threshold is in hundredths, between 0 and 1", () => {
    expect(valueAt(30.1, scale.frame)).toBe(0.4);
    expect([clampValue(-3), clampValue(7)]).toEqual([0, 1]);
  });
  test("an axis that grows leaves room, one that has ended none", () => {
    expect([domainOf(5, true), domainOf(33, true), domainOf(49, true), domainOf(65, true)]).toEqual([
      32, 48, 64, 96,
    ]);
    expect(domainOf(70, false)).toBe(70);
  });
  test("ticks are round numbers and keep their distance", () => {
    expect(ticks({ frame: frameOf(640, 200), domain: 70 })).toEqual([0, 10, 20, 30, 40, 50, 60]);
  });
  test("a hole in the values is a hole in the curve", () => {
    expect(curvePath([1, 0, Number.NaN, 0.5], scale)).toBe("M5 0L15 50M35 25");
  });
  test("a crowded curve keeps its dips and is no longer than the width allows", () => {
    const values = new Float64Array(4000).fill(0.9);
    values[1234] = 0.1;
    const path = curvePath(values, { ...scale, domain: 4000 });
    expect(path).toContain(` ${yOf(0.1, scale.frame)}`);
    expect(path.length).toBeLessThan(2500);
  });
});

function candidate(parts: Partial<Candidate>): Candidate {
  return { id: 0, label: "x", rank: 1, raw: 0.1, processed: 0.1, removedBy: "", chosen: false, ...parts };
}

const STEP = { draw: 0.8, processedRestMass: 0, forced: false } as Step;

test("the draw's segments lie likeliest first and fill the bar", () => {
  const candidates = [
    candidate({ rank: 1, processed: 0.25, label: "a" }),
    candidate({ rank: 2, processed: 0.75, label: "b", chosen: true }),
    candidate({ rank: 3, processed: 0, label: "c" }),
  ];
  const segments = drawSegments(candidates, { ...STEP });
  expect(segments.map(({ label, start, width, kind }) => [label, start, width, kind])).toEqual([
    ["b", 0, 0.75, "chosen"],
    ["a", 0.75, 0.25, "candidate"],
  ]);
});

test("a chosen token from far down lies where the draw fell, among the others", () => {
  const candidates = [
    candidate({ rank: 1, processed: 0.5 }),
    candidate({ rank: 40, processed: 0.1, chosen: true, label: "z" }),
  ];
  const segments = drawSegments(candidates, { ...STEP, processedRestMass: 0.4 });
  const chosen = segments.find((segment) => segment.kind === "chosen");
  expect(chosen?.start).toBeCloseTo(0.75, 9);
  expect(segments.reduce((sum, segment) => sum + segment.width, 0)).toBeCloseTo(1, 9);
});

test("the draw in words", () => {
  expect(drawSentence({ ...STEP, draw: 0.48159 }, false)).toBe("draw u = 0.4816");
  expect(drawSentence({ ...STEP, draw: 0.48159 }, true)).toBe("temperature 0: the likeliest token is taken");
  expect(drawSentence({ ...STEP, forced: true }, false)).toMatch("not drawn");
});

test("the short list holds the chosen token", () => {
  const all = Array.from({ length: 20 }, (_, i) => candidate({ id: i, rank: i + 1, chosen: i === 16 }));
  expect(shortList(all).map((c) => c.id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 16]);
});

test("settings are told in the sampler's order, and what does nothing is off", () => {
  const params = {
    temperature: 0.8,
    top_k: 40,
    top_p: 1,
    min_p: 0,
    seed: 3,
    repeat_penalty: 1,
    max_tokens: 64,
  };
  expect(describeParams(params).join(" · ")).toBe(
    "temperature 0.80 · top-k 40 · top-p off · min-p off · seed 3 · at most 64 tokens",
  );
  expect(describeParams({ temperature: 0, top_k: "many" })).toEqual(["temperature 0 (greedy)"]);
});

test.each([
  ["stop", "end token <|im_end|>", "ended by end token <|im_end|>"],
  ["stop", "", "ended by its end token"],
  ["stopped", "by the user", "ended by you"],
  ["length", "max_tokens=64", "ended by its length (max_tokens=64)"],
  ["length", "the context window is full", "ended by its length (the context window is full)"],
  ["local_decode_timeout", "after 300 s", "ended by the time limit (after 300 s)"],
  ["", "", ""],
])("a run that ended by %j %j says %j", (reason, detail, text) => expect(endedBy(reason, detail)).toBe(text));

/** Expected values are those that tests/fixtures/write_protocol_examples.py writes into the examples. */

import { describe, expect, test } from "vitest";
import branchExample from "../../tests/fixtures/protocol/branch.json";
import branchDraw from "../../tests/fixtures/protocol/branch_draw.json";
import readyExample from "../../tests/fixtures/protocol/ready.json";
import readyEmpty from "../../tests/fixtures/protocol/ready_empty.json";
import { branch, parseUpdate, ready, STEP_COLUMNS } from "../src/protocol";
import { RunStore } from "../src/store";
import { examples, type Sent } from "./helpers";

const INFO = examples.start().content["info"] as Record<string, unknown>;
const parse = ({ content, buffers }: Sent) => parseUpdate(content, buffers);

test("a step has the numbers that Python wrote, from buffers at odd offsets", () => {
  const store = new RunStore();
  store.apply(parse(examples.start()));
  store.apply(parse(examples.steps()));
  const step = store.step(1);
  expect(step).toMatchObject({
    tokenId: 11,
    rank: 1,
    maxProb: 0.375,
    draw: 0.5,
    elapsed: 0.25,
    kept: true,
    special: false,
  });
  expect(step.prob).toBeCloseTo(0.375, 6);
  expect(step.processedProb).toBeCloseTo(0.6, 6);
  expect(step.entropy).toBeCloseTo(1.9, 6);
  expect(step.margin).toBeCloseTo(0.125, 6);
  expect(step.restMass).toBeCloseTo(0.25, 6);
});

test("candidates have their texts, both probabilities and the stage that removed them", () => {
  const store = new RunStore();
  store.apply(parse(examples.replay()));
  const [first, second, third] = store.candidates(3);
  expect(first).toMatchObject({
    id: 1000,
    label: "\u{1f600}",
    rank: 1,
    processed: 0,
    removedBy: "top_p",
    chosen: false,
  });
  expect(second).toMatchObject({ id: 13, rank: 2, processed: 1, removedBy: "", chosen: true });
  expect(second?.raw).toBeCloseTo(0.125, 6);
  expect(third).toMatchObject({ removedBy: "min_p", label: "\u200f\u05d0" });
});

test("a step with fewer candidates than the block is wide has only its own", () => {
  const store = new RunStore();
  store.apply(parse(examples.replay()));
  expect([0, 1, 4].map((i) => store.candidates(i).length)).toEqual([2, 3, 2]);
});

test("flags are bits", () => {
  const store = new RunStore();
  store.apply(parse(examples.replay()));
  expect(store.step(2)).toMatchObject({ incomplete: true, special: false, label: "\\xF0\\x9F" });
  expect(store.step(4)).toMatchObject({ incomplete: false, special: true, kept: true, label: "<|im_end|>" });
});

test("info, prefill, finish and failure are read", () => {
  expect(parse(examples.start()).info).toMatchObject({ engine: "torch", context_length: 8192 });
  expect(parse(examples.steps()).prefill).toEqual({ done: 41, total: 41, reused: 12 });
  expect(parse(examples.finish()).finish).toMatchObject({
    completion_tokens: 4,
    ttft_ms: 200,
    tokens_per_second: 20,
  });
  expect(parse(examples.failure()).failure?.hint).toBe("The next call reloads the model.");
});

test("ready is what Python accepts", () => {
  expect(ready("r1", 2)).toEqual(readyExample.content);
  expect(ready(null, 0)).toEqual(readyEmpty.content);
});

test("a branch is what Python accepts", () => {
  expect(branch("r1", 1, 1001)).toEqual(branchExample.content);
  expect(branch("r1", 1, null)).toEqual(branchDraw.content);
});

test("where a run left another one is read", () => {
  expect(parse(examples.branch()).info?.branch).toEqual({
    at: 1,
    text: "Branched off another run after 1 token, with ' &amp;' put there.",
  });
  expect(parse(examples.start()).info?.branch).toBeUndefined();
});

describe("a malformed update is refused and the fault is named", () => {
  const broken: [string, (sent: Sent) => void, RegExp][] = [
    ["kind", ({ content }) => Object.assign(content, { type: "launch" }), /unknown kind/],
    ["version", ({ content }) => Object.assign(content, { v: 2 }), /version 2/],
    ["run", ({ content }) => Object.assign(content, { run: 7 }), /run is 7/],
    ["buffers", ({ buffers }) => buffers.pop(), /16 buffers for 17 columns/],
    [
      "length",
      ({ buffers }) => buffers.splice(0, 1, new DataView(new ArrayBuffer(7))),
      /7 bytes, expected 8/,
    ],
    ["no buffer", (sent) => sent.buffers.splice(0, 1, "x" as never), /no buffer/],
    ["unknown column", ({ content }) => stepsOf(content).columns.splice(0, 1, "__proto__"), /unknown column/],
    ["column twice", ({ content }) => stepsOf(content).columns.splice(0, 1, "rank"), /rank/],
    ["texts", ({ content }) => stepsOf(content).texts.pop(), /steps.texts has 1/],
    ["text", ({ content }) => stepsOf(content).texts.splice(0, 1, 3), /texts.0 is 3/],
    ["count", ({ content }) => Object.assign(stepsOf(content), { count: -1 }), /whole number/],
    ["notices", ({ content }) => Object.assign(content, { notices: "cut" }), /expected a list/],
    ["finish", ({ content }) => Object.assign(content, { finish: null }), /finish is null/],
    [
      "branch",
      ({ content }) => Object.assign(content, { info: { ...INFO, branch: { at: -1 } } }),
      /info.branch.at is -1/,
    ],
  ];
  test.each(broken)("%s", (_, spoil, message) => {
    const sent = examples.steps();
    spoil(sent);
    expect(() => parse(sent)).toThrow(message);
  });

  test.each([null, 3, "update", [], undefined])("%j", (content) => {
    expect(() => parseUpdate(content, [])).toThrow();
  });
});

test("a missing column is refused", () => {
  const sent = examples.steps();
  const name = Object.keys(STEP_COLUMNS)[0];
  stepsOf(sent.content).columns.shift();
  sent.buffers.shift();
  expect(() => parse(sent)).toThrow(`column ${name} is missing`);
});

function stepsOf(content: Record<string, unknown>): { columns: string[]; texts: unknown[] } {
  return content["steps"] as { columns: string[]; texts: unknown[] };
}

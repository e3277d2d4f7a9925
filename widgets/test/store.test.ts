import { expect, test } from "vitest";
import { FLAGS, parseUpdate } from "../src/protocol";
import { RunStore } from "../src/store";
import { begin, examples, type Sent, type Spec, update } from "./helpers";

const parse = ({ content, buffers }: Sent) => parseUpdate(content, buffers);
const words = (...texts: string[]): Spec[] => texts.map((text) => ({ text }));

function read(store: RunStore) {
  const steps = Array.from({ length: store.count }, (_, i) => ({
    ...store.step(i),
    candidates: store.candidates(i),
  }));
  const { run, info, state, prefill, notices, finish, failure } = store;
  return { run, info, state, prefill, notices, finish, failure, steps };
}

function storeOf(...sent: Sent[]): RunStore {
  const store = new RunStore();
  for (const one of sent) store.apply(parse(one));
  return store;
}

test("one replay is the same as the updates that it replaces", () => {
  const steady = storeOf(examples.start(), examples.steps(), examples.finish());
  expect(read(storeOf(examples.replay()))).toEqual(read(steady));
  expect(steady.count).toBe(5);
});

test("an update that comes twice changes nothing", () => {
  const store = storeOf(examples.start(), examples.steps(), examples.finish());
  const before = read(store);
  const change = store.apply(parse(examples.finish()));
  expect(change).toEqual({ reset: false, gap: false, from: 5, reflagged: [] });
  expect(read(store)).toEqual(before);
});

test("an older update that comes late does not turn the state back", () => {
  const store = storeOf(examples.replay(), examples.steps());
  expect(store.state).toBe("finished");
  expect(store.count).toBe(5);
});

test("steps that overlap with what is known add only what is new", () => {
  const store = storeOf(begin("r", words("a", "b")), update({ seq: 2 }, 1, words("b", "c")));
  expect([0, 1, 2].map((i) => store.text(i))).toEqual(["a", "b", "c"]);
});

test("steps beyond what is known are a gap and are left alone", () => {
  const store = storeOf(begin("r", words("a")));
  expect(store.apply(parse(update({ seq: 3 }, 2, words("c"))))).toMatchObject({ gap: true, from: 1 });
  expect(store.count).toBe(1);
});

test("an update of an unknown run without info is a gap and changes nothing", () => {
  const store = storeOf(begin("r", words("a")));
  const before = read(store);
  expect(store.apply(parse(update({ run: "other", state: "running" }))).gap).toBe(true);
  expect(read(store)).toEqual(before);
});

test("info with another run's name begins anew", () => {
  const store = storeOf(examples.replay());
  expect(store.apply(parse(begin("r2", words("x")))).reset).toBe(true);
  expect(store.count).toBe(1);
  expect(store.finish).toBeNull();
  expect(store.notices).toEqual([]);
});

test("a replayed step may have been rolled back since", () => {
  const store = storeOf(begin("r", words("a", "b")));
  const change = store.apply(parse(update({ seq: 2 }, 0, [{ text: "a" }, { text: "b", flags: 0 }])));
  expect(change.reflagged).toEqual([1]);
  expect(store.step(1).kept).toBe(false);
  expect(FLAGS.kept).toBe(8);
});

test("columns grow past their first room", () => {
  const store = new RunStore();
  store.apply(parse(begin()));
  for (let i = 0; i < 300; i += 3)
    store.apply(
      parse(
        update(
          { seq: i },
          i,
          [0, 1, 2].map((k) => ({ text: "x", maxProb: (i + k) / 512 })),
        ),
      ),
    );
  expect(store.count).toBe(300);
  expect(Array.from(store.numbers.max_prob.values)).toEqual(Array.from({ length: 300 }, (_, i) => i / 512));
});

/** Expected values are those that tests/fixtures/write_protocol_examples.py writes into the examples. */

import { describe, expect, test } from "vitest";
import pickExample from "../../tests/fixtures/protocol/pick.json";
import { parseUpdate, pick } from "../src/protocol";
import { RunStore } from "../src/store";
import { begin, examples, type Sent, update } from "./helpers";

const parse = ({ content, buffers }: Sent) => parseUpdate(content, buffers);

test("the policy, the look-ups, the budget, what another threshold does and other policies are read", () => {
  const read = parse(examples.flareReplay());
  expect(read.info?.policy).toMatchObject({ name: "rollback", threshold: 0.6 });
  const [first, second] = read.look_ups ?? [];
  expect(first).toMatchObject({ at: 3, keep: 2, dropped: 1, outcome: "found", ms: 4.5, prefill_tokens: 30 });
  expect(first?.hits[0]).toMatchObject({ id: "p1", score: 7.25, added: true, used: [[2, 10]] });
  expect(first?.hits[1]).toMatchObject({ score: null, added: false, used: [] });
  expect(first?.chances).toContainEqual({ text: " Canberra", before: 0.25, after: 0.875 });
  expect(second).toMatchObject({ outcome: "failed", prefill_tokens: null, hits: [] });
  expect(read.retrieved).toEqual([3]);
  expect(read.budget).toMatchObject({ retrievals: 1, max_retrievals: 3, context_tokens: 11 });
  expect(read.what_if).toMatchObject({ threshold: 0.6, runs: false });
  expect(read.beside?.map(({ policy }) => policy)).toEqual(["rollback", "none", "upfront", "flare"]);
});

test("a pick is what Python accepts", () => expect(pick(1)).toEqual(pickExample.content));

describe("a malformed part is refused and the fault is named", () => {
  const look = (parts: object) => ({
    look_ups: [{ ...(parse(examples.flareReplay()).look_ups ?? [])[0], ...parts }],
  });
  const hit = (parts: object) =>
    look({ hits: [{ id: "", title: "", source: "", score: 1, text: "", added: true, used: [], ...parts }] });
  const broken: [string, Record<string, unknown>, RegExp][] = [
    ["look-ups", { look_ups: {} }, /look_ups is \{\}, expected a list/],
    ["place", look({ at: -1 }), /look_ups.0.at is -1/],
    ["outcome", look({ outcome: "maybe" }), /look_ups.0.outcome is "maybe", expected one of found/],
    ["steps", look({ trigger_steps: ["a"] }), /look_ups.0.trigger_steps.0/],
    ["upfront", look({ upfront: 1 }), /look_ups.0.upfront is 1, expected true or false/],
    ["time", look({ ms: "fast" }), /look_ups.0.ms/],
    ["tokens", look({ prefill_tokens: 1.5 }), /look_ups.0.prefill_tokens is 1.5/],
    ["chance", look({ chances: [{ text: "a", before: "b", after: null }] }), /look_ups.0.chances.0.before/],
    ["text", hit({ text: null }), /look_ups.0.hits.0.text is null/],
    ["range", hit({ used: [[5, 2]] }), /look_ups.0.hits.0.used.0 is \[5,2\], expected a start and an end/],
    ["range of three", hit({ used: [[1, 2, 3]] }), /expected a start and an end/],
    ["retrieved", { retrieved: [0.5] }, /retrieved.0 is 0.5/],
    [
      "what if",
      { what_if: { threshold: 0.5, policy: "p", look_ups: [{}], runs: false } },
      /what_if.look_ups.0.at/,
    ],
    ["budget", { budget: { retrievals: null } }, /budget.retrievals is null/],
    ["beside", { beside: [{ policy: 3 }] }, /beside.0.policy is 3/],
    [
      "policy",
      { info: { ...(examples.start().content["info"] as object), policy: "seed" } },
      /info.policy is "seed"/,
    ],
  ];
  test.each(broken)("%s", (_, parts, message) => expect(() => parse(update(parts))).toThrow(message));
});

describe("the store", () => {
  const storeOf = (...sent: Sent[]) => {
    const store = new RunStore();
    for (const one of sent) store.apply(parse(one));
    return store;
  };

  test("takes over that a known step was dropped, and what was looked up", () => {
    const store = storeOf(examples.flareStart(), examples.flareDoubt());
    expect([store.dropped, store.lookUps.length]).toEqual([0, 0]);
    expect(store.apply(parse(examples.flareLookUp())).reflagged).toEqual([2]);
    expect([store.dropped, store.lookUps.length, store.kept(2)]).toEqual([1, 1, false]);
  });

  test("takes over that a stop string took text away", () => {
    const store = storeOf(begin("r", [{ text: "a" }, { text: " STOP" }]));
    const change = store.apply(parse(update({ seq: 2 }, 1, [{ text: "", label: " STOP" }])));
    expect(change.reflagged).toEqual([1]);
    expect([store.text(1), store.step(1).label]).toEqual(["", " STOP"]);
  });

  test("does not turn a step back when an older update comes late", () => {
    const store = storeOf(examples.flareStart(), examples.flareLookUp());
    const gone = storeOf(begin("r", [{ text: "a" }]), update({ seq: 5 }, 0, [{ text: "a", flags: 0 }]));
    expect(gone.apply(parse(update({ seq: 3 }, 0, [{ text: "a" }]))).reflagged).toEqual([]);
    expect(gone.kept(0)).toBe(false);
    expect(store.count).toBe(0);
  });

  test("forgets look-ups, suppositions and figures when another run begins", () => {
    const store = storeOf(examples.flareReplay(), begin("other"));
    expect(store).toMatchObject({ lookUps: [], retrieved: [], whatIf: null, budget: null, beside: [] });
  });
});

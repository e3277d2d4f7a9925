/** Where steps stand, how a look-up reads, and what is shown of a passage: expected values by hand. */

import { describe, expect, test } from "vitest";
import { costText, duration, outcomeText, whereMade, whyNotAdded } from "../src/look_up_words";
import { excerpt, sourceText, stretches } from "../src/passage";
import { placeAt, placesOf, stepBefore } from "../src/places";
import { labelled } from "../src/plot_marks";
import { FLAGS } from "../src/protocol";
import type { LookUpRow, ShownHit } from "../src/retrieval_protocol";

const HIT: ShownHit = { id: "7", title: "", source: "", score: null, text: "t", added: true, used: [] };
const ROW: LookUpRow = {
  at: 7,
  position: 7,
  keep: 5,
  dropped: 2,
  query: "q",
  reason: "r",
  trigger_steps: [5],
  upfront: false,
  outcome: "found",
  note: "",
  hits: [HIT],
  ms: 3.14,
  prefill_tokens: 58,
  reused_tokens: 41,
  prefill_ms: 310,
  chances: [],
};

/** `k` is kept, `d` was dropped. */
const flags = (text: string) => Array.from(text, (one) => (one === "k" ? FLAGS.kept : 0));

describe("the places of steps", () => {
  test("are their indices while nothing was dropped", () => {
    expect(placesOf(flags("kkk"))).toEqual({ of: [0, 1, 2], kept: [0, 1, 2], drafts: [], count: 3 });
  });

  test("begin again where the text went on from", () => {
    // The capital is |Belize City| Belmopan .
    const places = placesOf(flags("kkkddkk"), [{ at: 5, keep: 3, outcome: "found" }]);
    expect(places).toEqual({ of: [0, 1, 2, 3, 4, 3, 4], kept: [0, 1, 2, 5, 6], drafts: [[3, 5]], count: 5 });
    expect([placeAt(places, 5), placeAt(places, 7)]).toEqual([3, 5]);
  });

  test("of a draft written over a draft are those of the text that it replaced", () => {
    // Two steps go, the next two go with one before them: a |b c| (b' c') -> all but a.
    const places = placesOf(flags("kddddk"), [
      { at: 3, keep: 1, outcome: "found" },
      { at: 5, keep: 1, outcome: "found" },
    ]);
    expect(places.of).toEqual([0, 1, 2, 1, 2, 1]);
    expect(places.drafts).toEqual([
      [1, 3],
      [3, 5],
    ]);
  });

  test("of a longer draft reach beyond what stands", () => {
    expect(placesOf(flags("dddk"), [{ at: 3, keep: 0, outcome: "found" }])).toMatchObject({
      of: [0, 1, 2, 0],
      count: 3,
    });
  });

  test("find the step that stood at one before a look-up", () => {
    const places = placesOf(flags("kkddk"), [{ at: 4, keep: 2, outcome: "found" }]);
    expect([stepBefore(places, 4, 2), stepBefore(places, 5, 2), stepBefore(places, 4, 9)]).toEqual([
      2,
      4,
      null,
    ]);
  });
});

describe("a look-up in words", () => {
  const texts = ["The", " capital", " of", " Belize", " is", " Belize", " City", " Belmopan"];
  const places = placesOf(flags("kkkkkddk"), [ROW]);
  const text = (step: number) => texts[step] ?? "";

  test("says after which words it was made, without those that were dropped", () => {
    expect(whereMade(ROW, places, text)).toBe("at token 5, after “The capital of Belize is”");
  });

  test("quotes the end of a long text, from a word on", () => {
    const long = (step: number) => ` ${"abcdefghi".slice(0, 9)}${step}`;
    const many = placesOf(flags("kkkkkkkkkk"));
    expect(whereMade({ ...ROW, at: 10, keep: 10, dropped: 0 }, many, long)).toBe(
      "at token 10, after “…abcdefghi6 abcdefghi7 abcdefghi8 abcdefghi9”",
    );
  });

  test("of one before the answer says so, and of one at its start quotes nothing", () => {
    expect(whereMade({ ...ROW, upfront: true }, places, text)).toBe("before the answer");
    expect(whereMade({ ...ROW, keep: 0 }, places, text)).toBe("at token 0");
  });

  test.each([
    [{}, "1 passage"],
    [{ hits: [HIT, { ...HIT, added: false }] }, "2 passages, 1 of them new in the prompt"],
    [{ outcome: "nothing", hits: [] }, "nothing; the text went on"],
    [{ outcome: "nothing", note: "all known already" }, "nothing new; all known already; the text went on"],
    [{ outcome: "failed", note: "no index" }, "no index; the text went on"],
    [{ outcome: "timeout", note: "" }, "no answer in time; the text went on"],
  ] as [Partial<LookUpRow>, string][])("that came to %j reads %s", (parts, words) =>
    expect(outcomeText({ ...ROW, ...parts })).toBe(words),
  );

  test("says why a passage was left out", () => {
    const left = { ...HIT, added: false };
    expect(whyNotAdded(left, [ROW])).toBe("was in the prompt already");
    expect(whyNotAdded(left, [])).toBe("did not enter the prompt");
    expect(whyNotAdded(left, [{ ...ROW, hits: [left] }])).toBe("did not enter the prompt");
  });

  test("says what it cost, as far as that is known", () => {
    expect(costText(ROW).join(" · ")).toBe(
      "dropped 2 tokens · read 58 tokens · re-used 41 · look-up 3.1 ms · reading 310 ms",
    );
    const open = {
      ...ROW,
      dropped: 0,
      prefill_tokens: null,
      reused_tokens: null,
      prefill_ms: null,
      ms: null,
    };
    expect(costText(open)).toEqual([]);
  });

  test.each([
    [0.04, "0.0 ms"],
    [9.96, "10 ms"],
    [999, "999 ms"],
    [1900, "1.90 s"],
  ])("%d ms are %s", (ms, words) => expect(duration(ms)).toBe(words));
});

describe("a passage", () => {
  test("has the words that were used, counted in characters and not in halves of them", () => {
    const characters = Array.from("🦘 Canberra <b>");
    expect(stretches(characters, [[2, 10]], [0, characters.length])).toEqual([
      { text: "🦘 ", used: false },
      { text: "Canberra", used: true },
      { text: " <b>", used: false },
    ]);
  });

  test("may name words beyond its end, as where it was cut, and some twice", () => {
    const pieces = stretches(
      Array.from("abc"),
      [
        [1, 99],
        [1, 2],
      ],
      [0, 3],
    );
    expect(pieces.map(({ text, used }) => [text, used])).toEqual([
      ["a", false],
      ["bc", true],
    ]);
  });

  test("that is long is shown around the first word that was used", () => {
    expect(excerpt(240, [])).toEqual([0, 240]);
    expect(excerpt(2000, [])).toEqual([0, 240]);
    expect(excerpt(2000, [[100, 105]])).toEqual([0, 240]);
    expect(
      excerpt(2000, [
        [900, 905],
        [700, 705],
      ]),
    ).toEqual([640, 880]);
    expect(excerpt(2000, [[1990, 1999]])).toEqual([1760, 2000]);
  });

  test("says where it is from, by its id if by nothing else", () => {
    expect(sourceText({ ...HIT, title: "Capitals", source: "c.md:3", score: 7.25 })).toBe(
      "Capitals · c.md:3 · score 7.25",
    );
    expect(sourceText(HIT)).toBe("7");
  });
});

describe("the triangles under the axis", () => {
  test("have their numbers where there is room", () => {
    expect(labelled([10, 100, 103, 200], null).map(({ text }) => text)).toEqual(["▲1", "▲", "▲3", "▲4"]);
  });

  test("make room for the number of the chosen one, which is drawn last", () => {
    expect(labelled([100, 103], 0)).toEqual([
      { index: 1, text: "▲" },
      { index: 0, text: "▲1" },
    ]);
  });
});

/** The parts of an update that tell of look-ups; the other half of those in `cartoolkit/ui/_protocol.py`. */

import {
  asBoolean,
  asCount,
  asIndices,
  asList,
  asNumberOrNull,
  asOneOf,
  asRecord,
  asString,
  ProtocolError,
  show,
} from "./checks";

/** What decides about look-ups, in plain words. */
export interface PolicyInfo {
  name: string;
  trigger: string;
  /** Of its trigger, on the raw max probability; null where it has none. */
  threshold: number | null;
  retriever: string;
}

/** A passage that a look-up found. */
export interface ShownHit {
  id: string;
  title: string;
  source: string;
  score: number | null;
  text: string;
  /** It entered the prompt. */
  added: boolean;
  /** Stretches of `text`, in code points, whose words stand in the answer after the look-up. */
  used: [number, number][];
}

/** Raw probability of a token before and after a look-up; null where it was not among the candidates. */
export interface Chance {
  text: string;
  before: number | null;
  after: number | null;
}

export const OUTCOMES = ["found", "nothing", "failed", "timeout"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface LookUpRow {
  /** The step before which it was made. */
  at: number;
  /** Tokens of the answer that stood, that stayed, and that went. */
  position: number;
  keep: number;
  dropped: number;
  query: string;
  reason: string;
  trigger_steps: number[];
  upfront: boolean;
  outcome: Outcome;
  note: string;
  hits: ShownHit[];
  /** Milliseconds of the look-up. */
  ms: number | null;
  /** Of reading the prompt again; null where that was not done, or not yet. */
  prefill_tokens: number | null;
  reused_tokens: number | null;
  prefill_ms: number | null;
  chances: Chance[];
}

/** A look-up that a policy would make over the steps of this run. */
export interface SupposedLookUp {
  at: number;
  trigger_steps: number[];
  reason: string;
}

export interface WhatIf {
  threshold: number | null;
  policy: string;
  look_ups: SupposedLookUp[];
  /** The run is still going on, so more may follow. */
  runs: boolean;
}

/** What a run has used of what its policy allows; a limit that is null is none. */
export interface BudgetUsed {
  /** Look-ups that brought something new, and those that did not. */
  retrievals: number;
  max_retrievals: number;
  fruitless: number;
  kept: number;
  decoded: number;
  /** Tokens of the passages in the prompt; null while they are not known. */
  context_tokens: number | null;
  max_context_tokens: number | null;
}

/** The same question under another policy. */
export interface BesideRow {
  policy: string;
  answer: string;
  look_ups: number;
  decoded: number;
  prefilled: number;
  ms: number | null;
  running: boolean;
  /** An error's sentence; empty if all went well. */
  failed: string;
  /** It is the run on the page. */
  shown: boolean;
}

export function parsePolicy(value: unknown): PolicyInfo {
  const policy = asRecord(value, "info.policy");
  return {
    name: asString(policy["name"], "info.policy.name"),
    trigger: asString(policy["trigger"], "info.policy.trigger"),
    threshold: asNumberOrNull(policy["threshold"], "info.policy.threshold"),
    retriever: asString(policy["retriever"], "info.policy.retriever"),
  };
}

export function parseLookUps(value: unknown): LookUpRow[] {
  return asList(value, "look_ups").map((row, i) =>
    parseLookUp(asRecord(row, `look_ups.${i}`), `look_ups.${i}`),
  );
}

function parseLookUp(row: Record<string, unknown>, where: string): LookUpRow {
  const countOrNull = (name: string) => (row[name] === null ? null : asCount(row[name], `${where}.${name}`));
  return {
    at: asCount(row["at"], `${where}.at`),
    position: asCount(row["position"], `${where}.position`),
    keep: asCount(row["keep"], `${where}.keep`),
    dropped: asCount(row["dropped"], `${where}.dropped`),
    query: asString(row["query"], `${where}.query`),
    reason: asString(row["reason"], `${where}.reason`),
    trigger_steps: asIndices(row["trigger_steps"], `${where}.trigger_steps`),
    upfront: asBoolean(row["upfront"], `${where}.upfront`),
    outcome: asOneOf(OUTCOMES, row["outcome"], `${where}.outcome`),
    note: asString(row["note"], `${where}.note`),
    hits: asList(row["hits"], `${where}.hits`).map((hit, i) => parseHit(hit, `${where}.hits.${i}`)),
    ms: asNumberOrNull(row["ms"], `${where}.ms`),
    prefill_tokens: countOrNull("prefill_tokens"),
    reused_tokens: countOrNull("reused_tokens"),
    prefill_ms: asNumberOrNull(row["prefill_ms"], `${where}.prefill_ms`),
    chances: asList(row["chances"], `${where}.chances`).map((chance, i) =>
      parseChance(chance, `${where}.chances.${i}`),
    ),
  };
}

function parseHit(value: unknown, where: string): ShownHit {
  const hit = asRecord(value, where);
  return {
    id: asString(hit["id"], `${where}.id`),
    title: asString(hit["title"], `${where}.title`),
    source: asString(hit["source"], `${where}.source`),
    score: asNumberOrNull(hit["score"], `${where}.score`),
    text: asString(hit["text"], `${where}.text`),
    added: asBoolean(hit["added"], `${where}.added`),
    used: asList(hit["used"], `${where}.used`).map((range, i) => parseRange(range, `${where}.used.${i}`)),
  };
}

function parseRange(value: unknown, where: string): [number, number] {
  const [start, end, ...rest] = asIndices(value, where);
  if (start === undefined || end === undefined || rest.length > 0 || end < start)
    throw new ProtocolError(`${where} is ${show(value)}, expected a start and an end`);
  return [start, end];
}

function parseChance(value: unknown, where: string): Chance {
  const chance = asRecord(value, where);
  return {
    text: asString(chance["text"], `${where}.text`),
    before: asNumberOrNull(chance["before"], `${where}.before`),
    after: asNumberOrNull(chance["after"], `${where}.after`),
  };
}

export function parseWhatIf(value: unknown): WhatIf {
  const whatIf = asRecord(value, "what_if");
  return {
    threshold: asNumberOrNull(whatIf["threshold"], "what_if.threshold"),
    policy: asString(whatIf["policy"], "what_if.policy"),
    look_ups: asList(whatIf["look_ups"], "what_if.look_ups").map((row, i) => {
      const where = `what_if.look_ups.${i}`;
      const supposed = asRecord(row, where);
      return {
        at: asCount(supposed["at"], `${where}.at`),
        trigger_steps: asIndices(supposed["trigger_steps"], `${where}.trigger_steps`),
        reason: asString(supposed["reason"], `${where}.reason`),
      };
    }),
    runs: asBoolean(whatIf["runs"], "what_if.runs"),
  };
}

export function parseBudget(value: unknown): BudgetUsed {
  const budget = asRecord(value, "budget");
  const count = (name: string) => asCount(budget[name], `budget.${name}`);
  const countOrNull = (name: string) => (budget[name] === null ? null : count(name));
  return {
    retrievals: count("retrievals"),
    max_retrievals: count("max_retrievals"),
    fruitless: count("fruitless"),
    kept: count("kept"),
    decoded: count("decoded"),
    context_tokens: countOrNull("context_tokens"),
    max_context_tokens: countOrNull("max_context_tokens"),
  };
}

export function parseBeside(value: unknown): BesideRow[] {
  return asList(value, "beside").map((entry, i) => {
    const where = `beside.${i}`;
    const row = asRecord(entry, where);
    return {
      policy: asString(row["policy"], `${where}.policy`),
      answer: asString(row["answer"], `${where}.answer`),
      look_ups: asCount(row["look_ups"], `${where}.look_ups`),
      decoded: asCount(row["decoded"], `${where}.decoded`),
      prefilled: asCount(row["prefilled"], `${where}.prefilled`),
      ms: asNumberOrNull(row["ms"], `${where}.ms`),
      running: asBoolean(row["running"], `${where}.running`),
      failed: asString(row["failed"], `${where}.failed`),
      shown: asBoolean(row["shown"], `${where}.shown`),
    };
  });
}

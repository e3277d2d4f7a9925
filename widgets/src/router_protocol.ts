/**
 * The messages between a table of models and its router; the other half of `cartoolkit/ui/_router_protocol.py`.
 *
 * The kernel always sends the whole state. It is checked whole before anything of it is drawn: `parseState`
 * returns it or throws a `ProtocolError` that says what is wrong.
 */

import {
  asBoolean,
  asCount,
  asList,
  asNumberOrNull,
  asOneOf,
  asRecord,
  asString,
  asStrings,
  ProtocolError,
  show,
} from "./checks";
import { PROTOCOL_VERSION } from "./protocol";

export const TERMS = ["quality", "latency", "cost"] as const;
export type TermName = (typeof TERMS)[number];

export const WEIGHTS = [...TERMS, "local_bonus"] as const;
export type WeightName = (typeof WEIGHTS)[number];

export const BASES = ["measured", "declared", "assumed"] as const;
export type Basis = (typeof BASES)[number];

/** What is asked of the models; a limit that is null does not hold. */
export interface Question {
  prompt_tokens: number;
  output_tokens: number;
  max_cost_usd: number | null;
  max_latency_ms: number | null;
  task: string;
  tasks: string[];
}
export type AmountName = "prompt_tokens" | "output_tokens" | "max_cost_usd" | "max_latency_ms";

export interface Workload {
  name: string;
  title: string;
  quality: number;
  latency: number;
  cost: number;
  local_bonus: number;
  /** Its weights are not those it had at first. */
  changed: boolean;
  /** Latency is the time to the first token alone. */
  first_token: boolean;
}

export interface ModelRow {
  id: string;
  title: string;
  where: "local" | "remote";
  basis: Basis;
  note: string;
  calls: number;
  successes: number;
  failures: number;
  loaded: boolean;
}

export interface Term {
  name: TermName;
  value: number;
  weight: number;
  points: number;
  basis: Basis;
}

/** A number that the kernel could not say is NaN here, and is shown as a dash. */
export interface ScoredCell {
  kind: "scored";
  score: number;
  rank: number;
  wins: number;
  worth: number;
  reliability: number;
  bonus: number;
  latency_ms: number;
  usd: number | null;
  terms: Term[];
}

export interface FilteredCell {
  kind: "filtered";
  reasons: string[];
  filters: string[];
}

export type Cell = ScoredCell | FilteredCell;

export interface Baseline {
  name: string;
  note: string;
  /** One for each workload. */
  cells: { text: string; hint: string }[];
}

export interface Place {
  workload: string;
  model: string;
}

export interface Detail {
  title: string;
  lines: { name: string; points: number; basis: string; arithmetic: string }[];
  sum: string;
  worth: string;
  fallbacks: string[];
  changes: { text: string }[];
}

/** An answer to the latest prompt. */
export interface Answer {
  trace_id: string;
  model: string;
  text: string;
  ms: number | null;
  tokens: number;
  story: string;
  verdict: boolean | null;
  outcome: string;
}

export interface Busy {
  what: string;
  done: number;
  total: number;
}

export interface RouterState {
  v: number;
  seq: number;
  question: Question;
  strategy: { text: string; prior_strength: number; draws: number };
  workloads: Workload[];
  models: ModelRow[];
  /** By model, then by workload. */
  cells: Cell[][];
  baselines: Baseline[];
  selected: Place | null;
  detail: Detail | null;
  runs: Answer[];
  busy: Busy | null;
  notices: string[];
}

/** Everything the browser sends. */
export type RouterMessage =
  | { type: "ready"; seq: number | null }
  | { type: "weight"; workload: string; name: WeightName; value: number }
  | { type: "question"; name: AmountName; value: number | null }
  | { type: "question"; name: "task"; value: string }
  | { type: "select"; workload: string; model: string }
  | { type: "reset" }
  | { type: "probe"; model: string | null }
  | { type: "verdict"; trace_id: string; accepted: boolean };

/** A message as it goes over the wire. */
export function outgoing(message: RouterMessage): RouterMessage & { v: number } {
  return { v: PROTOCOL_VERSION, ...message };
}

/** Check a custom message from the kernel; there is one kind, which carries a state. */
export function parseMessage(content: unknown): RouterState {
  const data = asRecord(content, "message");
  if (data["type"] !== "update") throw new ProtocolError(`unknown kind of message ${show(data["type"])}`);
  requireVersion(data);
  return parseState(data["state"]);
}

/** Check a whole state, which is also what a saved notebook keeps. */
export function parseState(value: unknown): RouterState {
  const data = asRecord(value, "state");
  requireVersion(data);
  const workloads = listOf(data["workloads"], "workloads", parseWorkload);
  const models = listOf(data["models"], "models", parseModel);
  return {
    v: PROTOCOL_VERSION,
    seq: asCount(data["seq"], "seq"),
    question: parseQuestion(data["question"]),
    strategy: parseStrategy(data["strategy"]),
    workloads,
    models,
    cells: parseCells(data["cells"], models.length, workloads.length),
    baselines: listOf(data["baselines"], "baselines", (each, where) =>
      parseBaseline(each, where, workloads.length),
    ),
    selected: orNull(data["selected"], (each) => parsePlace(each, "selected")),
    detail: orNull(data["detail"], parseDetail),
    runs: listOf(data["runs"], "runs", parseAnswer),
    busy: orNull(data["busy"], parseBusy),
    notices: asStrings(data["notices"], "notices"),
  };
}

function requireVersion(data: Record<string, unknown>): void {
  if (data["v"] !== PROTOCOL_VERSION)
    throw new ProtocolError(`protocol version ${show(data["v"])}, expected ${PROTOCOL_VERSION}`);
}

function listOf<T>(value: unknown, where: string, parse: (each: unknown, where: string) => T): T[] {
  return asList(value, where).map((each, i) => parse(each, `${where}.${i}`));
}

function orNull<T>(value: unknown, parse: (value: unknown) => T): T | null {
  return value === null ? null : parse(value);
}

/** A finite number, or NaN for null. */
function asNumber(value: unknown, where: string): number {
  return asNumberOrNull(value, where) ?? Number.NaN;
}

function parseQuestion(value: unknown): Question {
  const data = asRecord(value, "question");
  return {
    prompt_tokens: asCount(data["prompt_tokens"], "question.prompt_tokens"),
    output_tokens: asCount(data["output_tokens"], "question.output_tokens"),
    max_cost_usd: asNumberOrNull(data["max_cost_usd"], "question.max_cost_usd"),
    max_latency_ms: asNumberOrNull(data["max_latency_ms"], "question.max_latency_ms"),
    task: asString(data["task"], "question.task"),
    tasks: asStrings(data["tasks"], "question.tasks"),
  };
}

function parseStrategy(value: unknown): RouterState["strategy"] {
  const data = asRecord(value, "strategy");
  return {
    text: asString(data["text"], "strategy.text"),
    prior_strength: asNumber(data["prior_strength"], "strategy.prior_strength"),
    draws: asCount(data["draws"], "strategy.draws"),
  };
}

function parseWorkload(value: unknown, where: string): Workload {
  const data = asRecord(value, where);
  return {
    name: asString(data["name"], `${where}.name`),
    title: asString(data["title"], `${where}.title`),
    quality: asNumber(data["quality"], `${where}.quality`),
    latency: asNumber(data["latency"], `${where}.latency`),
    cost: asNumber(data["cost"], `${where}.cost`),
    local_bonus: asNumber(data["local_bonus"], `${where}.local_bonus`),
    changed: asBoolean(data["changed"], `${where}.changed`),
    first_token: asBoolean(data["first_token"], `${where}.first_token`),
  };
}

function parseModel(value: unknown, where: string): ModelRow {
  const data = asRecord(value, where);
  return {
    id: asString(data["id"], `${where}.id`),
    title: asString(data["title"], `${where}.title`),
    where: asOneOf(["local", "remote"], data["where"], `${where}.where`),
    basis: asOneOf(BASES, data["basis"], `${where}.basis`),
    note: asString(data["note"], `${where}.note`),
    calls: asCount(data["calls"], `${where}.calls`),
    successes: asCount(data["successes"], `${where}.successes`),
    failures: asCount(data["failures"], `${where}.failures`),
    loaded: asBoolean(data["loaded"], `${where}.loaded`),
  };
}

function parseCells(value: unknown, models: number, workloads: number): Cell[][] {
  const rows = listOf(value, "cells", (row, where) => listOf(row, where, parseCell));
  if (rows.length !== models) throw new ProtocolError(`cells has ${rows.length} rows for ${models} models`);
  const odd = rows.findIndex((row) => row.length !== workloads);
  if (odd >= 0)
    throw new ProtocolError(`cells.${odd} has ${rows[odd]?.length} cells for ${workloads} workloads`);
  return rows;
}

function parseCell(value: unknown, where: string): Cell {
  const data = asRecord(value, where);
  if (asOneOf(["scored", "filtered"], data["kind"], `${where}.kind`) === "filtered") {
    return {
      kind: "filtered",
      reasons: asStrings(data["reasons"], `${where}.reasons`),
      filters: asStrings(data["filters"], `${where}.filters`),
    };
  }
  return {
    kind: "scored",
    score: asNumber(data["score"], `${where}.score`),
    rank: asCount(data["rank"], `${where}.rank`),
    wins: asNumber(data["wins"], `${where}.wins`),
    worth: asNumber(data["worth"], `${where}.worth`),
    reliability: asNumber(data["reliability"], `${where}.reliability`),
    bonus: asNumber(data["bonus"], `${where}.bonus`),
    latency_ms: asNumber(data["latency_ms"], `${where}.latency_ms`),
    usd: asNumberOrNull(data["usd"], `${where}.usd`),
    terms: listOf(data["terms"], `${where}.terms`, parseTerm),
  };
}

function parseTerm(value: unknown, where: string): Term {
  const data = asRecord(value, where);
  return {
    name: asOneOf(TERMS, data["name"], `${where}.name`),
    value: asNumber(data["value"], `${where}.value`),
    weight: asNumber(data["weight"], `${where}.weight`),
    points: asNumber(data["points"], `${where}.points`),
    basis: asOneOf(BASES, data["basis"], `${where}.basis`),
  };
}

function parseBaseline(value: unknown, where: string, workloads: number): Baseline {
  const data = asRecord(value, where);
  const cells = listOf(data["cells"], `${where}.cells`, (cell, at) => {
    const { text, hint } = asRecord(cell, at);
    return { text: asString(text, `${at}.text`), hint: asString(hint, `${at}.hint`) };
  });
  if (cells.length !== workloads)
    throw new ProtocolError(`${where}.cells has ${cells.length} cells for ${workloads} workloads`);
  return {
    name: asString(data["name"], `${where}.name`),
    note: asString(data["note"], `${where}.note`),
    cells,
  };
}

function parsePlace(value: unknown, where: string): Place {
  const data = asRecord(value, where);
  return {
    workload: asString(data["workload"], `${where}.workload`),
    model: asString(data["model"], `${where}.model`),
  };
}

function parseDetail(value: unknown): Detail {
  const data = asRecord(value, "detail");
  return {
    title: asString(data["title"], "detail.title"),
    lines: listOf(data["lines"], "detail.lines", (each, where) => {
      const line = asRecord(each, where);
      return {
        name: asString(line["name"], `${where}.name`),
        points: asNumber(line["points"], `${where}.points`),
        basis: asString(line["basis"], `${where}.basis`),
        arithmetic: asString(line["arithmetic"], `${where}.arithmetic`),
      };
    }),
    sum: asString(data["sum"], "detail.sum"),
    worth: asString(data["worth"], "detail.worth"),
    fallbacks: asStrings(data["fallbacks"], "detail.fallbacks"),
    changes: listOf(data["changes"], "detail.changes", (each, where) => ({
      text: asString(asRecord(each, where)["text"], `${where}.text`),
    })),
  };
}

function parseAnswer(value: unknown, where: string): Answer {
  const data = asRecord(value, where);
  return {
    trace_id: asString(data["trace_id"], `${where}.trace_id`),
    model: asString(data["model"], `${where}.model`),
    text: asString(data["text"], `${where}.text`),
    ms: asNumberOrNull(data["ms"], `${where}.ms`),
    tokens: asCount(data["tokens"], `${where}.tokens`),
    story: asString(data["story"], `${where}.story`),
    verdict: orNull(data["verdict"], (each) => asBoolean(each, `${where}.verdict`)),
    outcome: asString(data["outcome"], `${where}.outcome`),
  };
}

function parseBusy(value: unknown): Busy {
  const data = asRecord(value, "busy");
  return {
    what: asString(data["what"], "busy.what"),
    done: asCount(data["done"], "busy.done"),
    total: asCount(data["total"], "busy.total"),
  };
}

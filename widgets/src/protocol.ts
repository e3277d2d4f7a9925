/**
 * The messages between kernel and browser; the other half of `cartoolkit/ui/_protocol.py`.
 *
 * A message is checked whole before anything of it is used: `parseUpdate` returns it or throws a
 * `ProtocolError` that says what is wrong. The examples in `tests/fixtures/protocol` are read by both halves.
 */

import {
  asCount,
  asIndices,
  asList,
  asNumberOrNull,
  asRecord,
  asString,
  asStrings,
  has,
  ProtocolError,
  show,
} from "./checks";

import {
  type BesideRow,
  type BudgetUsed,
  type LookUpRow,
  type PolicyInfo,
  parseBeside,
  parseBudget,
  parseLookUps,
  parsePolicy,
  parseWhatIf,
  type WhatIf,
} from "./retrieval_protocol";

export const PROTOCOL_VERSION = 1;

/** What may remove a candidate, in the order of the sampler; the first entry means: not removed. */
export const STAGES = ["", "bias", "greedy", "top_k", "top_p", "min_p"] as const;

/** Bits of the `flags` column. */
export const FLAGS = { incomplete: 1, special: 2, forced: 4, kept: 8 } as const;

/** Every column with one value a step. */
export const STEP_COLUMNS = {
  token_id: Int32Array,
  logprob: Float32Array,
  rank: Int32Array,
  processed_logprob: Float32Array,
  max_prob: Float32Array,
  entropy: Float32Array,
  varentropy: Float32Array,
  margin: Float32Array,
  rest_mass: Float32Array,
  processed_rest_mass: Float32Array,
  draw: Float64Array,
  elapsed: Float64Array,
  flags: Uint8Array,
} as const;

/** Every column with one value a candidate, shape [count, width]; a missing candidate has id -1. */
export const CANDIDATE_COLUMNS = {
  candidate_id: Int32Array,
  candidate_logprob: Float32Array,
  candidate_processed_logprob: Float32Array,
  candidate_removed_by: Uint8Array,
} as const;

const COLUMNS = { ...STEP_COLUMNS, ...CANDIDATE_COLUMNS } as const;

export type StepColumn = keyof typeof STEP_COLUMNS;
type ColumnName = keyof typeof COLUMNS;
export type Columns = { [K in ColumnName]: InstanceType<(typeof COLUMNS)[K]> };

/** Where a run left the one that it goes on from. */
export interface BranchPoint {
  /** Its first step that was not taken over. */
  at: number;
  text: string;
}

export interface RunInfo {
  model: string;
  engine: string;
  device: string;
  dtype: string;
  context_length: number;
  prompt: string;
  params: Record<string, unknown>;
  /** Tokens in the vocabulary, where the engine told. */
  vocab_size?: number;
  branch?: BranchPoint;
  policy?: PolicyInfo;
}

export interface Prefill {
  done: number;
  total: number;
  reused: number;
}

export interface StepsBlock {
  first: number;
  count: number;
  width: number;
  texts: string[];
  labels: string[];
  candidate_texts: string[][];
  columns: Columns;
}

export interface Finish {
  stop_reason: string;
  stop_detail: string;
  completion_tokens: number;
  ttft_ms: number | null;
  tokens_per_second: number | null;
}

export interface Failure {
  message: string;
  hint: string;
}

export interface Update {
  type: "update";
  v: number;
  run: string;
  seq: number;
  info?: RunInfo;
  state?: string;
  prefill?: Prefill;
  steps?: StepsBlock;
  notices?: string[];
  finish?: Finish;
  failure?: Failure;
  /** These four always come whole. */
  look_ups?: LookUpRow[];
  retrieved?: number[];
  what_if?: WhatIf;
  beside?: BesideRow[];
  budget?: BudgetUsed;
}

export interface Ready {
  type: "ready";
  v: number;
  run: string | null;
  steps: number;
}

/** Go on from a step with another token there, or with a new draw (null). */
export interface Branch {
  type: "branch";
  v: number;
  run: string;
  step: number;
  token: number | null;
}

/** Show the run of a row of the comparison. */
export interface Pick {
  type: "pick";
  v: number;
  row: number;
}

/** Everything the kernel sends; one kind so far. */
export type Message = Update;

export function ready(run: string | null, steps: number): Ready {
  return { type: "ready", v: PROTOCOL_VERSION, run, steps };
}

export function branch(run: string, step: number, token: number | null): Branch {
  return { type: "branch", v: PROTOCOL_VERSION, run, step, token };
}

export function pick(row: number): Pick {
  return { type: "pick", v: PROTOCOL_VERSION, row };
}

/** Check a message from the kernel and copy its columns out of the buffers. */
export function parseUpdate(content: unknown, buffers: unknown): Update {
  const data = asRecord(content, "message");
  if (data["type"] !== "update") throw new ProtocolError(`unknown kind of message ${show(data["type"])}`);
  if (data["v"] !== PROTOCOL_VERSION)
    throw new ProtocolError(`protocol version ${show(data["v"])}, expected ${PROTOCOL_VERSION}`);
  const update: Update = {
    type: "update",
    v: PROTOCOL_VERSION,
    run: asString(data["run"], "run"),
    seq: asCount(data["seq"], "seq"),
  };
  if (has(data, "info")) update.info = parseInfo(data["info"]);
  if (has(data, "state")) update.state = asString(data["state"], "state");
  if (has(data, "prefill")) update.prefill = parsePrefill(data["prefill"]);
  if (has(data, "steps")) update.steps = parseSteps(data["steps"], buffers);
  if (has(data, "notices")) update.notices = asStrings(data["notices"], "notices");
  if (has(data, "finish")) update.finish = parseFinish(data["finish"]);
  if (has(data, "failure")) update.failure = parseFailure(data["failure"]);
  if (has(data, "look_ups")) update.look_ups = parseLookUps(data["look_ups"]);
  if (has(data, "retrieved")) update.retrieved = asIndices(data["retrieved"], "retrieved");
  if (has(data, "what_if")) update.what_if = parseWhatIf(data["what_if"]);
  if (has(data, "beside")) update.beside = parseBeside(data["beside"]);
  if (has(data, "budget")) update.budget = parseBudget(data["budget"]);
  return update;
}

function parseInfo(value: unknown): RunInfo {
  const info = asRecord(value, "info");
  const parsed: RunInfo = {
    model: asString(info["model"], "info.model"),
    engine: asString(info["engine"], "info.engine"),
    device: asString(info["device"], "info.device"),
    dtype: asString(info["dtype"], "info.dtype"),
    context_length: asCount(info["context_length"], "info.context_length"),
    prompt: asString(info["prompt"], "info.prompt"),
    params: asRecord(info["params"], "info.params"),
  };
  if (has(info, "vocab_size")) parsed.vocab_size = asCount(info["vocab_size"], "info.vocab_size");
  if (has(info, "branch")) parsed.branch = parseBranchPoint(info["branch"]);
  if (has(info, "policy")) parsed.policy = parsePolicy(info["policy"]);
  return parsed;
}

function parseBranchPoint(value: unknown): BranchPoint {
  const point = asRecord(value, "info.branch");
  return {
    at: asCount(point["at"], "info.branch.at"),
    text: asString(point["text"], "info.branch.text"),
  };
}

function parsePrefill(value: unknown): Prefill {
  const prefill = asRecord(value, "prefill");
  return {
    done: asCount(prefill["done"], "prefill.done"),
    total: asCount(prefill["total"], "prefill.total"),
    reused: asCount(prefill["reused"], "prefill.reused"),
  };
}

function parseFinish(value: unknown): Finish {
  const finish = asRecord(value, "finish");
  return {
    stop_reason: asString(finish["stop_reason"], "finish.stop_reason"),
    stop_detail: asString(finish["stop_detail"], "finish.stop_detail"),
    completion_tokens: asCount(finish["completion_tokens"], "finish.completion_tokens"),
    ttft_ms: asNumberOrNull(finish["ttft_ms"], "finish.ttft_ms"),
    tokens_per_second: asNumberOrNull(finish["tokens_per_second"], "finish.tokens_per_second"),
  };
}

function parseFailure(value: unknown): Failure {
  const failure = asRecord(value, "failure");
  return {
    message: asString(failure["message"], "failure.message"),
    hint: asString(failure["hint"], "failure.hint"),
  };
}

function parseSteps(value: unknown, buffers: unknown): StepsBlock {
  const steps = asRecord(value, "steps");
  const count = asCount(steps["count"], "steps.count");
  const width = asCount(steps["width"], "steps.width");
  const candidateTexts = asList(steps["candidate_texts"], "steps.candidate_texts").map((texts, i) =>
    asStrings(texts, `steps.candidate_texts.${i}`),
  );
  const block: StepsBlock = {
    first: asCount(steps["first"], "steps.first"),
    count,
    width,
    texts: asStrings(steps["texts"], "steps.texts"),
    labels: asStrings(steps["labels"], "steps.labels"),
    candidate_texts: candidateTexts,
    columns: parseColumns(asStrings(steps["columns"], "steps.columns"), buffers, count, width),
  };
  for (const name of ["texts", "labels", "candidate_texts"] as const)
    if (block[name].length !== count)
      throw new ProtocolError(`steps.${name} has ${block[name].length} entries, expected ${count}`);
  if (candidateTexts.some((texts) => texts.length > width))
    throw new ProtocolError(`steps.candidate_texts has a row longer than ${width}`);
  return block;
}

function parseColumns(names: string[], buffers: unknown, count: number, width: number): Columns {
  const views = asList(buffers, "buffers");
  if (views.length !== names.length)
    throw new ProtocolError(`${views.length} buffers for ${names.length} columns`);
  const columns: Partial<Record<string, unknown>> = {};
  names.forEach((name, i) => {
    if (!has(COLUMNS, name)) throw new ProtocolError(`unknown column ${show(name)}`);
    if (has(columns, name)) throw new ProtocolError(`column ${name} twice`);
    const length = has(CANDIDATE_COLUMNS, name) ? count * width : count;
    columns[name] = copyColumn(views[i], COLUMNS[name as ColumnName], length, name);
  });
  const missing = Object.keys(COLUMNS).find((name) => !has(columns, name));
  if (missing !== undefined) throw new ProtocolError(`column ${missing} is missing`);
  return columns as Columns;
}

type ArrayKind = (typeof COLUMNS)[ColumnName];

/** A copy as a typed array: a buffer may start anywhere, a typed array only at a multiple of its item. */
function copyColumn(view: unknown, kind: ArrayKind, length: number, name: string): InstanceType<ArrayKind> {
  const bytes = ArrayBuffer.isView(view)
    ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
    : view instanceof ArrayBuffer
      ? new Uint8Array(view)
      : null;
  if (bytes === null) throw new ProtocolError(`column ${name} is no buffer`);
  const expected = length * kind.BYTES_PER_ELEMENT;
  if (bytes.byteLength !== expected)
    throw new ProtocolError(`column ${name} has ${bytes.byteLength} bytes, expected ${expected}`);
  return new kind(bytes.slice().buffer);
}

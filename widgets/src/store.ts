/** What a view knows about a run: updates go in, steps come out. No DOM. */

import type { Columns, Failure, Finish, Prefill, RunInfo, StepColumn, StepsBlock, Update } from "./protocol";
import { FLAGS, STAGES, STEP_COLUMNS } from "./protocol";
import type { BesideRow, BudgetUsed, LookUpRow, WhatIf } from "./retrieval_protocol";

/** One decoded token; the numbers are those of `cartoolkit.trace.Step`. */
export interface Step {
  index: number;
  text: string;
  label: string;
  tokenId: number;
  logprob: number;
  prob: number;
  rank: number;
  processedProb: number;
  maxProb: number;
  entropy: number;
  margin: number;
  restMass: number;
  processedRestMass: number;
  draw: number;
  elapsed: number;
  incomplete: boolean;
  special: boolean;
  forced: boolean;
  kept: boolean;
  /** Its word came from a passage that was looked up. */
  retrieved: boolean;
  /** Taken over from another run, at which time it was decoded. */
  taken: boolean;
  /** The first that was not taken over. */
  branched: boolean;
}

/** One alternative at one step. */
export interface Candidate {
  id: number;
  label: string;
  /** Place in the raw distribution, 1 is likeliest. */
  rank: number;
  raw: number;
  /** Probability it was drawn with; 0 if removed. */
  processed: number;
  /** Sampler stage that removed it; empty if none did. */
  removedBy: string;
  chosen: boolean;
}

/** What an update changed. */
export interface Change {
  /** Another run has begun: everything known before is gone. */
  reset: boolean;
  /** Something is missing between what is known and this update. */
  gap: boolean;
  /** Steps from here to the end are new. */
  from: number;
  /** Older steps whose flags or text have changed, such as those rolled back since. */
  reflagged: number[];
}

/** A column that grows, doubling its room. */
export class Series {
  #values = new Float64Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The values so far; valid until the next `append`. */
  get values(): Float64Array {
    return this.#values.subarray(0, this.#length);
  }

  at(i: number): number {
    return i < this.#length ? (this.#values[i] ?? Number.NaN) : Number.NaN;
  }

  set(i: number, value: number): void {
    if (i < this.#length) this.#values[i] = value;
  }

  append(values: ArrayLike<number>, from: number): void {
    const length = this.#length + values.length - from;
    if (length > this.#values.length) {
      const room = new Float64Array(Math.max(length, 2 * this.#values.length));
      room.set(this.#values);
      this.#values = room;
    }
    for (let i = from; i < values.length; i++)
      this.#values[this.#length + i - from] = values[i] ?? Number.NaN;
    this.#length = length;
  }
}

type Numbers = Record<StepColumn, Series>;

function emptyNumbers(): Numbers {
  return Object.fromEntries(Object.keys(STEP_COLUMNS).map((name) => [name, new Series()])) as Numbers;
}

export class RunStore {
  run: string | null = null;
  info: RunInfo | null = null;
  state = "";
  prefill: Prefill | null = null;
  notices: string[] = [];
  finish: Finish | null = null;
  failure: Failure | null = null;
  lookUps: readonly LookUpRow[] = [];
  whatIf: WhatIf | null = null;
  budget: BudgetUsed | null = null;
  beside: readonly BesideRow[] = [];
  numbers = emptyNumbers();
  #texts: string[] = [];
  #labels: string[] = [];
  #retrieved: ReadonlySet<number> = new Set();
  #retrievedList: readonly number[] = [];
  #rows: { block: StepsBlock; row: number }[] = [];
  #seq = -1;

  get count(): number {
    return this.#texts.length;
  }

  /** Whether tokens may still come. */
  get live(): boolean {
    return this.run !== null && this.finish === null && this.failure === null && this.state !== "finished";
  }

  /** Whether the first token came with its distribution (`inspect`). */
  get inspected(): boolean {
    return !Number.isNaN(this.numbers.max_prob.at(0));
  }

  /** Steps before this one were taken over from another run; 0 for a run of its own. */
  get branchedAt(): number {
    return this.info?.branch?.at ?? 0;
  }

  /** Steps whose word came from a passage. */
  get retrieved(): readonly number[] {
    return this.#retrievedList;
  }

  kept(i: number): boolean {
    return (this.numbers.flags.at(i) & FLAGS.kept) !== 0;
  }

  /** How many steps were rolled back. */
  get dropped(): number {
    let dropped = 0;
    for (let i = 0; i < this.count; i++) if (!this.kept(i)) dropped++;
    return dropped;
  }

  text(i: number): string {
    return this.#texts[i] ?? "";
  }

  /** Take over what is new in an update; applying one twice changes nothing. */
  apply(update: Update): Change {
    const change: Change = { reset: false, gap: false, from: this.count, reflagged: [] };
    if (update.run !== this.run) {
      if (update.info === undefined) return { ...change, gap: true };
      this.#clear(update.run);
      change.reset = true;
      change.from = 0;
    }
    // A replay for another view may arrive late; it must not turn the state back.
    const late = update.seq < this.#seq;
    if (!late) this.#takeParts(update);
    if (update.steps !== undefined) this.#takeSteps(update.steps, change, late);
    return change;
  }

  step(i: number): Step {
    const at = (name: StepColumn) => this.numbers[name].at(i);
    const flags = at("flags");
    return {
      index: i,
      text: this.text(i),
      label: this.#labels[i] ?? "",
      tokenId: at("token_id"),
      logprob: at("logprob"),
      prob: Math.exp(at("logprob")),
      rank: at("rank"),
      processedProb: Math.exp(at("processed_logprob")),
      maxProb: at("max_prob"),
      entropy: at("entropy"),
      margin: at("margin"),
      restMass: at("rest_mass"),
      processedRestMass: at("processed_rest_mass"),
      draw: at("draw"),
      elapsed: at("elapsed"),
      incomplete: (flags & FLAGS.incomplete) !== 0,
      special: (flags & FLAGS.special) !== 0,
      forced: (flags & FLAGS.forced) !== 0,
      kept: (flags & FLAGS.kept) !== 0,
      retrieved: this.#retrieved.has(i),
      taken: i < this.branchedAt,
      branched: i > 0 && i === this.branchedAt,
    };
  }

  /** The recorded alternatives of a step, likeliest (raw) first; empty if it was not inspected. */
  candidates(i: number): Candidate[] {
    const place = this.#rows[i];
    if (place === undefined) return [];
    const chosen = this.numbers.token_id.at(i);
    const found: Candidate[] = [];
    for (let k = 0; k < place.block.width; k++) {
      const candidate = readCandidate(place.block, place.row, k, chosen);
      if (candidate !== null) found.push(candidate);
    }
    const taken = found.find((candidate) => candidate.chosen);
    if (taken !== undefined) taken.rank = this.numbers.rank.at(i);
    return found;
  }

  #clear(run: string): void {
    this.run = run;
    this.info = null;
    this.state = "";
    this.prefill = null;
    this.notices = [];
    this.finish = null;
    this.failure = null;
    this.lookUps = [];
    this.#takeRetrieved([]);
    this.whatIf = null;
    this.budget = null;
    this.beside = [];
    this.numbers = emptyNumbers();
    this.#texts = [];
    this.#labels = [];
    this.#rows = [];
    this.#seq = -1;
  }

  #takeParts(update: Update): void {
    this.#seq = update.seq;
    if (update.info !== undefined) this.info = update.info;
    if (update.state !== undefined) this.state = update.state;
    if (update.prefill !== undefined) this.prefill = update.prefill;
    if (update.notices !== undefined) this.notices = update.notices;
    if (update.finish !== undefined) this.finish = update.finish;
    if (update.failure !== undefined) this.failure = update.failure;
    if (update.look_ups !== undefined) this.lookUps = update.look_ups;
    if (update.retrieved !== undefined) this.#takeRetrieved(update.retrieved);
    if (update.what_if !== undefined) this.whatIf = update.what_if;
    if (update.budget !== undefined) this.budget = update.budget;
    if (update.beside !== undefined) this.beside = update.beside;
  }

  #takeRetrieved(indices: readonly number[]): void {
    this.#retrievedList = indices;
    this.#retrieved = new Set(indices);
  }

  #takeSteps(block: StepsBlock, change: Change, late: boolean): void {
    const have = this.count;
    if (block.first > have) {
      change.gap = true;
      return;
    }
    const skip = Math.min(have - block.first, block.count);
    if (!late) change.reflagged = this.#takeAgain(block, skip);
    for (const name of Object.keys(STEP_COLUMNS) as StepColumn[])
      this.numbers[name].append(block.columns[name], skip);
    for (let row = skip; row < block.count; row++) {
      this.#texts.push(block.texts[row] ?? "");
      this.#labels.push(block.labels[row] ?? "");
      this.#rows.push({ block, row });
    }
  }

  /**
   * A step that comes again is the one that is known, except that it may have been rolled back since, or
   * lost text to a stop string that was found only then.
   */
  #takeAgain(block: StepsBlock, rows: number): number[] {
    const changed: number[] = [];
    for (let row = 0; row < rows; row++) {
      const i = block.first + row;
      const flags = block.columns.flags[row] ?? 0;
      const text = block.texts[row] ?? "";
      if (flags === this.numbers.flags.at(i) && text === this.#texts[i]) continue;
      this.numbers.flags.set(i, flags);
      this.#texts[i] = text;
      this.#labels[i] = block.labels[row] ?? "";
      changed.push(i);
    }
    return changed;
  }
}

function readCandidate(block: StepsBlock, row: number, k: number, chosen: number): Candidate | null {
  const columns: Columns = block.columns;
  const at = row * block.width + k;
  const id = columns.candidate_id[at] ?? -1;
  if (id < 0) return null;
  return {
    id,
    label: block.candidate_texts[row]?.[k] ?? "",
    rank: k + 1,
    raw: Math.exp(columns.candidate_logprob[at] ?? Number.NaN),
    processed: Math.exp(columns.candidate_processed_logprob[at] ?? Number.NaN),
    removedBy: STAGES[columns.candidate_removed_by[at] ?? 0] ?? "unknown stage",
    chosen: id === chosen,
  };
}

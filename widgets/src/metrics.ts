/** What the text may be coloured by, and figures over a whole run. Pure. */

import * as format from "./format";

export type Metric = "max_prob" | "prob" | "entropy" | "surprisal";

/** The numbers of a step that a metric is made of. */
export interface MetricInput {
  maxProb: number;
  logprob: number;
  entropy: number;
}

interface MetricKind {
  title: string;
  /** The ends of its scale, as shown beside the legend. */
  sure: string;
  unsure: string;
  value(step: MetricInput): number;
  /** 0 is sure, 1 is unsure; may lie outside, or be NaN. */
  doubt(step: MetricInput): number;
  format(value: number): string;
}

// Where the colour is full. Entropies of small models' open choices reach 4 to 5 nats; 6 nats are p = .002.
const FULL_ENTROPY = 5;
const FULL_SURPRISAL = 6;

export const METRICS: Record<Metric, MetricKind> = {
  max_prob: {
    title: "max probability (raw)",
    sure: "1",
    unsure: "0",
    value: (step) => step.maxProb,
    doubt: (step) => 1 - step.maxProb,
    format: format.prob,
  },
  prob: {
    title: "probability of the chosen token (raw)",
    sure: "1",
    unsure: "0",
    value: (step) => Math.exp(step.logprob),
    doubt: (step) => 1 - Math.exp(step.logprob),
    format: format.prob,
  },
  entropy: {
    title: "entropy (nats)",
    sure: "0",
    unsure: `≥ ${FULL_ENTROPY} nats`,
    value: (step) => step.entropy,
    doubt: (step) => step.entropy / FULL_ENTROPY,
    format: format.nats,
  },
  surprisal: {
    title: "surprisal (nats)",
    sure: "0",
    unsure: `≥ ${FULL_SURPRISAL} nats`,
    value: (step) => -step.logprob,
    doubt: (step) => -step.logprob / FULL_SURPRISAL,
    format: format.nats,
  },
};

export function isMetric(value: unknown): value is Metric {
  return typeof value === "string" && Object.hasOwn(METRICS, value);
}

/** Doubt between 0 and 1; 0 where nothing was recorded. */
export function doubt(metric: Metric, step: MetricInput): number {
  const value = METRICS[metric].doubt(step);
  return Number.isNaN(value) ? 0 : Math.min(1, Math.max(0, value));
}

/** Stretches of at least `window` consecutive values below the threshold, as [first, one past the last]. */
export function lowRuns(values: ArrayLike<number>, threshold: number, window = 3): [number, number][] {
  const runs: [number, number][] = [];
  let start = 0;
  for (let i = 0; i <= values.length; i++) {
    if (i < values.length && (values[i] ?? Number.NaN) < threshold) continue;
    if (i - start >= window) runs.push([start, i]);
    start = i + 1;
  }
  return runs;
}

export function countBelow(values: ArrayLike<number>, threshold: number): number {
  let below = 0;
  for (let i = 0; i < values.length; i++) if ((values[i] ?? Number.NaN) < threshold) below++;
  return below;
}

/** Mean of the values that are numbers; NaN if there is none. */
export function mean(values: ArrayLike<number>, counts: (i: number) => boolean = () => true): number {
  let sum = 0;
  let n = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value) || !counts(i)) continue;
    sum += value;
    n++;
  }
  return n > 0 ? sum / n : Number.NaN;
}

/**
 * Decoding speed between the first and the last token, without the prefill; NaN for fewer than two.
 * A token that was taken over from another run has no time.
 */
export function tokensPerSecond(elapsed: ArrayLike<number>): number {
  const times = Array.from(elapsed).filter((time) => !Number.isNaN(time));
  const n = times.length;
  const span = n < 2 ? 0 : (times[n - 1] ?? 0) - (times[0] ?? 0);
  return span > 0 ? (n - 1) / span : Number.NaN;
}

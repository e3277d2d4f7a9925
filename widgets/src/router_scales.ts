/** From a slider's position to a value and back. Pure. */

export interface Scale {
  /** Positions are 0 to `last`. */
  last: number;
  /** The nearest position. */
  toPosition(value: number | null): number;
  toValue(position: number): number | null;
}

const WEIGHT_STEPS = 100;
const LOG_STEPS = 120;

/** 0 to 1 in hundredths. */
export const WEIGHT_SCALE: Scale = {
  last: WEIGHT_STEPS,
  toPosition: (value) => clamp(Math.round((value ?? 0) * WEIGHT_STEPS), WEIGHT_STEPS),
  toValue: (position) => position / WEIGHT_STEPS,
};

export interface LogOptions {
  /** Values are whole numbers. */
  whole?: boolean;
  /** One more position at the end, for null. */
  endless?: boolean;
}

/** `least` to `most`, each step by the same factor, rounded to two figures. */
export function logScale(least: number, most: number, { whole, endless }: LogOptions = {}): Scale {
  const span = Math.log(most / least);
  return {
    last: endless ? LOG_STEPS + 1 : LOG_STEPS,
    toPosition(value) {
      if (value === null) return endless ? LOG_STEPS + 1 : 0;
      if (value <= least) return 0;
      return clamp(Math.round((LOG_STEPS * Math.log(value / least)) / span), LOG_STEPS);
    },
    toValue(position) {
      if (position > LOG_STEPS) return null;
      const value = Number((least * Math.exp((span * position) / LOG_STEPS)).toPrecision(2));
      return whole ? Math.round(value) : value;
    },
  };
}

function clamp(position: number, last: number): number {
  return Math.min(last, Math.max(0, position));
}

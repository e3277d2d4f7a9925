/** Numbers and token texts as they are shown. Pure. */

const NONE = "–";

/** A probability, three decimals; what would read 0.000 is `<.001`, and nothing is `0`. */
export function prob(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  if (value <= 0) return "0";
  return value < 0.0005 ? "<.001" : value.toFixed(3);
}

/** Nats, two decimals. */
export function nats(value: number): string {
  if (!Number.isFinite(value)) return value === Number.POSITIVE_INFINITY ? "∞" : NONE;
  return Math.abs(value) < 0.005 ? "0.00" : value.toFixed(2);
}

/** A whole number with its thousands apart. */
export function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}

/** `1 token`, `2 tokens`. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function seconds(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(value < 100 ? 2 : 0)} s` : NONE;
}

export function speed(tokensPerSecond: number): string {
  return `${tokensPerSecond.toFixed(tokensPerSecond < 100 ? 1 : 0)} tok/s`;
}

const SIGNS: Record<string, string> = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍" };
const UNSEEN = /[\p{Z}\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu;
const STARTS_WITH_MARK = /^\p{M}/u;

/** A token as a name: every character that cannot be seen is replaced by a sign or its number. */
export function visible(text: string): string {
  const named = text.replace(UNSEEN, (character) => SIGNS[character] ?? codePoint(character));
  return STARTS_WITH_MARK.test(named) ? `◌${named}` : named;
}

/** `⟨U+2028⟩` */
export function codePoint(character: string): string {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `⟨U+${number}⟩`;
}

/** Which look-ups another threshold would have made, in a sentence. Pure, but for the node that shows it. */

import { h, setText } from "./dom";
import type { SupposedLookUp, WhatIf } from "./retrieval_protocol";
import type { RunStore } from "./store";

const NONE: readonly SupposedLookUp[] = [];
/** Two thresholds that read the same are the same. */
const HUNDREDTH = 0.005;

/** Whether the threshold in hand is another one than the run's own. */
export function isMoved(store: RunStore, threshold: number): boolean {
  const own = store.info?.policy?.threshold ?? null;
  return own !== null && Math.abs(own - threshold) >= HUNDREDTH;
}

/** What another threshold than the run's own would do, as far as the kernel has answered. */
function answerOf(store: RunStore): WhatIf | null {
  const { whatIf } = store;
  return whatIf !== null && whatIf.threshold !== null && isMoved(store, whatIf.threshold) ? whatIf : null;
}

/** The look-ups to draw as suppositions: none while the threshold is the run's own. */
export function supposedOf(store: RunStore, threshold: number): readonly SupposedLookUp[] {
  return isMoved(store, threshold) ? (answerOf(store)?.look_ups ?? NONE) : NONE;
}

/** `attended`: a kernel is there that tries thresholds. */
export function whatIfSentence(store: RunStore, threshold: number, attended: boolean): string {
  const { lookUps, info, live } = store;
  const policy = info?.policy;
  if (policy === undefined) return "";
  const did = lookUps.length === 0 ? "it did not" : `it did ${times(lookUps.length)}`;
  if (!attended && !live) return `${made(lookUps.length)} A kernel is needed to try other thresholds.`;
  if (policy.threshold === null) return "This policy has no threshold to drag.";
  if (!isMoved(store, threshold))
    return "Drag the threshold to see which look-ups this run would have made with another one.";
  const answer = answerOf(store);
  if (answer === null || answer.threshold === null) return `Trying ${threshold.toFixed(2)} …`;
  return `At ${answer.threshold.toFixed(2)} ${supposition(answer, live)} (${did}).`;
}

function made(n: number): string {
  return n === 0 ? "This run looked nothing up." : `This run looked up ${times(n)}.`;
}

function supposition({ look_ups, runs }: WhatIf, live: boolean): string {
  const far = runs || live ? " so far" : "";
  if (look_ups.length === 0) return `this run would have looked nothing up${far}`;
  return `this run would have looked up ${times(look_ups.length)}${far}`;
}

function times(n: number): string {
  return n === 1 ? "once" : n === 2 ? "twice" : `${n} times`;
}

export class WhatIfLine {
  readonly node: HTMLElement;
  #text = h("span", {});
  #caveat = h("span", { class: "caveat" }, "same draws, up to the first change");

  constructor() {
    this.node = h(
      "p",
      { class: "what-if", "data-testid": "what-if", role: "status", "aria-live": "polite" },
      this.#text,
      " ",
      this.#caveat,
    );
  }

  update(store: RunStore, threshold: number, attended: boolean): void {
    const text = whatIfSentence(store, threshold, attended);
    setText(this.#text, text);
    this.node.hidden = text === "";
    const answer = attended && isMoved(store, threshold) ? answerOf(store) : null;
    this.#caveat.hidden = answer === null;
    // While the answer for the place of the hand is on its way, the sentence is about another one.
    const late = Math.abs((answer?.threshold ?? threshold) - threshold) >= HUNDREDTH;
    this.node.classList.toggle("late", late);
  }
}

/** What the reader has just asked for, shown until the kernel says the same, or says nothing for a while. */

/** After so many milliseconds without a word from the kernel its own value is shown again. */
const PATIENCE = 1500;

export class Hold<T> {
  #held: { value: T } | null = null;
  #inHand = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #same: (a: T, b: T) => boolean;
  #onRelease: () => void;
  #signal: AbortSignal;

  /** `onRelease` is called when patience has run out; `same` tells whether two values are shown alike. */
  constructor(onRelease: () => void, signal: AbortSignal, same: (a: T, b: T) => boolean = Object.is) {
    this.#onRelease = onRelease;
    this.#same = same;
    this.#signal = signal;
  }

  /** While a value is in the hand, nothing that the kernel says takes its place. */
  grip(inHand: boolean): void {
    this.#inHand = inHand;
    if (!inHand) this.#wait();
  }

  take(value: T): void {
    this.#held = { value };
    this.#wait();
  }

  /** What to show while the kernel says `told`. */
  shown(told: T): T {
    if (this.#held === null) return told;
    if (!this.#inHand && this.#same(this.#held.value, told)) this.release();
    return this.#held === null ? told : this.#held.value;
  }

  release(): void {
    this.#held = null;
    clearTimeout(this.#timer);
  }

  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#held === null) return;
    this.#timer = setTimeout(() => {
      if (this.#inHand || this.#signal.aborted) return;
      this.#held = null;
      this.#onRelease();
    }, PATIENCE);
  }
}

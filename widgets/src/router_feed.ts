/** The state as the kernel tells it; old and broken ones are ignored. Drawn once a frame. */

import { outgoing, parseMessage, parseState, type RouterState } from "./router_protocol";
import { type Model, onMessage, onTrait, send } from "./sync";

/** Without an answer for so many milliseconds there is no kernel. */
const PATIENCE = 2500;

export class RouterFeed {
  state: RouterState | null = null;
  /** The kernel was heard of: what is shown is not only what was saved. */
  attended = false;
  /** It was asked and has not answered for a while. */
  forsaken = false;
  #model: Model;
  #onFrame: () => void;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(model: Model, onFrame: () => void, signal: AbortSignal) {
    this.#model = model;
    this.#onFrame = onFrame;
    signal.addEventListener(
      "abort",
      () => {
        cancelAnimationFrame(this.#frame);
        clearTimeout(this.#timer);
      },
      { once: true },
    );
  }

  /** Show what is there, then listen, then ask for what is newer. */
  start(signal: AbortSignal): void {
    this.#readSnapshot();
    this.#onFrame();
    onTrait(this.#model, "snapshot", () => this.#readSnapshot(), signal);
    onMessage(this.#model, (content) => this.#hear(() => parseMessage(content), true), signal);
    this.#timer = setTimeout(() => {
      this.forsaken = !this.attended;
      this.schedule();
    }, PATIENCE);
    send(this.#model, outgoing({ type: "ready", seq: this.state?.seq ?? null }));
  }

  /** Draw in the next frame. */
  schedule(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#onFrame();
    });
  }

  #readSnapshot(): void {
    const snapshot = this.#model.get("snapshot");
    if (typeof snapshot === "object" && snapshot !== null) this.#hear(() => parseState(snapshot), false);
  }

  /** Each state is whole: one that was missed is not missed. */
  #hear(parse: () => RouterState, live: boolean): void {
    let state: RouterState;
    try {
      state = parse();
    } catch (error) {
      console.warn("cartoolkit: a message was ignored:", error instanceof Error ? error.message : error);
      return;
    }
    if (live) {
      this.attended = true;
      this.forsaken = false;
    }
    if (this.state === null || state.seq > this.state.seq) this.state = state;
    this.schedule();
  }
}

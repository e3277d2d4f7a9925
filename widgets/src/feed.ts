/** What comes from the kernel: updates go into the store, gaps are asked for, and the page is drawn once a frame. */

import { parseUpdate, ready, type Update } from "./protocol";
import { RunStore } from "./store";
import { type Model, onMessage, send } from "./sync";

/** The same gap is reported again after this many milliseconds. */
const ASK_AGAIN = 500;
/** After a flush the page has this many times its duration for itself. */
const REST = 2;
const FRAME = 16;

/** What has changed since the last frame. */
export interface News {
  /** Another run has begun: what the page shows of the one before is to go. */
  reset: boolean;
  /** Steps whose flags or text have changed. */
  changed: number[];
}

export interface FeedEvents {
  /** Another run begins with this update; `before` was shown until now. */
  onBegin(update: Update, before: string | null): void;
  onFrame(news: News): void;
}

export class Feed {
  readonly store = new RunStore();
  #model: Model;
  #events: FeedEvents;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushed = { end: 0, cost: 0 };
  #reset = false;
  #changed: number[] = [];
  #asked = { what: "", when: Number.NEGATIVE_INFINITY };
  #heard: string | null = null;

  constructor(model: Model, events: FeedEvents, signal: AbortSignal) {
    this.#model = model;
    this.#events = events;
    signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** Whether the kernel was heard of the run shown, as opposed to one that was saved with the page. */
  get attended(): boolean {
    return this.#heard !== null && this.#heard === this.store.run;
  }

  /** Show what is there, then listen; the caller says that it is `ready` once it listens itself. */
  start(signal: AbortSignal): void {
    const snapshot = this.#model.get("snapshot");
    if (typeof snapshot === "object" && snapshot !== null)
      this.#receive(snapshot, (snapshot as { buffers?: unknown }).buffers ?? []);
    this.#flush();
    onMessage(this.#model, (content, buffers) => this.#hear(content, buffers), signal);
  }

  /** Say what is known, so that the kernel sends the rest. */
  ready(): void {
    send(this.#model, ready(this.store.run, this.store.count));
  }

  #stop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
  }

  #hear(content: unknown, buffers: unknown): void {
    const run = this.#receive(content, buffers);
    if (run !== null) this.#heard = run;
  }

  /** Take an update over; the run that it is about, or null if it cannot be read. */
  #receive(content: unknown, buffers: unknown): string | null {
    let update: Update;
    try {
      update = parseUpdate(content, buffers);
    } catch (error) {
      console.warn("cartoolkit: a message was ignored:", error instanceof Error ? error.message : error);
      return null;
    }
    const before = this.store.run;
    const change = this.store.apply(update);
    if (change.reset) {
      this.#reset = true;
      this.#changed = [];
      this.#events.onBegin(update, before);
    }
    this.#changed.push(...change.reflagged);
    if (change.gap) this.#ask(update.run);
    this.#schedule();
    return update.run;
  }

  /** Ask for what is missing, but not once for each message that shows it. */
  #ask(run: string): void {
    const what = `${run} ${this.store.run} ${this.store.count}`;
    if (what === this.#asked.what && performance.now() - this.#asked.when < ASK_AGAIN) return;
    this.#asked = { what, when: performance.now() };
    this.ready();
  }

  /** One flush a frame; where one takes long, as with thousands of tokens in one paragraph, fewer. */
  #schedule(): void {
    if (this.#frame !== 0 || this.#timer !== undefined) return;
    const rest = this.#flushed.end + REST * this.#flushed.cost - performance.now();
    const request = () => {
      this.#timer = undefined;
      this.#frame = requestAnimationFrame(() => this.#flush());
    };
    if (rest > FRAME) this.#timer = setTimeout(request, rest);
    else request();
  }

  #flush(): void {
    this.#frame = 0;
    const start = performance.now();
    const news = { reset: this.#reset, changed: this.#changed };
    this.#reset = false;
    this.#changed = [];
    this.#events.onFrame(news);
    const end = performance.now();
    this.#flushed = { end, cost: end - start };
  }
}

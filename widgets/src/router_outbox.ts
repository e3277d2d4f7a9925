/** What goes to the kernel: at once where nothing was sent lately, else the newest of each kind a little later. */

import { outgoing, type RouterMessage } from "./router_protocol";
import { type Model, send } from "./sync";

/** At most one message in so many milliseconds while something is dragged. */
const INTERVAL = 40;

export class Outbox {
  #model: Model;
  #waiting = new Map<string, RouterMessage>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(model: Model, signal: AbortSignal) {
    this.#model = model;
    signal.addEventListener("abort", () => this.flush(), { once: true });
  }

  /** Send a value of something that is dragged; one that still waits is replaced. */
  post(key: string, message: RouterMessage): void {
    this.#waiting.set(key, message);
    if (this.#timer === undefined) this.#next();
  }

  /** Send now, after everything that waits. */
  now(message: RouterMessage): void {
    this.flush();
    this.#send(message);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const message of waiting) this.#send(message);
  }

  #next(): void {
    this.#timer = undefined;
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#waiting.delete(first[0]);
    this.#send(first[1]);
    this.#timer = setTimeout(() => this.#next(), INTERVAL);
  }

  #send(message: RouterMessage): void {
    send(this.#model, outgoing(message));
  }
}

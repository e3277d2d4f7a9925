/** The model's traits and messages, with listeners that end with a signal. */

import type { AnyModel } from "@anywidget/types";

/** The synced traits of the Python class. `snapshot` is an update message with its buffers inside, or null. */
export type Traits = {
  view: string;
  metric: string;
  threshold: number;
  selected: number | null;
  snapshot: unknown;
  show_model: boolean;
  can_branch: boolean;
};

export type Model = AnyModel<Traits>;

/** Listen to one trait until the signal is aborted. */
export function onTrait(model: Model, name: keyof Traits, listener: () => void, signal: AbortSignal): void {
  const event = `change:${name}` as const;
  model.on(event, listener);
  signal.addEventListener("abort", () => model.off(event, listener), { once: true });
}

/** Listen to custom messages until the signal is aborted. */
export function onMessage(
  model: Model,
  listener: (content: unknown, buffers: unknown) => void,
  signal: AbortSignal,
): void {
  model.on("msg:custom", listener);
  signal.addEventListener("abort", () => model.off("msg:custom", listener), { once: true });
}

/** Without a kernel (a saved notebook) a front end may refuse; the view goes on without it. */
function attempt(action: () => void): void {
  try {
    action();
  } catch (error) {
    console.warn("cartoolkit: the kernel could not be reached", error);
  }
}

export function send(model: Model, message: object): void {
  attempt(() => model.send(message));
}

/** Writes traits; what comes in quick succession is written once. */
export class TraitWriter {
  #model: Model;
  #pending: Partial<Traits> = {};
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(model: Model, signal: AbortSignal) {
    this.#model = model;
    signal.addEventListener("abort", () => this.flush(), { once: true });
  }

  /** Write after `delay` ms without another write. */
  later<K extends keyof Traits>(name: K, value: Traits[K], delay: number): void {
    this.#pending[name] = value;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), delay);
  }

  now<K extends keyof Traits>(name: K, value: Traits[K]): void {
    this.#pending[name] = value;
    this.flush();
  }

  /** Whether a write is still to come. */
  waiting(name: keyof Traits): boolean {
    return Object.hasOwn(this.#pending, name);
  }

  flush(): void {
    clearTimeout(this.#timer);
    const entries = Object.entries(this.#pending) as [keyof Traits, Traits[keyof Traits]][];
    this.#pending = {};
    if (entries.length === 0) return;
    attempt(() => {
      for (const [name, value] of entries) this.#model.set(name, value);
      this.#model.save_changes();
    });
  }
}

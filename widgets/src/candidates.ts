/** The side panel: one token, its alternatives, what the sampler did to them, and the draw. */

import { candidateTable, othersOf } from "./candidate_table";
import { h } from "./dom";
import { drawBar } from "./draw_bar";
import * as format from "./format";
import type { Candidate, RunStore, Step } from "./store";

const SHORT = 10;
/** The first rows; the chosen token takes the last place if it would not be among them. */
export function shortList(candidates: readonly Candidate[], size = SHORT): Candidate[] {
  if (candidates.length <= size) return [...candidates];
  const first = candidates.slice(0, size);
  const chosen = candidates.find((c) => c.chosen);
  return chosen === undefined || first.includes(chosen) ? first : [...first.slice(0, -1), chosen];
}

export interface PanelEvents {
  onFollow(): void;
  /** Go on from a step with another token there, or with a new draw (null). */
  onBranch(step: number, token: number | null): void;
  /** Pointer and focus have left the candidates, where they held the panel. */
  onRelease(): void;
}

/** How a step is shown: `follows` while the panel goes with the newest, `offers` where one may go on from it. */
export interface Mode {
  follows: boolean;
  /** Where it stands in the answer, which is its number unless tokens before it were rolled back. */
  place: number;
  offers: boolean;
}

interface Shown extends Mode {
  store: RunStore;
  run: string | null;
  index: number | null;
}

/** The actions that go on from a token: while the focus is on one, its token stays. */
const BRANCHING = ["take", "draw"];

export class SidePanel {
  readonly node: HTMLElement;
  #events: PanelEvents;
  #all = false;
  #shown: Shown | null = null;
  #key = "";
  #pointed = false;
  #rendering = false;

  constructor(events: PanelEvents, signal: AbortSignal) {
    this.#events = events;
    this.node = h("section", { class: "side", "data-testid": "candidates", "aria-label": "selected token" });
    const on = <K extends keyof HTMLElementEventMap>(
      type: K,
      listener: (e: HTMLElementEventMap[K]) => void,
    ) => this.node.addEventListener(type, listener, { signal });
    on("click", (event) => this.#click(event));
    on("pointermove", (event) => this.#point(event.target));
    on("pointerdown", (event) => this.#point(event.target));
    on("pointerleave", () => this.#point(null));
    on("focusout", (event) => this.#leave(event.relatedTarget));
  }

  /**
   * The step that stays although newer ones have come: under a pointer or a focus on its candidates, or what
   * is clicked would not be what was aimed at. Null if the panel is free to go on.
   */
  held(store: RunStore): number | null {
    const shown = this.#shown;
    if (shown === null || !shown.follows || !shown.offers || shown.run !== store.run) return null;
    const { action } = this.#focused() ?? { action: "" };
    return this.#pointed || BRANCHING.includes(action) ? shown.index : null;
  }

  show(store: RunStore, index: number | null, mode: Mode): void {
    const before = this.#shown;
    if (before?.run !== store.run) this.#pointed = false;
    this.#shown = { store, run: store.run, index, ...mode };
    const flags = index === null ? 0 : store.numbers.flags.at(index);
    const waits = index !== null && index < store.count - 1;
    const key = [
      store.run,
      index,
      mode.follows,
      mode.offers,
      waits,
      store.live,
      flags,
      mode.place,
      this.#all,
    ].join();
    // What a press began on must still be there when it ends; a step does not change in between.
    if (key === this.#key) return;
    this.#key = key;
    const focused = this.#focused();
    this.#rendering = true;
    this.node.replaceChildren(...this.#content(this.#shown));
    this.#rendering = false;
    if (focused !== null) this.#refocus(focused, before?.run === store.run && before.index === index);
  }

  #content({ store, index, follows, offers, place }: Shown): HTMLElement[] {
    if (index === null)
      return [
        h(
          "p",
          { class: "quiet" },
          "The token that you select is taken apart here: what else was likely, what the sampler removed, and where the draw fell.",
        ),
      ];
    const step = store.step(index);
    const candidates = store.candidates(index);
    const head = [this.#title(step, store, follows, place), figures(step)];
    const greedy = store.info?.params["temperature"] === 0;
    const again = offers && (!greedy || step.forced) ? drawAgain(step) : null;
    if (candidates.length === 0)
      return [
        ...head,
        h(
          "p",
          { class: "quiet" },
          "This run was recorded without inspection: only the tokens and their times are known.",
        ),
        h("div", { class: "more" }, again),
      ];
    const rows = this.#all ? candidates : shortList(candidates);
    const others = othersOf(store, step, candidates, rows);
    const table = candidateTable(rows, candidates, step, { greedy, others, offers });
    const hint = offers ? h("span", { class: "hint" }, "click one to go on with it") : null;
    const more = h("div", { class: "more" }, this.#toggle(candidates.length), hint, again);
    return [...head, h("div", { class: "rows" }, table, more), drawBar(candidates, step, greedy)];
  }

  #title(step: Step, store: RunStore, follows: boolean, place: number): HTMLElement {
    const label = format.visible(step.label || step.text);
    const states = [
      step.special ? "control token" : null,
      step.incomplete ? "part of a character" : null,
      step.forced ? "forced" : null,
      step.taken ? "taken over" : null,
      step.kept ? null : "rolled back",
      place === step.index ? null : `place ${place}`,
    ].filter((state) => state !== null);
    const { live } = store;
    const rests = live && step.index < store.count - 1;
    const follow = follows
      ? h(
          "span",
          { class: "follows" },
          rests ? "waiting here" : live ? "following the newest" : "the last token",
        )
      : h(
          "button",
          { type: "button", class: "link", "data-action": "follow" },
          live ? "follow the newest" : "back to the last",
        );
    return h(
      "div",
      { class: "side-title" },
      h("b", {}, `Token ${step.index}`),
      h("bdi", { class: "label", title: label }, label),
      ...states.map((state) => h("span", { class: "state" }, state)),
      follow,
    );
  }

  #toggle(total: number): HTMLElement | null {
    if (total <= SHORT) return null;
    const words = this.#all ? `show the first ${SHORT}` : `show all ${total}`;
    return h(
      "button",
      { type: "button", class: "link", "data-action": "all", "aria-expanded": String(this.#all) },
      words,
    );
  }

  #click(event: Event): void {
    const target =
      event.target instanceof Element ? event.target.closest<HTMLElement>("[data-action]") : null;
    const shown = this.#shown;
    if (target === null || shown === null) return;
    const { action, token } = target.dataset;
    if (action === "follow") this.#events.onFollow();
    else if (action === "all") {
      this.#all = !this.#all;
      this.show(shown.store, shown.index, shown);
    } else if (shown.index !== null)
      this.#events.onBranch(shown.index, token === undefined ? null : Number(token));
  }

  #point(target: EventTarget | null): void {
    const pointed = target instanceof Element && target.closest(".rows") !== null;
    if (pointed === this.#pointed) return;
    this.#pointed = pointed;
    if (!pointed) this.#events.onRelease();
  }

  #leave(to: EventTarget | null): void {
    const stays = to instanceof Node && this.node.contains(to);
    if (!stays && !this.#rendering) this.#events.onRelease();
  }

  #focused(): { action: string; token: string | undefined } | null {
    const root = this.node.getRootNode() as Document | ShadowRoot;
    const active = root.activeElement;
    if (!(active instanceof HTMLElement) || !this.node.contains(active)) return null;
    return { action: active.dataset["action"] ?? "", token: active.dataset["token"] };
  }

  /** Give the focus back to what had it; where that is gone, to the panel, so that Tab goes on from here. */
  #refocus({ action, token }: { action: string; token: string | undefined }, same: boolean): void {
    const found = [...this.node.querySelectorAll<HTMLElement>("[data-action]")].find(
      (node) => node.dataset["action"] === action && node.dataset["token"] === token,
    );
    // The same words at another token would go on from elsewhere.
    const goal = same || !BRANCHING.includes(action) ? found : undefined;
    if (goal === undefined) this.node.tabIndex = -1;
    (goal ?? this.node).focus({ preventScroll: true });
  }
}

function drawAgain(step: Step): HTMLElement {
  return h(
    "button",
    {
      type: "button",
      class: "link",
      "data-action": "draw",
      "aria-label": `draw token ${step.index} again and go on from there`,
      title: "Go on from here with a new draw, by a new seed",
    },
    "draw again from here",
  );
}

/** The numbers of a step, each with its name. */
function figures(step: Step): HTMLElement {
  const rows: [string, string, string][] = [
    ["raw", format.prob(step.prob), "raw probability of this token, before the sampler"],
    ["sampled", format.prob(step.processedProb), "probability that this token was drawn with"],
    ["rank", step.rank > 0 ? format.count(step.rank) : "–", "place in the raw distribution"],
    ["max", format.prob(step.maxProb), "raw probability of the likeliest token"],
    ["margin", format.prob(step.margin), "raw probability of the likeliest less that of the second"],
    ["id", String(step.tokenId), "the token's number in the vocabulary"],
    ["entropy", `${format.nats(step.entropy)} nats`, "of the raw distribution"],
    ["surprisal", `${format.nats(-step.logprob)} nats`, "of this token, raw"],
    [
      "elapsed",
      format.seconds(step.elapsed),
      step.taken ? "decoded in the run that it was taken over from" : "from the request to this token",
    ],
  ];
  const known = Number.isNaN(step.logprob)
    ? rows.filter(([name]) => name === "id" || name === "elapsed")
    : rows;
  const list = h("dl", { class: "figures" });
  for (const [name, value, title] of known)
    list.append(h("div", { title }, h("dt", {}, name), h("dd", {}, value)));
  return list;
}

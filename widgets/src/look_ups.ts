/** The timeline of look-ups: a card each, with why, what was asked and found, what it changed, and its cost. */

import { h, setText } from "./dom";
import * as format from "./format";
import { costText, outcomeText, whereMade, whyNotAdded } from "./look_up_words";
import { passageText, sourceText } from "./passage";
import { type Places, placesOf } from "./places";
import type { Chance, LookUpRow, ShownHit } from "./retrieval_protocol";
import type { RunStore } from "./store";

export interface LookUpsEvents {
  onSelect(index: number | null): void;
}

interface Card {
  node: HTMLElement;
  row: LookUpRow;
  /** What it shows, as one text, with what of it is open. */
  key: string;
  view: string;
}

/** A longer query is cut to a few lines until it is opened. */
const LONG_QUERY = 180;

export class LookUps {
  readonly node = h("div", { class: "look-ups", "data-testid": "look-ups" });
  #events: LookUpsEvents;
  #list = h("ol", { class: "timeline" });
  #none = h("p", { class: "quiet" });
  #cards: Card[] = [];
  /** What is open, as `card hit`; a query is hit -1. */
  #open = new Set<string>();
  #run: string | null = null;
  #rows: readonly LookUpRow[] = [];
  #places: Places = placesOf([]);
  #store: RunStore | null = null;
  #selected: number | null = null;

  constructor(events: LookUpsEvents, signal: AbortSignal) {
    this.#events = events;
    this.node.append(this.#none, this.#list);
    this.#list.addEventListener("click", (event) => this.#click(event.target), { signal });
    this.#list.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  update(store: RunStore, places: Places): void {
    if (store.run !== this.#run) {
      this.#run = store.run;
      this.#open.clear();
      this.#cards = [];
      this.#list.replaceChildren();
    }
    const grown = store.lookUps.length > this.#rows.length;
    this.#store = store;
    this.#rows = store.lookUps;
    this.#places = places;
    this.#none.hidden = this.#rows.length > 0;
    setText(this.#none, noneText(store));
    this.#rows.forEach((_, k) => void this.#updateCard(k));
    for (const { node } of this.#cards.splice(this.#rows.length)) node.remove();
    if (grown && store.live && this.#selected === null) this.#reveal(this.#cards.length - 1);
  }

  select(index: number | null): void {
    this.#selected = index;
    this.#cards.forEach(({ node }, k) => void mark(node, k === index));
    if (index !== null) this.#reveal(index);
  }

  /** Cards that have not changed stay the same elements: a focus or a selection in them is left alone. */
  #updateCard(k: number): void {
    const row = this.#rows[k];
    const store = this.#store;
    if (row === undefined || store === null) return;
    const where = whereMade(row, this.#places, (step) => store.text(step));
    const open = [...this.#open].filter((name) => name.startsWith(`${k} `)).join();
    const view = `${where}|${open}`;
    const known = this.#cards[k];
    if (known?.row === row && known.view === view) return;
    const key = JSON.stringify(row);
    if (known?.key === key && known.view === view) {
      known.row = row;
      return;
    }
    const node = known?.node ?? h("li", { class: "look-up", "data-testid": "look-up", "data-card": k });
    const focused = known === undefined ? null : focusWithin(node);
    node.replaceChildren(...this.#content(k, row, where));
    node.dataset["outcome"] = row.outcome;
    mark(node, k === this.#selected);
    if (known === undefined) this.#list.append(node);
    this.#cards[k] = { node, row, key, view };
    if (focused !== null) buttons(node)[focused]?.focus({ preventScroll: true });
  }

  #content(k: number, row: LookUpRow, where: string): HTMLElement[] {
    const title = h("button", { type: "button", class: "look-up-title", "data-action": "select" });
    title.append(h("span", { class: "number" }, String(k + 1)), h("bdi", {}, where));
    const parts: [string, (Node | string | null)[]][] = [
      ["why", [h("bdi", {}, row.reason)]],
      ["asked", this.#query(row.query, this.#open.has(`${k} -1`))],
      ["found", [h("span", { class: "outcome" }, outcomeText(row))]],
    ];
    const list = h("dl", {}, ...parts.flatMap(([name, children]) => entry(name, ...children)));
    const earlier = this.#rows.slice(0, k);
    if (row.hits.length > 0) list.append(this.#hits(k, row.hits, earlier));
    if (row.outcome === "found" && row.note !== "") list.append(...entry("note", h("bdi", {}, row.note)));
    if (row.chances.length > 0) list.append(...entry("changed", chanceTable(row.chances)));
    const cost = costText(row);
    if (cost.length > 0) list.append(...entry("cost", cost.join(" · ")));
    return [h("h4", {}, title), list];
  }

  #query(query: string, open: boolean): (Node | null)[] {
    const long = query.length > LONG_QUERY;
    const text = h("q", { class: long && !open ? "cut" : "", dir: "auto" }, query);
    const attributes = { type: "button", class: "link", "data-action": "open", "data-hit": -1 } as const;
    const button = h(
      "button",
      { ...attributes, "aria-expanded": String(open) },
      open ? "show less" : "show all",
    );
    return [text, long ? button : null];
  }

  #hits(k: number, hits: readonly ShownHit[], earlier: readonly LookUpRow[]): HTMLElement {
    const items = hits.map((hit, i) => {
      const [text, button] = passageText(hit, this.#open.has(`${k} ${i}`));
      if (button instanceof HTMLElement) button.dataset["hit"] = String(i);
      const why = hit.added ? null : h("span", { class: "why-not" }, whyNotAdded(hit, earlier));
      const source = h("span", { class: "source" }, h("bdi", {}, sourceText(hit)), why);
      return h("li", { class: hit.added ? "hit" : "hit left-out" }, text ?? null, source, button ?? null);
    });
    return h("dd", { class: "hits" }, h("ul", {}, ...items));
  }

  #click(target: EventTarget | null): void {
    if (!(target instanceof Element)) return;
    const card = target.closest<HTMLElement>("[data-card]");
    const button = target.closest<HTMLElement>("button");
    if (card === null) return;
    const k = Number(card.dataset["card"]);
    if (button?.dataset["action"] === "open") this.#toggle(k, Number(button.dataset["hit"]));
    else if (button !== null) this.#events.onSelect(k === this.#selected ? null : k);
  }

  #toggle(k: number, hit: number): void {
    const name = `${k} ${hit}`;
    if (!this.#open.delete(name)) this.#open.add(name);
    this.#updateCard(k);
  }

  #key(event: KeyboardEvent): void {
    if (event.key !== "Escape" || this.#selected === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#events.onSelect(null);
  }

  /** Scroll the timeline, not the page, until a card is in sight. */
  #reveal(index: number): void {
    const card = this.#cards[index]?.node;
    if (card === undefined || this.#list.scrollHeight <= this.#list.clientHeight) return;
    const box = card.getBoundingClientRect();
    const frame = this.#list.getBoundingClientRect();
    if (box.top < frame.top || box.height > frame.height) this.#list.scrollTop += box.top - frame.top - 2;
    else if (box.bottom > frame.bottom) this.#list.scrollTop += box.bottom - frame.bottom + 2;
  }
}

function noneText({ live, info }: RunStore): string {
  if (info?.policy?.name === "none") return "This policy looks nothing up.";
  return live
    ? "Nothing has been looked up so far."
    : "Nothing was looked up: the model was never in doubt as the policy understands it.";
}

function mark(card: HTMLElement, selected: boolean): void {
  card.classList.toggle("selected", selected);
  card.querySelector(".look-up-title")?.setAttribute("aria-pressed", String(selected));
}

function entry(name: string, ...children: (Node | string | null)[]): HTMLElement[] {
  return [h("dt", {}, name), h("dd", {}, ...children)];
}

/** Raw probabilities of what went and what came, before and after. */
function chanceTable(chances: readonly Chance[]): HTMLElement {
  const number = (value: number | null) => (value === null ? "–" : format.prob(value));
  const rows = chances.map(({ text, before, after }) =>
    h(
      "li",
      {},
      h("bdi", { class: "label" }, format.visible(text)),
      h("span", { class: "numbers" }, `${number(before)} → `),
      h("b", { class: "numbers" }, number(after)),
    ),
  );
  return h("ul", { class: "chances", title: "raw probability before the look-up → after it" }, ...rows);
}

function buttons(card: HTMLElement): HTMLElement[] {
  return [...card.querySelectorAll<HTMLElement>("button")];
}

/** Which of a card's buttons has the focus, or null. */
function focusWithin(card: HTMLElement): number | null {
  const root = card.getRootNode();
  const active = root instanceof ShadowRoot || root instanceof Document ? root.activeElement : null;
  const index = active instanceof HTMLElement ? buttons(card).indexOf(active) : -1;
  return index < 0 ? null : index;
}

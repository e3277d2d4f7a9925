/**
 * Which model answers, and why: scores by model and workload, live as weights are moved, and the answers of
 * those that were asked. The other half of `cartoolkit/ui/router_view.py`.
 */

import { h, setText } from "./dom";
import { Answers } from "./router_answers";
import { DetailPanel } from "./router_detail";
import { RouterFeed } from "./router_feed";
import { Grid } from "./router_grid";
import { BusyLine, Head, KeyLine, NoticeList } from "./router_head";
import { Hold } from "./router_hold";
import { Knobs } from "./router_knobs";
import { Outbox } from "./router_outbox";
import type { Place, RouterState } from "./router_protocol";
import { ROUTER_STYLES } from "./router_styles";
import * as words from "./router_words";
import type { Model } from "./sync";
import { followTheme } from "./theme";

const EMPTY = "There is no model to choose from yet.";
const WAITING = "Waiting for the table.";
const FORSAKEN = "No kernel answers: it is busy or gone. Until it does, nothing can be changed here.";

class RouterView {
  readonly host = h("div", { class: "cartoolkit-router", "data-lm-suppress-shortcuts": "true" });
  readonly feed: RouterFeed;
  #view = h("div", { class: "view" });
  #card = h("article", {
    class: "card router",
    "data-testid": "router-view",
    "aria-label": "which model answers",
  });
  #out: Outbox;
  #head: Head;
  #notices = new NoticeList();
  #busy = new BusyLine();
  #keys = new KeyLine();
  #grid: Grid;
  #empty = h("p", { class: "quiet nothing", "data-testid": "router-empty" });
  #detail: DetailPanel;
  #knobs: Knobs;
  #answers: Answers;
  #spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  #selection: Hold<Place | null>;
  #winners: ReadonlyMap<string, string> = new Map();

  constructor(model: Model, signal: AbortSignal) {
    this.feed = new RouterFeed(model, () => this.#draw(), signal);
    this.#out = new Outbox(model, signal);
    this.#selection = new Hold<Place | null>(() => this.feed.schedule(), signal, samePlace);
    const probe = (id: string | null) => this.#out.now({ type: "probe", model: id });
    this.#head = new Head({ onProbe: () => probe(null), onReset: () => this.#reset() }, signal);
    this.#grid = new Grid((place) => this.#select(place), signal);
    this.#detail = new DetailPanel(probe, signal);
    this.#knobs = new Knobs(this.#out, signal);
    this.#answers = new Answers((trace_id, accepted) => {
      this.#out.now({ type: "verdict", trace_id, accepted });
    }, signal);
    this.#assemble();
    followTheme(this.host, (dark) => this.#view.classList.toggle("dark", dark), signal);
  }

  #assemble(): void {
    const columns = h("div", { class: "columns" }, this.#detail.node, this.#knobs.node);
    this.#card.append(
      this.#head.node,
      this.#notices.node,
      this.#busy.node,
      this.#keys.node,
      this.#grid.node,
      this.#empty,
      columns,
      this.#answers.node,
      this.#spoken,
    );
    this.#view.append(this.#card);
    this.host.attachShadow({ mode: "open" }).append(h("style", {}, ROUTER_STYLES), this.#view);
  }

  #reset(): void {
    this.#knobs.forgetWeights();
    this.#out.now({ type: "reset" });
  }

  #draw(): void {
    const { state, attended, forsaken } = this.feed;
    this.#card.toggleAttribute("data-none", state === null || state.models.length === 0);
    const said = state === null ? (forsaken ? FORSAKEN : WAITING) : state.notices.length > 0 ? "" : EMPTY;
    this.#empty.hidden = said === "" || (state !== null && state.models.length > 0);
    setText(this.#empty, said);
    this.#card.toggleAttribute("data-blank", state === null);
    this.#card.toggleAttribute("data-still", !attended);
    if (state === null) return;
    const selected = this.#selection.shown(state.selected);
    this.#head.update(state, attended);
    this.#notices.update(state.notices);
    this.#busy.update(state.busy);
    this.#keys.update(state);
    this.#grid.update(state, selected);
    this.#drawDetail(state, selected);
    this.#knobs.update(state, selected?.workload ?? "", forsaken ? FORSAKEN : "", attended);
    this.#answers.update(state.runs, attended);
    this.#speak(state);
  }

  #drawDetail(state: RouterState, selected: Place | null): void {
    const model = state.models.find(({ id }) => id === selected?.model);
    // Until the kernel has answered, what is told is still about the cell before.
    this.#detail.node.classList.toggle("late", !samePlace(selected, state.selected));
    this.#detail.update(state.detail, state.selected, model, this.feed.attended && state.busy === null);
  }

  /** Tell those who do not see the table who is first now; what was there at first is read as the page. */
  #speak({ workloads, models, cells }: RouterState): void {
    const now = words.winners(workloads, models, cells);
    const news = words.changedWinners(this.#winners, now);
    this.#winners = now;
    if (news !== "") setText(this.#spoken, news);
  }

  /** Without a kernel nobody could tell about another cell. */
  #select(place: Place): void {
    if (!this.feed.attended) return;
    this.#selection.take(place);
    this.#grid.select(place);
    this.#out.now({ type: "select", ...place });
    this.feed.schedule();
  }
}

function samePlace(a: Place | null, b: Place | null): boolean {
  return a?.workload === b?.workload && a?.model === b?.model;
}

export function renderRouter(model: Model, el: HTMLElement): () => void {
  const controller = new AbortController();
  const { host, feed } = new RouterView(model, controller.signal);
  el.append(host);
  feed.start(controller.signal);
  return () => {
    controller.abort();
    host.remove();
  };
}

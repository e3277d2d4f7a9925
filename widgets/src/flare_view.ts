/**
 * A run that looks things up when it is in doubt: what it dropped and kept, why and what it looked up, what
 * another threshold would have done, and the same question under other policies. The other half of
 * `cartoolkit/ui/flare_view.py`.
 */

import { BesideTable, BudgetLine } from "./beside";
import { h } from "./dom";
import type { News } from "./feed";
import { outcomeText, whereMade } from "./look_up_words";
import { LookUps } from "./look_ups";
import type { Marks } from "./plot_marks";
import { pick } from "./protocol";
import type { LookUpRow } from "./retrieval_protocol";
import { RunParts } from "./run_parts";
import { type Model, send } from "./sync";
import { Tabs } from "./tabs";
import type { FlowMark } from "./token_flow";
import { supposedOf, WhatIfLine } from "./what_if";

const EMPTY = "Nothing has been asked yet. Write a question and press Answer.";
const LOOK_UPS = "look-ups";
const TOKEN = "token";

class FlareView {
  readonly parts: RunParts;
  #lookUps: LookUps;
  #tabs: Tabs;
  #whatIf = new WhatIfLine();
  #budget = new BudgetLine();
  #beside: BesideTable;
  #selected: number | null = null;
  #marked: readonly LookUpRow[] = [];

  constructor(model: Model, signal: AbortSignal) {
    this.parts = new RunParts(model, signal, {
      empty: EMPTY,
      marks: () => this.#marks(),
      onShow: (news) => this.#show(news),
      onChoose: (index) => {
        if (index !== null) this.#tabs.show(TOKEN);
      },
      onLookUp: (index) => this.#choose(index),
      onThreshold: (value) => this.#whatIf.update(this.parts.store, value, this.parts.attended),
    });
    this.#lookUps = new LookUps({ onSelect: (index) => this.#choose(index) }, signal);
    this.#beside = new BesideTable((row) => send(model, pick(row)), signal);
    this.#tabs = new Tabs(
      [
        { name: LOOK_UPS, title: "Look-ups", panel: this.#lookUps.node },
        { name: TOKEN, title: "Token", panel: this.parts.panel.node },
      ],
      "what is shown beside the text",
      signal,
    );
    this.#assemble();
  }

  #assemble(): void {
    const { header, notices, legend, status, tokens, plot, footer } = this.parts;
    const top = h("div", { class: "meta" }, legend.node, status.node);
    const below = h("div", { class: "below" }, this.#whatIf.node, this.#budget.node, this.#beside.node);
    const main = h("div", { class: "main" }, top, tokens.node, plot.node, below);
    const columns = h("div", { class: "columns" }, main, this.#tabs.node);
    this.parts.card.classList.add("flare");
    this.parts.mount(header.node, notices.node, columns, footer.node);
  }

  #marks(): Marks {
    const { store, threshold } = this.parts;
    return { made: store.lookUps, supposed: supposedOf(store, threshold), selected: this.#selected };
  }

  #show({ reset }: News): void {
    const { store, plot, attended } = this.parts;
    if (reset) {
      this.#marked = [];
      this.#choose(null);
      this.#tabs.show(LOOK_UPS);
    }
    this.#showMarks();
    this.#lookUps.update(store, plot.places);
    const made = store.lookUps.length;
    this.#tabs.setTitle(LOOK_UPS, made === 0 ? "Look-ups" : `Look-ups ${made}`);
    this.#budget.update(store.budget);
    this.#beside.update(store.beside, attended);
  }

  #showMarks(): void {
    const { store, tokens, plot } = this.parts;
    if (store.lookUps === this.#marked) return;
    this.#marked = store.lookUps;
    const marks = store.lookUps.map((row, k): FlowMark => {
      const where = whereMade(row, plot.places, (step) => store.text(step));
      const label = `look-up ${k + 1}, ${where}: ${outcomeText(row)}`;
      return { at: row.at, found: row.outcome === "found", label };
    });
    tokens.setMarks(marks);
    tokens.selectLookUp(this.#selected);
  }

  /** Show a look-up in the text, the plot and the timeline; null shows none. */
  #choose(index: number | null): void {
    this.#selected = index;
    if (index !== null) this.#tabs.show(LOOK_UPS);
    this.#lookUps.select(index);
    this.parts.tokens.selectLookUp(index);
    this.parts.redrawMarks();
  }
}

export function renderFlare(model: Model, el: HTMLElement): () => void {
  const controller = new AbortController();
  const { parts } = new FlareView(model, controller.signal);
  el.append(parts.host);
  parts.start(controller.signal);
  return () => {
    controller.abort();
    parts.host.remove();
  };
}

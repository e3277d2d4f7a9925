/** The parts that every view of a run has, wired to the model and to one another; a view lays them out. */

import { SidePanel } from "./candidates";
import { h } from "./dom";
import { Feed, type News } from "./feed";
import { Legend } from "./legend";
import { isMetric, type Metric } from "./metrics";
import { Plot } from "./plot";
import { clampValue } from "./plot_geometry";
import type { Marks } from "./plot_marks";
import { branch, type Update } from "./protocol";
import { phaseOf, Status } from "./status";
import type { RunStore } from "./store";
import { STYLES } from "./styles";
import { Footer, Header, Notices } from "./summary";
import { type Model, onTrait, send, TraitWriter } from "./sync";
import { followTheme } from "./theme";
import { TokenText } from "./tokens";
import { Tooltip } from "./tooltip";

/** A drag is written after this many milliseconds of rest. */
const WRITE_DELAY = 120;
/** A second click within so many milliseconds of the one that branched is that of a double click. */
const SECOND_CLICK = 700;

/** What a view may do on top of the parts. */
export interface PartsHooks {
  /** The marks of look-ups in the plot; a view that has them draws and names them. */
  marks?(): Marks;
  /** What the view says before there is a run. */
  empty?: string;
  /** After the parts were brought up to date. */
  onShow?(news: News): void;
  /** The reader has chosen a token, or none. */
  onChoose?(index: number | null): void;
  /** The reader has chosen a look-up by its mark. */
  onLookUp?(index: number): void;
  /** The threshold has moved, in the hand or from elsewhere. */
  onThreshold?(value: number): void;
}

export class RunParts {
  readonly host = h("div", { class: "cartoolkit-run", "data-lm-suppress-shortcuts": "true" });
  readonly card = h("article", { class: "card", "data-testid": "run-view", "aria-label": "generation" });
  readonly header: Header;
  readonly notices = new Notices();
  readonly status: Status;
  readonly footer = new Footer();
  readonly tooltip = new Tooltip();
  readonly legend: Legend;
  readonly tokens: TokenText;
  readonly plot: Plot;
  readonly panel: SidePanel;
  #model: Model;
  #hooks: PartsHooks;
  #feed: Feed;
  #writer: TraitWriter;
  #metric: Metric = "max_prob";
  #threshold = 0.4;
  #selected: number | null = null;
  #branched = Number.NEGATIVE_INFINITY;

  constructor(model: Model, signal: AbortSignal, hooks: PartsHooks = {}) {
    this.#model = model;
    this.#hooks = hooks;
    this.#feed = new Feed(
      model,
      {
        onBegin: (update, before) => this.#begin(update, before),
        onFrame: (news) => this.#show(news),
      },
      signal,
    );
    this.header = new Header(model.get("show_model") !== false);
    this.status = new Status(hooks.empty);
    this.#writer = new TraitWriter(model, signal);
    this.legend = new Legend((metric) => this.#chooseMetric(metric), signal, hooks.marks !== undefined);
    this.tokens = this.#makeTokens(signal);
    this.plot = this.#makePlot(signal);
    this.panel = this.#makePanel(signal);
  }

  get store(): RunStore {
    return this.#feed.store;
  }

  /** Whether the kernel was heard of the run shown. */
  get attended(): boolean {
    return this.#feed.attended;
  }

  get threshold(): number {
    return this.#threshold;
  }

  /** Put the card, with what a view has laid out in it, into the host. */
  mount(...content: Node[]): void {
    this.card.append(...content, this.status.spoken, this.tooltip.node);
    const style = h("style", {}, STYLES);
    this.host.attachShadow({ mode: "open" }).append(style, h("div", { class: "view" }, this.card));
  }

  /** Show what is there, then listen, then say what one has. */
  start(signal: AbortSignal): void {
    this.#readTraits();
    this.#feed.start(signal);
    for (const name of ["metric", "threshold", "selected", "can_branch"] as const)
      onTrait(this.#model, name, () => this.#traitChanged(), signal);
    followTheme(this.host, (dark) => this.card.parentElement?.classList.toggle("dark", dark), signal);
    this.#feed.ready();
  }

  /** The marks of look-ups have changed otherwise than by an update. */
  redrawMarks(): void {
    this.plot.setThreshold(this.#threshold, this.#hooks.marks?.());
  }

  /** Select a token, for all views of this model; null selects none. */
  choose(selected: number | null): void {
    if (selected !== this.#selected) this.#writer.now("selected", selected);
  }

  #makeTokens(signal: AbortSignal): TokenText {
    const onHover = (index: number | null, anchor: Element | null) => {
      this.plot.hover(index);
      this.#readOut(index, anchor);
    };
    const onSelect = (index: number | null) => this.#chosen(index);
    return new TokenText(this.store, { onSelect, onHover, onLookUp: (k) => this.#lookUp(k) }, signal);
  }

  #makePlot(signal: AbortSignal): Plot {
    const onHover = (index: number | null, anchor: Element | null) => {
      this.tokens.hover(index);
      this.#readOut(index, anchor);
    };
    return new Plot(
      {
        onSelect: (index) => this.#chosen(index),
        onHover,
        onLookUp: (k) => this.#lookUp(k),
        onThreshold: (value, done) => this.#moveThreshold(value, done),
      },
      signal,
      { marks: this.#hooks.marks !== undefined },
    );
  }

  #makePanel(signal: AbortSignal): SidePanel {
    return new SidePanel(
      {
        onFollow: () => this.#chosen(null),
        onBranch: (step, token) => this.#branch(step, token),
        onRelease: () => this.#showSelected(),
      },
      signal,
    );
  }

  /** A run that begins has nothing selected; one that is replayed keeps what is, and a branch its place. */
  #begin(update: Update, before: string | null): void {
    if (before !== null && update.steps === undefined && update.info?.branch === undefined) this.choose(null);
  }

  #show(news: News): void {
    const { store } = this;
    if (news.reset) this.tokens.clear();
    this.tokens.append();
    this.tokens.reflag(news.changed);
    this.header.update(store.info);
    this.notices.update(store);
    this.status.update(store);
    this.card.dataset["phase"] = phaseOf(store);
    this.card.toggleAttribute("data-none", store.count === 0 && !store.live && store.lookUps.length === 0);
    this.card.toggleAttribute("data-bare", store.count > 0 && !store.inspected);
    this.tokens.setRetrieved(store.retrieved);
    const { max_prob: maxProb, flags } = store.numbers;
    const { live, branchedAt } = store;
    const data = { values: maxProb.values, flags: flags.values, live, branchedAt };
    this.plot.setData(data, this.#hooks.marks?.());
    this.#showThreshold();
    this.#showSelected();
    this.#hooks.onShow?.(news);
    if (store.live) this.tokens.followEnd();
  }

  #showThreshold(): void {
    this.tokens.setThreshold(this.#threshold);
    this.plot.setThreshold(this.#threshold, this.#hooks.marks?.());
    this.legend.update(this.#metric, this.#threshold);
    this.footer.update(this.store, this.#threshold);
    this.#hooks.onThreshold?.(this.#threshold);
  }

  #showSelected(): void {
    const { count } = this.store;
    const selected = this.#selected !== null && this.#selected < count ? this.#selected : null;
    const shown = selected ?? this.panel.held(this.store) ?? (count > 0 ? count - 1 : null);
    this.tokens.select(selected, shown);
    this.plot.select(shown, selected !== null);
    // What was rolled back is no place to go on from.
    const offers = this.#canBranch && shown !== null && this.store.kept(shown);
    const place = shown === null ? 0 : this.#placeOf(shown);
    this.panel.show(this.store, shown, { follows: selected === null, offers, place });
  }

  #placeOf(index: number): number {
    return this.plot.places.of[index] ?? index;
  }

  /** Whether somebody is there to go on from a token of the run shown. */
  get #canBranch(): boolean {
    return this.#model.get("can_branch") === true && this.#feed.attended;
  }

  #branch(step: number, token: number | null): void {
    const now = performance.now();
    if (this.store.run === null || now - this.#branched < SECOND_CLICK) return;
    this.#branched = now;
    send(this.#model, branch(this.store.run, step, token));
  }

  #readTraits(): void {
    const metric = this.#model.get("metric");
    const threshold = this.#model.get("threshold");
    const selected = this.#model.get("selected");
    this.#metric = isMetric(metric) ? metric : "max_prob";
    // While the line is in the hand, an older value that comes back must not move it.
    const moving = this.plot.dragging || this.#writer.waiting("threshold");
    if (!moving && Number.isFinite(threshold)) this.#threshold = clampValue(threshold);
    this.#selected = Number.isInteger(selected) && selected !== null && selected >= 0 ? selected : null;
    this.tokens.setMetric(this.#metric);
  }

  #traitChanged(): void {
    this.#readTraits();
    this.#showThreshold();
    this.#showSelected();
  }

  #chooseMetric(metric: Metric): void {
    this.#writer.now("metric", metric);
  }

  #lookUp(index: number): void {
    this.#hooks.onLookUp?.(index);
  }

  #chosen(selected: number | null): void {
    this.choose(selected);
    this.#hooks.onChoose?.(selected);
  }

  #moveThreshold(value: number, done: boolean): void {
    this.#threshold = value;
    if (done) this.#writer.now("threshold", value);
    else this.#writer.later("threshold", value, WRITE_DELAY);
    this.#showThreshold();
  }

  #readOut(index: number | null, anchor: Element | null): void {
    if (index === null || anchor === null) this.tooltip.hide();
    else this.tooltip.show(this.store.step(index), this.#placeOf(index), anchor, this.card, this.#metric);
  }
}

/** One run, live or saved: its text, its plot and the token that is looked at. The other half of `cartoolkit/ui/run_view.py`. */

import { SidePanel } from "./candidates";
import { h } from "./dom";
import { Legend } from "./legend";
import { isMetric, type Metric } from "./metrics";
import { Plot } from "./plot";
import { clampValue } from "./plot_geometry";
import { branch, parseUpdate, ready, type Update } from "./protocol";
import { phaseOf, Status } from "./status";
import { RunStore } from "./store";
import { STYLES } from "./styles";
import { Footer, Header, Notices } from "./summary";
import { type Model, onMessage, onTrait, send, TraitWriter } from "./sync";
import { followTheme } from "./theme";
import { TokenText } from "./tokens";
import { Tooltip } from "./tooltip";

/** A drag is written after this many milliseconds of rest. */
const WRITE_DELAY = 120;
/** The same gap is reported again after this many milliseconds. */
const ASK_AGAIN = 500;
/** After a flush the page has this many times its duration for itself. */
const REST = 2;
const FRAME = 16;
/** A second click within so many milliseconds of the one that branched is that of a double click. */
const SECOND_CLICK = 700;

class RunView {
  readonly host = h("div", { class: "cartoolkit-run", "data-lm-suppress-shortcuts": "true" });
  #model: Model;
  #store = new RunStore();
  #writer: TraitWriter;
  #metric: Metric = "max_prob";
  #threshold = 0.4;
  #selected: number | null = null;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushed = { end: 0, cost: 0 };
  #reset = false;
  #reflagged: number[] = [];
  #asked = { what: "", when: Number.NEGATIVE_INFINITY };
  /** The run of which the kernel was heard last, as opposed to one that was saved with the page. */
  #heard: string | null = null;
  #branched = Number.NEGATIVE_INFINITY;

  #card = h("article", { class: "card", "data-testid": "run-view", "aria-label": "generation" });
  #header: Header;
  #notices = new Notices();
  #status = new Status();
  #footer = new Footer();
  #tooltip = new Tooltip();
  #legend: Legend;
  #tokens: TokenText;
  #plot: Plot;
  #panel: SidePanel;

  constructor(model: Model, signal: AbortSignal) {
    this.#model = model;
    this.#header = new Header(model.get("show_model") !== false);
    this.#writer = new TraitWriter(model, signal);
    this.#legend = new Legend((metric) => this.#chooseMetric(metric), signal);
    this.#tokens = new TokenText(
      this.#store,
      {
        onSelect: (index) => this.#choose(index),
        onHover: (index, anchor) => {
          this.#plot.hover(index);
          this.#readOut(index, anchor);
        },
      },
      signal,
    );
    this.#plot = new Plot(
      {
        onSelect: (index) => this.#choose(index),
        onHover: (index, anchor) => {
          this.#tokens.hover(index);
          this.#readOut(index, anchor);
        },
        onThreshold: (value, done) => this.#moveThreshold(value, done),
      },
      signal,
    );
    this.#panel = new SidePanel(
      {
        onFollow: () => this.#choose(null),
        onBranch: (step, token) => this.#branch(step, token),
        onRelease: () => this.#showSelected(),
      },
      signal,
    );
    this.#assemble();
    signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** Show what is there, then listen, then say what one has. */
  start(signal: AbortSignal): void {
    this.#readTraits();
    const snapshot = this.#model.get("snapshot");
    if (typeof snapshot === "object" && snapshot !== null)
      this.#receive(snapshot, (snapshot as { buffers?: unknown }).buffers ?? []);
    this.#flush();
    onMessage(this.#model, (content, buffers) => this.#hear(content, buffers), signal);
    for (const name of ["metric", "threshold", "selected", "can_branch"] as const)
      onTrait(this.#model, name, () => this.#traitChanged(), signal);
    followTheme(this.host, (dark) => this.#card.parentElement?.classList.toggle("dark", dark), signal);
    send(this.#model, ready(this.#store.run, this.#store.count));
  }

  #stop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
  }

  #assemble(): void {
    const top = h("div", { class: "meta" }, this.#legend.node, this.#status.node);
    const main = h("div", { class: "main" }, top, this.#tokens.node, this.#plot.node);
    const columns = h("div", { class: "columns" }, main, this.#panel.node);
    this.#card.append(
      this.#header.node,
      this.#notices.node,
      columns,
      this.#footer.node,
      this.#status.spoken,
      this.#tooltip.node,
    );
    const style = h("style", {}, STYLES);
    this.host.attachShadow({ mode: "open" }).append(style, h("div", { class: "view" }, this.#card));
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
    const before = this.#store.run;
    const change = this.#store.apply(update);
    if (change.reset) {
      this.#reset = true;
      this.#reflagged = [];
      // A run that begins has nothing selected; one that is replayed keeps what is, and a branch its place.
      if (before !== null && update.steps === undefined && update.info?.branch === undefined)
        this.#choose(null);
    }
    this.#reflagged.push(...change.reflagged);
    if (change.gap) this.#ask(update.run);
    this.#schedule();
    return update.run;
  }

  /** Ask for what is missing, but not once for each message that shows it. */
  #ask(run: string): void {
    const what = `${run} ${this.#store.run} ${this.#store.count}`;
    if (what === this.#asked.what && performance.now() - this.#asked.when < ASK_AGAIN) return;
    this.#asked = { what, when: performance.now() };
    send(this.#model, ready(this.#store.run, this.#store.count));
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
    this.#show();
    const end = performance.now();
    this.#flushed = { end, cost: end - start };
  }

  #show(): void {
    const store = this.#store;
    if (this.#reset) this.#tokens.clear();
    this.#reset = false;
    this.#tokens.append();
    this.#tokens.reflag(this.#reflagged.splice(0));
    this.#header.update(store.info);
    this.#notices.update(store);
    this.#status.update(store);
    this.#card.dataset["phase"] = phaseOf(store);
    this.#card.toggleAttribute("data-none", store.count === 0 && !store.live);
    this.#card.toggleAttribute("data-bare", store.count > 0 && !store.inspected);
    this.#plot.setData(store.numbers.max_prob.values, store.live, store.branchedAt);
    this.#showThreshold();
    this.#showSelected();
    if (store.live) this.#tokens.followEnd();
  }

  #showThreshold(): void {
    this.#tokens.setThreshold(this.#threshold);
    this.#plot.setThreshold(this.#threshold);
    this.#legend.update(this.#metric, this.#threshold);
    this.#footer.update(this.#store, this.#threshold);
  }

  #showSelected(): void {
    const { count } = this.#store;
    const selected = this.#selected !== null && this.#selected < count ? this.#selected : null;
    const shown = selected ?? this.#panel.held(this.#store) ?? (count > 0 ? count - 1 : null);
    this.#tokens.select(selected, shown);
    this.#plot.select(shown, selected !== null);
    this.#panel.show(this.#store, shown, { follows: selected === null, offers: this.#canBranch });
  }

  /** Whether somebody is there to go on from a token of the run shown. */
  get #canBranch(): boolean {
    return this.#model.get("can_branch") === true && this.#heard !== null && this.#heard === this.#store.run;
  }

  #branch(step: number, token: number | null): void {
    const now = performance.now();
    if (this.#store.run === null || now - this.#branched < SECOND_CLICK) return;
    this.#branched = now;
    send(this.#model, branch(this.#store.run, step, token));
  }

  #readTraits(): void {
    const metric = this.#model.get("metric");
    const threshold = this.#model.get("threshold");
    const selected = this.#model.get("selected");
    this.#metric = isMetric(metric) ? metric : "max_prob";
    // While the line is in the hand, an older value that comes back must not move it.
    const moving = this.#plot.dragging || this.#writer.waiting("threshold");
    if (!moving && Number.isFinite(threshold)) this.#threshold = clampValue(threshold);
    this.#selected = Number.isInteger(selected) && selected !== null && selected >= 0 ? selected : null;
    this.#tokens.setMetric(this.#metric);
  }

  #traitChanged(): void {
    this.#readTraits();
    this.#showThreshold();
    this.#showSelected();
  }

  #chooseMetric(metric: Metric): void {
    this.#writer.now("metric", metric);
  }

  #choose(selected: number | null): void {
    if (selected !== this.#selected) this.#writer.now("selected", selected);
  }

  #moveThreshold(value: number, done: boolean): void {
    this.#threshold = value;
    if (done) this.#writer.now("threshold", value);
    else this.#writer.later("threshold", value, WRITE_DELAY);
    this.#showThreshold();
  }

  #readOut(index: number | null, anchor: Element | null): void {
    if (index === null || anchor === null) this.#tooltip.hide();
    else this.#tooltip.show(this.#store.step(index), anchor, this.#card, this.#metric);
  }
}

export function renderRun(model: Model, el: HTMLElement): () => void {
  const controller = new AbortController();
  const view = new RunView(model, controller.signal);
  el.append(view.host);
  view.start(controller.signal);
  return () => {
    controller.abort();
    view.host.remove();
  };
}

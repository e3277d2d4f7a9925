/** The answers to the latest prompt, each with a thumb up and a thumb down. */

import { h, setAttributes, setText, svg } from "./dom";
import * as format from "./format";
import { Hold } from "./router_hold";
import type { Answer } from "./router_protocol";
import * as words from "./router_words";

type OnVerdict = (traceId: string, accepted: boolean) => void;

const THUMB =
  "M5 21V10.5H2V21zM7 10.5 11 2c1.5 0 2.5 1 2.5 2.6V9h6a2 2 0 0 1 2 2.4l-1.6 8A2 2 0 0 1 18 21H7z";
const OUTCOMES: Record<string, string> = {
  running: "answering",
  failure: "failed",
  inconclusive: "not counted",
};

export class Answers {
  readonly node = h("section", { class: "answers", "data-testid": "router-answers", hidden: true });
  #list = h("div", { class: "answer-list" });
  #cards = new Map<string, AnswerCard>();
  #onVerdict: OnVerdict;
  #signal: AbortSignal;

  constructor(onVerdict: OnVerdict, signal: AbortSignal) {
    this.#onVerdict = onVerdict;
    this.#signal = signal;
    this.node.append(h("h3", {}, "Answers"), this.#list);
  }

  /** `judges`: somebody is there who keeps a verdict. */
  update(answers: readonly Answer[], judges: boolean): void {
    this.node.hidden = answers.length === 0;
    const before = this.#cards;
    this.#cards = new Map(
      answers.map(({ trace_id: id }) => [
        id,
        before.get(id) ?? new AnswerCard(id, this.#onVerdict, this.#signal),
      ]),
    );
    for (const answer of answers) this.#cards.get(answer.trace_id)?.update(answer, judges);
    const cards = [...this.#cards.values()].map(({ node }) => node);
    const same = cards.length === this.#list.children.length;
    // Moving a node takes the focus off its buttons.
    if (!same || cards.some((card, i) => this.#list.children[i] !== card))
      this.#list.replaceChildren(...cards);
  }
}

class AnswerCard {
  readonly node = h("article", { class: "answer", "data-testid": "router-answer" });
  #model = h("bdi", { class: "title" });
  #figures = h("span", { class: "figures-line" });
  #text = h("div", { class: "answer-text" });
  #story = h("bdi", { class: "story" });
  #more = h("button", { type: "button", class: "link", hidden: true }, "show all");
  #thumbs = h("div", { class: "thumbs", role: "group" });
  #up = thumb("good", "the answer is good");
  #down = thumb("bad", "the answer is bad");
  #held: Hold<boolean | null>;
  #answer: Answer | null = null;
  #judges = false;
  #open = false;

  constructor(id: string, onVerdict: OnVerdict, signal: AbortSignal) {
    this.#held = new Hold<boolean | null>(() => this.#drawThumbs(), signal);
    const judge = (accepted: boolean) => {
      this.#held.take(accepted);
      onVerdict(id, accepted);
      this.#drawThumbs();
    };
    // Without the view's signal: cards come and go, and their listeners go with them.
    this.#up.addEventListener("click", () => judge(true));
    this.#down.addEventListener("click", () => judge(false));
    this.#more.addEventListener("click", () => this.#toggle());
    this.#thumbs.append(this.#up, this.#down);
    const head = h("div", { class: "answer-head" }, this.#model, this.#figures);
    const foot = h("div", { class: "answer-foot" }, this.#more, this.#thumbs);
    this.node.append(head, this.#text, this.#story, foot);
  }

  update(answer: Answer, judges: boolean): void {
    this.#answer = answer;
    this.#judges = judges;
    const { model, text, story, outcome } = answer;
    this.node.dataset["outcome"] = outcome;
    setText(this.#model, model);
    setText(this.#figures, figuresOf(answer));
    setText(this.#text, text.trim());
    setText(this.#story, story);
    this.#text.hidden = text === "";
    this.#story.hidden = story === "";
    setAttributes(this.#thumbs, { "aria-label": `verdict on the answer of ${model}` });
    this.#drawMore();
    this.#drawThumbs();
  }

  #toggle(): void {
    this.#open = !this.#open;
    this.#drawMore();
  }

  #drawMore(): void {
    const text = this.#answer?.text ?? "";
    const long = text.length > LONG || text.split("\n").length > LINES;
    this.#more.hidden = !long;
    this.#text.classList.toggle("cut", long && !this.#open);
    setText(this.#more, this.#open ? "show less" : "show all");
    setAttributes(this.#more, { "aria-expanded": String(this.#open) });
  }

  #drawThumbs(): void {
    const answer = this.#answer;
    if (answer === null) return;
    const verdict = this.#held.shown(answer.verdict);
    this.#thumbs.hidden = answer.outcome !== "success";
    for (const [button, means] of [
      [this.#up, true],
      [this.#down, false],
    ] as const) {
      setAttributes(button, { "aria-pressed": String(verdict === means) });
      button.disabled = !this.#judges || verdict !== null;
    }
  }
}

/** Longer texts, in characters or lines, are shown in part. */
const LONG = 320;
const LINES = 5;

function figuresOf({ ms, tokens, outcome }: Answer): string {
  const time = ms === null ? [] : [words.milliseconds(ms)];
  const state = OUTCOMES[outcome];
  return [...(state === undefined ? [] : [state]), ...time, format.plural(tokens, "token")].join(" · ");
}

function thumb(word: string, title: string): HTMLButtonElement {
  const icon = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: `thumb ${word}` });
  icon.append(svg("path", { d: THUMB }));
  const button = h("button", { type: "button", class: "button", title, "aria-pressed": "false" }, icon, word);
  button.dataset["testid"] = `thumb-${word}`;
  return button;
}

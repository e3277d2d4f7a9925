/** What can be turned: the weights of a workload, and what is asked of the models. */

import { h, setText } from "./dom";
import * as format from "./format";
import { Hold } from "./router_hold";
import { NumberControl, type NumberSpec } from "./router_number";
import type { Outbox } from "./router_outbox";
import {
  type AmountName,
  type Question,
  type RouterState,
  WEIGHTS,
  type WeightName,
  type Workload,
} from "./router_protocol";
import { logScale, WEIGHT_SCALE } from "./router_scales";
import * as words from "./router_words";

const MOST_TOKENS = 1_000_000;
/** The ends of the sliders; a field takes more. */
const TOKENS = { least: 1, most: 131_072 };
const USD = { least: 0.00001, most: 1 };
const MS = { least: 10, most: 600_000 };

const WEIGHT_TITLES: Record<WeightName, string> = {
  quality: "quality",
  latency: "latency",
  cost: "cost",
  local_bonus: "local bonus",
};

function weightSpec(name: WeightName): NumberSpec {
  const others = "The other two weights keep their ratio, and all three sum to 1.";
  const bonus = "Added to the score of a model that runs on this machine.";
  return {
    label: WEIGHT_TITLES[name],
    unit: "",
    scale: WEIGHT_SCALE,
    least: 0,
    most: 1,
    step: 0.01,
    write: words.weight,
    testId: `weight-${name}`,
    title: name === "local_bonus" ? bonus : others,
    swatch: name,
  };
}

const tokens = { unit: "tokens", whole: true, step: 1, most: MOST_TOKENS, write: String };

const AMOUNTS: Record<AmountName, NumberSpec> = {
  prompt_tokens: {
    ...tokens,
    label: "prompt",
    scale: logScale(TOKENS.least, TOKENS.most, { whole: true }),
    least: 0,
    testId: "question-prompt_tokens",
    title: "How long the prompt is.",
  },
  output_tokens: {
    ...tokens,
    label: "answer",
    scale: logScale(TOKENS.least, TOKENS.most, { whole: true }),
    least: 1,
    testId: "question-output_tokens",
    title: "How long the answer is expected to be; prices and times are worked out with it.",
  },
  max_cost_usd: {
    label: "budget",
    unit: "USD a call",
    scale: logScale(USD.least, USD.most, { endless: true }),
    least: 0,
    step: 0.001,
    endless: true,
    write: String,
    testId: "question-max_cost_usd",
    title: "A model that costs more, or whose price nobody knows, is left out.",
  },
  max_latency_ms: {
    label: "time limit",
    unit: "ms",
    scale: logScale(MS.least, MS.most, { endless: true }),
    least: 0,
    step: 100,
    endless: true,
    write: (value) => String(Number(value.toPrecision(6))),
    testId: "question-max_latency_ms",
    title: "A model that is expected to take longer is left out.",
  },
};

/** Knows which workload's weights are shown: that of the cell selected, or another one that was picked. */
export class Knobs {
  readonly node: HTMLElement;
  #out: Outbox;
  #weights: Map<WeightName, NumberControl>;
  #amounts: Map<AmountName, NumberControl>;
  #workload = h("select", {
    class: "menu",
    "aria-label": "workload whose weights are shown",
    "data-testid": "workload",
  });
  #task = h("select", { class: "menu", "aria-label": "task", "data-testid": "task" });
  #held: Hold<string>;
  #note = h("p", { class: "quiet", "data-testid": "knobs-note" });
  #fields = h("fieldset", {});
  #state: RouterState | null = null;
  #name = "";
  #followed = "";

  constructor(out: Outbox, signal: AbortSignal) {
    this.#out = out;
    this.#weights = new Map(
      WEIGHTS.map((name) => [
        name,
        new NumberControl(weightSpec(name), (value) => this.#weigh(name, value ?? 0), signal),
      ]),
    );
    const names = Object.keys(AMOUNTS) as AmountName[];
    this.#amounts = new Map(
      names.map((name) => [
        name,
        new NumberControl(AMOUNTS[name], (value) => this.#ask(name, value), signal),
      ]),
    );
    this.#held = new Hold<string>(() => this.#drawTask(), signal);
    this.#workload.addEventListener("change", () => this.#pick(this.#workload.value), { signal });
    this.#task.addEventListener("change", () => this.#setTask(this.#task.value), { signal });
    this.#fields.append(this.#weightGroup(), this.#questionGroup());
    this.node = h("section", {
      class: "side knobs",
      "aria-label": "what is weighed",
      "data-testid": "knobs",
    });
    this.node.append(this.#note, this.#fields);
  }

  #weightGroup(): HTMLElement {
    const head = h("label", { class: "knobs-head" }, h("b", {}, "Weights of"), this.#workload);
    return h("div", { class: "knob-group" }, head, ...[...this.#weights.values()].map(({ node }) => node));
  }

  #questionGroup(): HTMLElement {
    const task = h("label", { class: "knob" }, h("span", { class: "knob-name" }, "task"), this.#task);
    return h(
      "div",
      { class: "knob-group" },
      h("div", { class: "knobs-head" }, h("b", {}, "What is asked")),
      ...[...this.#amounts.values()].map(({ node }) => node),
      task,
    );
  }

  /** `remark` says why nothing can be turned; empty, everything can. */
  update(state: RouterState, followed: string, remark: string, enabled: boolean): void {
    this.#state = state;
    this.#fields.disabled = !enabled;
    setText(this.#note, remark);
    this.#note.hidden = remark === "";
    if (followed !== "" && followed !== this.#followed) this.#show(followed);
    this.#followed = followed;
    if (!state.workloads.some(({ name }) => name === this.#name)) this.#show(state.workloads[0]?.name ?? "");
    this.#drawWorkload(state.workloads);
    this.#drawQuestion(state.question);
  }

  /** The weights are about to be taken back: what was held of them is forgotten. */
  forgetWeights(): void {
    for (const control of this.#weights.values()) control.forget();
  }

  #pick(name: string): void {
    this.#show(name);
    if (this.#state !== null) this.#drawWorkload(this.#state.workloads);
  }

  #show(name: string): void {
    if (name === this.#name) return;
    this.#name = name;
    this.forgetWeights();
  }

  #drawWorkload(workloads: readonly Workload[]): void {
    fill(
      this.#workload,
      workloads.map(({ name, title, changed }) => [name, changed ? `${title} (changed)` : title]),
    );
    this.#workload.value = this.#name;
    const shown = workloads.find(({ name }) => name === this.#name);
    for (const [name, control] of this.#weights) control.update(shown?.[name] ?? null);
  }

  #drawQuestion(question: Question): void {
    for (const [name, control] of this.#amounts) control.update(question[name]);
    fill(
      this.#task,
      [...new Set([...question.tasks, question.task])].map((task) => [task, task]),
    );
    this.#drawTask();
  }

  #drawTask(): void {
    if (this.#state !== null) this.#task.value = this.#held.shown(this.#state.question.task);
  }

  #weigh(name: WeightName, value: number): void {
    const workload = this.#name;
    this.#out.post(`weight ${workload} ${name}`, { type: "weight", workload, name, value });
  }

  #ask(name: AmountName, value: number | null): void {
    this.#out.post(`question ${name}`, { type: "question", name, value });
  }

  #setTask(value: string): void {
    this.#held.take(value);
    this.#out.now({ type: "question", name: "task", value });
  }
}

/** Give a menu these entries, unless it has them. */
function fill(menu: HTMLSelectElement, entries: readonly (readonly [string, string])[]): void {
  const has = [...menu.options].map((option) => `${option.value}\n${option.text}`);
  const wants = entries.map(([value, text]) => `${value}\n${text}`);
  if (has.length === wants.length && has.every((one, i) => one === wants[i])) return;
  menu.replaceChildren(...entries.map(([value, text]) => h("option", { value }, text)));
}

/** The bounds and lengths that hold, as short as a chip. */
export function questionChips(question: Question, strategy: RouterState["strategy"]): string[] {
  const { prompt_tokens, output_tokens, max_cost_usd, max_latency_ms, task } = question;
  return [
    `prompt ${format.plural(prompt_tokens, "token")}`,
    `answer ${format.plural(output_tokens, "token")}`,
    `task ${task}`,
    ...(max_cost_usd === null ? [] : [`at most ${words.usd(max_cost_usd)} a call`]),
    ...(max_latency_ms === null ? [] : [`at most ${words.milliseconds(max_latency_ms)}`]),
    `${strategy.text}, prior strength ${Number(strategy.prior_strength.toPrecision(3))}`,
  ];
}

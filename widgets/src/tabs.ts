/** Panels of which one is shown, with a row of tabs over them. */

import { h, setText } from "./dom";

export interface Tab {
  name: string;
  title: string;
  panel: HTMLElement;
}

export class Tabs {
  readonly node: HTMLElement;
  #tabs: { name: string; button: HTMLElement; panel: HTMLElement }[];
  #shown: string;

  constructor(tabs: readonly Tab[], label: string, signal: AbortSignal) {
    this.#shown = tabs[0]?.name ?? "";
    this.#tabs = tabs.map(({ name, title, panel }) => {
      // No ids on a page that others share: a panel is labelled by its own words.
      const button = h("button", { type: "button", role: "tab", class: "tab", "data-tab": name }, title);
      panel.setAttribute("role", "tabpanel");
      if (!panel.hasAttribute("aria-label")) panel.setAttribute("aria-label", title);
      return { name, button, panel };
    });
    const row = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": label },
      ...this.#tabs.map(({ button }) => button),
    );
    row.addEventListener("click", (event) => this.#click(event.target), { signal });
    row.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.node = h("div", { class: "tabbed" }, row, ...this.#tabs.map(({ panel }) => panel));
    this.show(this.#shown);
  }

  get shown(): string {
    return this.#shown;
  }

  setTitle(name: string, title: string): void {
    const tab = this.#tabs.find((one) => one.name === name);
    if (tab !== undefined) setText(tab.button, title);
  }

  show(name: string): void {
    this.#shown = name;
    for (const { name: own, button, panel } of this.#tabs) {
      const on = own === name;
      panel.hidden = !on;
      button.setAttribute("aria-selected", String(on));
      button.setAttribute("tabindex", on ? "0" : "-1");
    }
  }

  #click(target: EventTarget | null): void {
    const name = target instanceof Element ? target.closest<HTMLElement>(".tab")?.dataset["tab"] : undefined;
    if (name !== undefined) this.show(name);
  }

  #key(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const { length } = this.#tabs;
    const at = this.#tabs.findIndex(({ name }) => name === this.#shown);
    const next = this.#tabs[(at + step + length) % length];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(next.name);
    next.button.focus();
  }
}

/** One run, live or saved: its text, its plot and the token that is looked at. The other half of `cartoolkit/ui/run_view.py`. */

import { h } from "./dom";
import { RunParts } from "./run_parts";
import type { Model } from "./sync";

/** Lay the parts out: what ran above, text and plot beside the selected token, figures below. */
function assemble(parts: RunParts): void {
  const { header, notices, legend, status, tokens, plot, panel, footer } = parts;
  const top = h("div", { class: "meta" }, legend.node, status.node);
  const main = h("div", { class: "main" }, top, tokens.node, plot.node);
  const columns = h("div", { class: "columns" }, main, panel.node);
  parts.mount(header.node, notices.node, columns, footer.node);
}

export function renderRun(model: Model, el: HTMLElement): () => void {
  const controller = new AbortController();
  const parts = new RunParts(model, controller.signal);
  assemble(parts);
  el.append(parts.host);
  parts.start(controller.signal);
  return () => {
    controller.abort();
    parts.host.remove();
  };
}

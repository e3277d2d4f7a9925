/** Entry of the bundle: the `view` trait of the model picks what is rendered. */

import type { RenderProps } from "@anywidget/types";
import { renderFlare } from "./flare_view";
import { renderRouter } from "./router_view";
import { renderRun } from "./run_view";
import type { Model, Traits } from "./sync";

type Renderer = (model: Model, el: HTMLElement) => () => void;

const VIEWS: Record<string, Renderer> = { run: renderRun, flare: renderFlare, router: renderRouter };

function render({ model, el }: Pick<RenderProps<Traits>, "model" | "el">): () => void {
  const name = model.get("view");
  const renderer = Object.hasOwn(VIEWS, name) ? VIEWS[name] : undefined;
  if (renderer !== undefined) return renderer(model, el);
  const note = document.createElement("p");
  note.textContent = `cartoolkit: this version of the widget cannot show "${name}".`;
  el.append(note);
  return () => note.remove();
}

export default { render };

/** Whether the page around the view is dark, now and when it changes. */

/** Relative luminance (WCAG) of a computed colour, or null if it is none or see-through. */
export function luminance(colour: string): number | null {
  const parts = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  const [red, green, blue, alpha = 1] = parts;
  if (!colour.startsWith("rgb") || red === undefined || green === undefined || blue === undefined)
    return null;
  if (alpha < 0.5) return null;
  const linear = [red, green, blue].map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0);
}

/** The colour that Jupyter's theme gives to cards, if there is such a theme. */
function themeColour(host: HTMLElement): string {
  return getComputedStyle(host).getPropertyValue("--jp-layout-color1").trim();
}

/** Luminance of the first background behind a node that is not see-through. */
function backgroundLuminance(host: HTMLElement): number | null {
  for (let node: Element | null = host; node !== null; node = parentOf(node)) {
    const found = luminance(getComputedStyle(node).backgroundColor);
    if (found !== null) return found;
  }
  return null;
}

function parentOf(node: Element): Element | null {
  if (node.parentElement !== null) return node.parentElement;
  const root = node.getRootNode();
  return root instanceof ShadowRoot ? root.host : null;
}

/** What the page says of itself: JupyterLab, VS Code, Colab and marimo, in this order. */
function declaredDark(): boolean | null {
  const body = document.body;
  const jupyter = body.getAttribute("data-jp-theme-light");
  if (jupyter !== null) return jupyter === "false";
  if (body.classList.contains("vscode-dark")) return true;
  if (body.classList.contains("vscode-high-contrast"))
    return !body.classList.contains("vscode-high-contrast-light");
  if (body.classList.contains("vscode-light")) return false;
  const root = document.documentElement;
  if (root.getAttribute("theme") === "dark") return true;
  return root.classList.contains("dark") || body.classList.contains("dark") ? true : null;
}

export function isDark(host: HTMLElement): boolean {
  // A theme's own card colour decides, as it is what the view is painted on.
  const card = resolveColour(host, themeColour(host));
  const behind = card ?? backgroundLuminance(host);
  if (behind !== null) return behind < 0.2;
  return declaredDark() ?? prefersDark()?.matches ?? false;
}

/** A colour in any notation, as luminance: the browser computes it on the node that asks. */
function resolveColour(host: HTMLElement, colour: string): number | null {
  if (colour === "") return null;
  host.style.setProperty("background-color", colour);
  const computed = getComputedStyle(host).backgroundColor;
  host.style.removeProperty("background-color");
  return luminance(computed);
}

function prefersDark(): MediaQueryList | undefined {
  return typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : undefined;
}

/** Call `apply` now and whenever the theme may have changed, until the signal is aborted. */
export function followTheme(host: HTMLElement, apply: (dark: boolean) => void, signal: AbortSignal): void {
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const check = () => apply(isDark(host));
  const forget = () => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
  };
  const later = () => {
    check();
    forget();
    // JupyterLab marks the body before the new theme's style sheet has arrived.
    for (const delay of [60, 400, 1500]) timers.add(setTimeout(check, delay));
  };
  const observer = new MutationObserver(later);
  const attributeFilter = [
    "class",
    "style",
    "theme",
    "data-theme",
    "data-jp-theme-light",
    "data-jp-theme-name",
  ];
  for (const node of [document.documentElement, document.body])
    observer.observe(node, { attributes: true, attributeFilter });
  prefersDark()?.addEventListener("change", later, { signal });
  signal.addEventListener(
    "abort",
    () => {
      observer.disconnect();
      forget();
    },
    { once: true },
  );
  later();
}

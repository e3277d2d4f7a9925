import { afterEach, expect, test } from "vitest";
import { followTheme, isDark, luminance } from "../src/theme";

afterEach(() => {
  document.body.removeAttribute("data-jp-theme-light");
  document.body.removeAttribute("class");
  document.body.removeAttribute("style");
  document.body.replaceChildren();
});

function host(): HTMLElement {
  const node = document.createElement("div");
  document.body.append(node);
  return node;
}

test("luminance by WCAG's formula", () => {
  expect(luminance("rgb(255, 255, 255)")).toBeCloseTo(1, 9);
  expect(luminance("rgb(0, 0, 0)")).toBe(0);
  // 0.2126 * ((1 + 0.055) / 1.055) ** 2.4
  expect(luminance("rgb(255, 0, 0)")).toBeCloseTo(0.2126, 9);
  expect(luminance("rgba(0, 0, 0, 0)")).toBeNull();
  expect(luminance("transparent")).toBeNull();
});

test("the background behind the view decides", () => {
  document.body.style.backgroundColor = "rgb(20, 20, 20)";
  expect(isDark(host())).toBe(true);
  document.body.style.backgroundColor = "rgb(250, 250, 250)";
  expect(isDark(host())).toBe(false);
});

test.each([
  ["JupyterLab dark", () => document.body.setAttribute("data-jp-theme-light", "false"), true],
  ["JupyterLab light", () => document.body.setAttribute("data-jp-theme-light", "true"), false],
  ["VS Code dark", () => document.body.classList.add("vscode-dark"), true],
  ["VS Code light", () => document.body.classList.add("vscode-light"), false],
  ["nothing", () => {}, false],
])("without a background: %s", (_, declare, dark) => {
  declare();
  expect(isDark(host())).toBe(dark);
});

test("a theme switch is followed until the view goes", async () => {
  const controller = new AbortController();
  const seen: boolean[] = [];
  followTheme(host(), (dark) => seen.push(dark), controller.signal);
  document.body.setAttribute("data-jp-theme-light", "false");
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(seen).toEqual([false, true]);
  controller.abort();
  document.body.setAttribute("data-jp-theme-light", "true");
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(seen).toEqual([false, true]);
});

/** Making elements. Text only ever becomes a text node or an attribute, never markup. */

export type Attributes = Record<string, string | number | boolean | null>;
export type Child = Node | string | null;

const SVG = "http://www.w3.org/2000/svg";

/** Set attributes; `true` is the bare attribute, `false` and `null` take it away. */
export function setAttributes(node: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  for (const child of children) if (child !== null) node.append(child);
  return node;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(SVG, tag);
  setAttributes(node, attributes);
  for (const child of children) if (child !== null) node.append(child);
  return node;
}

/** Change a node's text only if it differs, so that selections and live regions are left alone. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** What the reader has selected, also inside a shadow root. */

interface SelectionRoot {
  getSelection?(): Selection | null;
}

/** The part of the page's selection that lies inside a node, which may be in a shadow root. */
export function selectionIn(node: HTMLElement): Range | null {
  const root = node.getRootNode();
  const selection = (root as SelectionRoot).getSelection?.() ?? document.getSelection();
  if (selection === null || selection === undefined || selection.rangeCount === 0) return null;
  const range = rangeOf(selection, root);
  if (range === null || !range.intersectsNode(node)) return null;
  const all = document.createRange();
  all.selectNodeContents(node);
  if (range.compareBoundaryPoints(Range.START_TO_START, all) < 0) range.setStart(node, 0);
  if (range.compareBoundaryPoints(Range.END_TO_END, all) > 0) range.setEnd(node, node.childNodes.length);
  return range;
}

function rangeOf(selection: Selection, root: Node): Range | null {
  if (root instanceof ShadowRoot && typeof selection.getComposedRanges === "function") {
    const found = selection.getComposedRanges({ shadowRoots: [root] })[0];
    if (found !== undefined) {
      const range = document.createRange();
      range.setStart(found.startContainer, found.startOffset);
      range.setEnd(found.endContainer, found.endOffset);
      return range;
    }
  }
  return selection.getRangeAt(0).cloneRange();
}

/** The text of a range without what was dropped from the answer. */
export function keptText(range: Range): string {
  const { commonAncestorContainer: node } = range;
  const around = node instanceof Element ? node : node.parentElement;
  if (around?.closest(".dropped")) return "";
  const part = range.cloneContents();
  for (const dropped of part.querySelectorAll(".dropped")) dropped.remove();
  return part.textContent ?? "";
}

// What the tests ask a page, as one object on the window.
window.look = {
  // The contrast between every text in a view and what is painted behind it.
  contrasts(root) {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const paint = (colours) => {
      context.clearRect(0, 0, 1, 1);
      for (const colour of colours) {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
      }
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const parent = (node) => node.parentElement ?? node.getRootNode().host ?? null;
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const luminance = (rgb) => {
      const [r, g, b] = rgb.map((v) => linear(v / 255));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const readable = (node) =>
      [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()) &&
      node.getBoundingClientRect().width >= 2 &&
      node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      !node.closest("style, .spoken, option");
    return [...root.querySelectorAll("*")].filter(readable).map((node) => {
      const behind = ["white"];
      for (let at = node; at; at = parent(at))
        // A background means nothing to SVG.
        if (at instanceof HTMLElement) behind.splice(1, 0, getComputedStyle(at).backgroundColor);
      const style = getComputedStyle(node);
      const ink = node instanceof SVGElement ? style.fill : style.color;
      const [dark, bright] = [paint([...behind, ink]), paint(behind)].map(luminance).sort((a, b) => a - b);
      const name = `${node.tagName}.${node.getAttribute("class")}`;
      return [(bright + 0.05) / (dark + 0.05), name, node.textContent.trim().slice(0, 30)];
    });
  },

  // From now on note how many tokens a view shows and which buttons stand in the page, at every change of either.
  watch(view) {
    const seen = { tokens: [], buttons: [] };
    const note = () => {
      seen.tokens.push(view.querySelectorAll('[data-testid="token"]').length);
      const buttons = [...document.querySelectorAll(".jupyter-button")].filter((node) => node.checkVisibility());
      seen.buttons.push(buttons.map((node) => node.textContent.trim()));
    };
    new MutationObserver(note).observe(view, { childList: true, subtree: true });
    new MutationObserver(note).observe(view.getRootNode().host.closest(".jp-OutputArea"), {
      attributes: true, childList: true, subtree: true,
    });
    look.watched = seen;
  },

  // Elements of cell outputs that stick out of the notebook or can be scrolled sideways.
  overflowing() {
    const edge = document.querySelector(".jp-Notebook").getBoundingClientRect().right;
    const found = [];
    const visit = (node) => {
      const box = node.getBoundingClientRect();
      const { overflowX } = getComputedStyle(node);
      const wide = node.clientWidth > 0 && node.scrollWidth > node.clientWidth + 1;
      if ((box.width > 0 && box.right > edge + 1) || (wide && ["auto", "scroll"].includes(overflowX)))
        found.push([node.tagName, String(node.className), box.right - edge, node.scrollWidth - node.clientWidth]);
      // What is cut off on purpose does not stick out.
      if (overflowX !== "visible" && wide) return;
      for (const child of node.shadowRoot?.children ?? node.children) visit(child);
    };
    for (const output of document.querySelectorAll(".jp-OutputArea-output")) visit(output);
    return found;
  },

  // Elements that a text could have become, also inside shadow roots.
  suspicious(root) {
    const tags = ["SCRIPT", "IMG", "TEXTAREA", "IFRAME", "OBJECT", "EMBED"];
    const found = [];
    const visit = (node) => {
      for (const child of node.children) {
        const handlers = [...child.attributes].some((attribute) => attribute.name.startsWith("on"));
        if (tags.includes(child.tagName) || handlers) found.push(child.outerHTML);
        visit(child);
        if (child.shadowRoot) visit(child.shadowRoot);
      }
    };
    visit(root);
    return found;
  },

  // The text of the tokens as it would be copied, signs for what cannot be seen left out.
  text(tokens) {
    return [...tokens.querySelectorAll(".paragraph")].map((paragraph) => paragraph.textContent).join("");
  },

  // Every degree of doubt that a token can be coloured with.
  colourAll(view) {
    const tokens = view.querySelectorAll(".token");
    tokens.forEach((token, i) => token.style.setProperty("--d", String(i / (tokens.length - 1))));
  },

  // Press a button; the milliseconds until a condition on the first view holds.
  timeOfClick([label, condition]) {
    const root = document.querySelector(".cartoolkit-run").shadowRoot;
    const view = {
      phase: () => root.querySelector("[data-testid=status]").dataset.phase,
      count: () => root.querySelectorAll("[data-testid=token]").length,
    };
    const holds = new Function("view", "before", `return ${condition}`);
    const visible = (button) => button.checkVisibility({ visibilityProperty: true });
    const button = [...document.querySelectorAll("button")].find(
      (candidate) => candidate.textContent.trim() === label && visible(candidate),
    );
    return new Promise((resolve, reject) => {
      const before = view.count();
      const start = performance.now();
      button.click();
      const check = () => {
        const passed = performance.now() - start;
        if (holds(view, before)) resolve(passed);
        else if (passed > 10_000) reject(new Error(`not within 10 s of ${label}: ${condition}`));
        else requestAnimationFrame(check);
      };
      check();
    });
  },

  // In the frame in which the first Generate comes to stand at a place, click there on whatever takes a click.
  clickWhenGenerateStandsAt([x, y]) {
    window.look.clicked = false;
    const check = () => {
      const generate = document.querySelector(".cartoolkit-button");
      const { left, right, top, bottom } = generate.getBoundingClientRect();
      const there = left < x && x < right && top < y && y < bottom;
      if (!there || !generate.checkVisibility()) return requestAnimationFrame(check);
      document.elementFromPoint(x, y).click();
      window.look.clicked = true;
    };
    check();
  },

  // Click on a token of the first view; the milliseconds until the side panel shows it.
  timeOfToken(index) {
    const root = document.querySelector(".cartoolkit-run").shadowRoot;
    const shown = () => root.querySelector("[data-testid=candidates] b")?.textContent === `Token ${index}`;
    return new Promise((resolve) => {
      const start = performance.now();
      root.querySelectorAll("[data-testid=token]")[index].click();
      // The second frame begins when the first has been painted.
      const check = () => requestAnimationFrame(() => (shown() ? resolve(performance.now() - start) : check()));
      requestAnimationFrame(check);
    });
  },

  // From now on, the longest time between two frames.
  watchFrames() {
    window.look.longest = 0;
    let last = performance.now();
    const check = (now) => {
      window.look.longest = Math.max(window.look.longest, now - last);
      last = now;
      requestAnimationFrame(check);
    };
    requestAnimationFrame(check);
  },

  // From now on, write down the height of the first view in every frame.
  watchHeights() {
    const host = document.querySelector(".cartoolkit-run");
    window.look.watched = { host, heights: [] };
    const check = () => {
      window.look.watched.heights.push(Math.round(host.getBoundingClientRect().height));
      window.look.watched.frame = requestAnimationFrame(check);
    };
    check();
  },

  whatWasWatched() {
    const { host, heights, frame } = window.look.watched;
    cancelAnimationFrame(frame);
    const hosts = [...document.querySelectorAll(".cartoolkit-run")];
    return {
      views: hosts.length,
      same: hosts[0] === host,
      heights: [...new Set(heights)],
      focused: hosts[0].shadowRoot.activeElement?.dataset.index,
    };
  },
};

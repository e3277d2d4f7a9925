// Built from widgets/src by `npm run build`; do not edit.

// src/dom.ts
var SVG = "http://www.w3.org/2000/svg";
function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}
function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  for (const child of children) if (child !== null) node.append(child);
  return node;
}
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  setAttributes(node, attributes);
  for (const child of children) if (child !== null) node.append(child);
  return node;
}
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// src/format.ts
var NONE = "–";
function prob(value) {
  if (!Number.isFinite(value)) return NONE;
  if (value <= 0) return "0";
  return value < 5e-4 ? "<.001" : value.toFixed(3);
}
function nats(value) {
  if (!Number.isFinite(value)) return value === Number.POSITIVE_INFINITY ? "∞" : NONE;
  return Math.abs(value) < 5e-3 ? "0.00" : value.toFixed(2);
}
function count(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}
function plural(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
function seconds(value) {
  return Number.isFinite(value) ? `${value.toFixed(value < 100 ? 2 : 0)} s` : NONE;
}
function speed(tokensPerSecond2) {
  return `${tokensPerSecond2.toFixed(tokensPerSecond2 < 100 ? 1 : 0)} tok/s`;
}
var SIGNS = { " ": "␣", "\n": "⏎", "	": "⇥", "\r": "␍" };
var UNSEEN = /[\p{Z}\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu;
var STARTS_WITH_MARK = /^\p{M}/u;
function visible(text) {
  const named = text.replace(UNSEEN, (character) => SIGNS[character] ?? codePoint(character));
  return STARTS_WITH_MARK.test(named) ? `◌${named}` : named;
}
function codePoint(character) {
  const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `⟨U+${number}⟩`;
}

// src/draw_bar.ts
function drawSegments(candidates, step) {
  const drawn = candidates.filter((c) => c.processed > 0).sort((a, b) => b.processed - a.processed);
  const apart = drawn.find((c) => c.chosen && candidates[c.rank - 1] !== c);
  const segments = [];
  let sum = 0;
  const add = (label, width, kind) => {
    if (width <= 0) return;
    segments.push({ label, start: sum, width, kind });
    sum += width;
  };
  for (const c of drawn)
    if (c !== apart) add(visible(c.label), c.processed, c.chosen ? "chosen" : "candidate");
  let rest = Number.isFinite(step.processedRestMass) ? Math.max(0, step.processedRestMass) : 0;
  if (apart !== void 0) {
    const before = Math.min(rest, Math.max(0, step.draw - sum - apart.processed / 2));
    add("others", before, "others");
    add(visible(apart.label), apart.processed, "chosen");
    rest -= before;
  }
  if (rest > 1e-6) add("others", rest, "others");
  return segments;
}
function isDrawn(step, greedy) {
  return !greedy && !step.forced && Number.isFinite(step.draw);
}
function drawSentence(step, greedy) {
  if (step.forced) return "put there by the caller, not drawn";
  if (greedy) return "temperature 0: the likeliest token is taken";
  return isDrawn(step, greedy) ? `draw u = ${step.draw.toFixed(4)}` : "no draw was recorded";
}
function drawBar(candidates, step, greedy) {
  const bar = h("div", { class: "draw-bar", "aria-hidden": "true" });
  for (const { label, start, width, kind } of drawSegments(candidates, step)) {
    const title = `${label} ${prob(width)}`;
    const segment = h("span", { class: `segment ${kind}`, title }, width > 0.12 ? label : null);
    segment.style.left = `${100 * start}%`;
    segment.style.width = `${100 * width}%`;
    bar.append(segment);
  }
  if (isDrawn(step, greedy)) {
    const mark = h("span", { class: "draw-mark" });
    mark.style.left = `${100 * step.draw}%`;
    bar.append(mark);
  }
  const ends = h("div", { class: "draw-ends" }, h("span", {}, "0"), h("span", {}, "1"));
  ends.firstChild?.after(h("span", {}, drawSentence(step, greedy)));
  return h("div", { class: "draw" }, bar, ends);
}

// src/candidates.ts
var SHORT = 10;
var STAGE_NAMES = { top_k: "top-k", top_p: "top-p", min_p: "min-p" };
function stageName(stage) {
  return STAGE_NAMES[stage] ?? stage;
}
function shortList(candidates, size = SHORT) {
  if (candidates.length <= size) return [...candidates];
  const first = candidates.slice(0, size);
  const chosen = candidates.find((c) => c.chosen);
  return chosen === void 0 || first.includes(chosen) ? first : [...first.slice(0, -1), chosen];
}
var BRANCHING = ["take", "draw"];
var SidePanel = class {
  node;
  #events;
  #all = false;
  #shown = null;
  #key = "";
  #pointed = false;
  #rendering = false;
  constructor(events, signal) {
    this.#events = events;
    this.node = h("section", { class: "side", "data-testid": "candidates", "aria-label": "selected token" });
    const on = (type, listener) => this.node.addEventListener(type, listener, { signal });
    on("click", (event) => this.#click(event));
    on("pointermove", (event) => this.#point(event.target));
    on("pointerdown", (event) => this.#point(event.target));
    on("pointerleave", () => this.#point(null));
    on("focusout", (event) => this.#leave(event.relatedTarget));
  }
  /**
   * The step that stays although newer ones have come: under a pointer or a focus on its candidates, or what
   * is clicked would not be what was aimed at. Null if the panel is free to go on.
   */
  held(store) {
    const shown = this.#shown;
    if (shown === null || !shown.follows || !shown.offers || shown.run !== store.run) return null;
    const { action } = this.#focused() ?? { action: "" };
    return this.#pointed || BRANCHING.includes(action) ? shown.index : null;
  }
  show(store, index, mode) {
    const before = this.#shown;
    if (before?.run !== store.run) this.#pointed = false;
    this.#shown = { store, run: store.run, index, ...mode };
    const flags = index === null ? 0 : store.numbers.flags.at(index);
    const waits = index !== null && index < store.count - 1;
    const key = [store.run, index, mode.follows, mode.offers, waits, store.live, flags, this.#all].join();
    if (key === this.#key) return;
    this.#key = key;
    const focused = this.#focused();
    this.#rendering = true;
    this.node.replaceChildren(...this.#content(this.#shown));
    this.#rendering = false;
    if (focused !== null) this.#refocus(focused, before?.run === store.run && before.index === index);
  }
  #content({ store, index, follows, offers }) {
    if (index === null)
      return [
        h(
          "p",
          { class: "quiet" },
          "The token that you select is taken apart here: what else was likely, what the sampler removed, and where the draw fell."
        )
      ];
    const step = store.step(index);
    const candidates = store.candidates(index);
    const head = [this.#title(step, store, follows), figures(step)];
    const greedy = store.info?.params["temperature"] === 0;
    const again = offers && (!greedy || step.forced) ? drawAgain(step) : null;
    if (candidates.length === 0)
      return [
        ...head,
        h(
          "p",
          { class: "quiet" },
          "This run was recorded without inspection: only the tokens and their times are known."
        ),
        h("div", { class: "more" }, again)
      ];
    const rows = this.#all ? candidates : shortList(candidates);
    const others = othersOf(store, step, candidates, rows);
    const table = candidateTable(rows, candidates, step, { greedy, others, offers });
    const hint = offers ? h("span", { class: "hint" }, "click one to go on with it") : null;
    const more = h("div", { class: "more" }, this.#toggle(candidates.length), hint, again);
    return [...head, h("div", { class: "rows" }, table, more), drawBar(candidates, step, greedy)];
  }
  #title(step, store, follows) {
    const label = visible(step.label || step.text);
    const states = [
      step.special ? "control token" : null,
      step.incomplete ? "part of a character" : null,
      step.forced ? "forced" : null,
      step.taken ? "taken over" : null,
      step.kept ? null : "rolled back"
    ].filter((state) => state !== null);
    const { live } = store;
    const rests = live && step.index < store.count - 1;
    const follow = follows ? h(
      "span",
      { class: "follows" },
      rests ? "waiting here" : live ? "following the newest" : "the last token"
    ) : h(
      "button",
      { type: "button", class: "link", "data-action": "follow" },
      live ? "follow the newest" : "back to the last"
    );
    return h(
      "div",
      { class: "side-title" },
      h("b", {}, `Token ${step.index}`),
      h("bdi", { class: "label", title: label }, label),
      ...states.map((state) => h("span", { class: "state" }, state)),
      follow
    );
  }
  #toggle(total) {
    if (total <= SHORT) return null;
    const words = this.#all ? `show the first ${SHORT}` : `show all ${total}`;
    return h(
      "button",
      { type: "button", class: "link", "data-action": "all", "aria-expanded": String(this.#all) },
      words
    );
  }
  #click(event) {
    const target = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    const shown = this.#shown;
    if (target === null || shown === null) return;
    const { action, token } = target.dataset;
    if (action === "follow") this.#events.onFollow();
    else if (action === "all") {
      this.#all = !this.#all;
      this.show(shown.store, shown.index, shown);
    } else if (shown.index !== null)
      this.#events.onBranch(shown.index, token === void 0 ? null : Number(token));
  }
  #point(target) {
    const pointed = target instanceof Element && target.closest(".rows") !== null;
    if (pointed === this.#pointed) return;
    this.#pointed = pointed;
    if (!pointed) this.#events.onRelease();
  }
  #leave(to) {
    const stays = to instanceof Node && this.node.contains(to);
    if (!stays && !this.#rendering) this.#events.onRelease();
  }
  #focused() {
    const root = this.node.getRootNode();
    const active = root.activeElement;
    if (!(active instanceof HTMLElement) || !this.node.contains(active)) return null;
    return { action: active.dataset["action"] ?? "", token: active.dataset["token"] };
  }
  /** Give the focus back to what had it; where that is gone, to the panel, so that Tab goes on from here. */
  #refocus({ action, token }, same) {
    const found = [...this.node.querySelectorAll("[data-action]")].find(
      (node) => node.dataset["action"] === action && node.dataset["token"] === token
    );
    const goal = same || !BRANCHING.includes(action) ? found : void 0;
    if (goal === void 0) this.node.tabIndex = -1;
    (goal ?? this.node).focus({ preventScroll: true });
  }
};
function drawAgain(step) {
  return h(
    "button",
    {
      type: "button",
      class: "link",
      "data-action": "draw",
      "aria-label": `draw token ${step.index} again and go on from there`,
      title: "Go on from here with a new draw, by a new seed"
    },
    "draw again from here"
  );
}
function figures(step) {
  const rows = [
    ["raw", prob(step.prob), "raw probability of this token, before the sampler"],
    ["sampled", prob(step.processedProb), "probability that this token was drawn with"],
    ["rank", step.rank > 0 ? count(step.rank) : "–", "place in the raw distribution"],
    ["max", prob(step.maxProb), "raw probability of the likeliest token"],
    ["margin", prob(step.margin), "raw probability of the likeliest less that of the second"],
    ["id", String(step.tokenId), "the token's number in the vocabulary"],
    ["entropy", `${nats(step.entropy)} nats`, "of the raw distribution"],
    ["surprisal", `${nats(-step.logprob)} nats`, "of this token, raw"],
    [
      "elapsed",
      seconds(step.elapsed),
      step.taken ? "decoded in the run that it was taken over from" : "from the request to this token"
    ]
  ];
  const known = Number.isNaN(step.logprob) ? rows.filter(([name]) => name === "id" || name === "elapsed") : rows;
  const list = h("dl", { class: "figures" });
  for (const [name, value, title] of known)
    list.append(h("div", { title }, h("dt", {}, name), h("dd", {}, value)));
  return list;
}
function othersOf(store, step, all, rows) {
  const size = store.info?.vocab_size;
  const count2 = size === void 0 ? null : size - rows.length;
  if (count2 === 0) return { count: count2, raw: 0, processed: 0 };
  const hidden = all.filter((candidate) => !rows.includes(candidate));
  const sum = (mass, of) => hidden.reduce((total, candidate) => total + of(candidate), mass);
  return {
    count: count2,
    raw: sum(step.restMass, (candidate) => candidate.raw),
    processed: sum(step.processedRestMass, (candidate) => candidate.processed)
  };
}
function candidateTable(rows, all, step, { greedy, others, offers }) {
  const full = Math.max(
    ...all.map((c) => Math.max(c.raw, c.processed)),
    others.raw || 0,
    others.processed || 0
  );
  const name = (c) => offers && !c.chosen ? takeButton(c, step) : nameOf(c);
  const body = h("tbody", {}, ...rows.map((c) => candidateRow(c, full, name(c), fate(c, step, greedy))));
  body.append(othersRow(others, full));
  const head = h("thead", {}, headRow());
  const columns = ["rank", "name", "bars", "raw", "processed", "fate"].map(
    (name2) => h("col", { class: name2 })
  );
  return h("div", { class: "table" }, h("table", {}, h("colgroup", {}, ...columns), head, body));
}
function headRow() {
  const th = (text, name) => h("th", { scope: "col", class: name }, text);
  return h(
    "tr",
    {},
    th("", "rank"),
    th("candidate", "name"),
    th("", "bars"),
    th("raw", "number key raw"),
    th("sampled", "number key processed"),
    th("", "fate")
  );
}
function nameOf({ label, id }) {
  const shown = visible(label);
  return h("bdi", { class: "label", title: `${shown} · id ${id}` }, shown);
}
function takeButton({ label, id }, step) {
  const shown = visible(label);
  return h(
    "button",
    {
      type: "button",
      class: "label take",
      dir: "auto",
      "data-action": "take",
      "data-token": id,
      "aria-label": `go on from token ${step.index} with '${shown.replaceAll("␣", " ")}' instead`,
      title: `${shown} · id ${id} · click to go on with it from here`
    },
    shown
  );
}
function candidateRow(candidate, full, label, end) {
  const { chosen, removedBy } = candidate;
  const name = `${chosen ? "chosen" : ""} ${removedBy ? "removed" : ""}`.trim();
  return h(
    "tr",
    { class: name, "data-testid": "candidate", "aria-current": chosen ? "true" : null },
    h("td", { class: "rank" }, count(candidate.rank)),
    h("td", { class: "name" }, label),
    bars(candidate.raw, candidate.processed, full),
    h("td", { class: "number" }, prob(candidate.raw)),
    h("td", { class: "number" }, candidate.processed > 0 ? prob(candidate.processed) : "–"),
    h("td", { class: "fate" }, end)
  );
}
function fate({ chosen, removedBy }, step, greedy) {
  if (chosen && step.forced) return h("span", {}, "forced");
  if (chosen) return h("span", {}, isDrawn(step, greedy) ? "drawn" : "taken");
  return removedBy === "" ? null : h("span", { class: "stage" }, stageName(removedBy));
}
function othersRow({ count: count2, raw, processed }, full) {
  const label = count2 === null ? "all others" : plural(count2, "other");
  return h(
    "tr",
    { class: "others" },
    h("td", { class: "name", colspan: 2 }, label),
    bars(raw, processed, full),
    h("td", { class: "number" }, prob(raw)),
    h("td", { class: "number" }, processed > 1e-6 ? prob(processed) : "–"),
    h("td", { class: "fate" })
  );
}
function bars(raw, processed, full) {
  const bar = (kind, value) => {
    const node = h("i", { class: kind });
    node.style.width = `${value > 0 ? Math.min(100, 100 * value / full) : 0}%`;
    return node;
  };
  return h("td", { class: "bars", "aria-hidden": "true" }, bar("raw", raw), bar("processed", processed));
}

// src/checks.ts
var ProtocolError = class extends Error {
};
function has(data, name) {
  return Object.hasOwn(data, name) && data[name] !== void 0;
}
function asRecord(value, where) {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected an object`);
}
function asList(value, where) {
  if (Array.isArray(value)) return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected a list`);
}
function asString(value, where) {
  if (typeof value === "string") return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected text`);
}
function asStrings(value, where) {
  return asList(value, where).map((entry, i) => asString(entry, `${where}.${i}`));
}
function asCount(value, where) {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected a whole number`);
}
function asNumberOrNull(value, where) {
  if (value === null) return null;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  throw new ProtocolError(`${where} is ${show(value)}, expected a number or null`);
}
function show(value) {
  return String(JSON.stringify(value) ?? typeof value).slice(0, 60);
}

// src/protocol.ts
var PROTOCOL_VERSION = 1;
var STAGES = ["", "bias", "greedy", "top_k", "top_p", "min_p"];
var FLAGS = { incomplete: 1, special: 2, forced: 4, kept: 8 };
var STEP_COLUMNS = {
  token_id: Int32Array,
  logprob: Float32Array,
  rank: Int32Array,
  processed_logprob: Float32Array,
  max_prob: Float32Array,
  entropy: Float32Array,
  varentropy: Float32Array,
  margin: Float32Array,
  rest_mass: Float32Array,
  processed_rest_mass: Float32Array,
  draw: Float64Array,
  elapsed: Float64Array,
  flags: Uint8Array
};
var CANDIDATE_COLUMNS = {
  candidate_id: Int32Array,
  candidate_logprob: Float32Array,
  candidate_processed_logprob: Float32Array,
  candidate_removed_by: Uint8Array
};
var COLUMNS = { ...STEP_COLUMNS, ...CANDIDATE_COLUMNS };
function ready(run, steps) {
  return { type: "ready", v: PROTOCOL_VERSION, run, steps };
}
function branch(run, step, token) {
  return { type: "branch", v: PROTOCOL_VERSION, run, step, token };
}
function parseUpdate(content, buffers) {
  const data = asRecord(content, "message");
  if (data["type"] !== "update") throw new ProtocolError(`unknown kind of message ${show(data["type"])}`);
  if (data["v"] !== PROTOCOL_VERSION)
    throw new ProtocolError(`protocol version ${show(data["v"])}, expected ${PROTOCOL_VERSION}`);
  const update = {
    type: "update",
    v: PROTOCOL_VERSION,
    run: asString(data["run"], "run"),
    seq: asCount(data["seq"], "seq")
  };
  if (has(data, "info")) update.info = parseInfo(data["info"]);
  if (has(data, "state")) update.state = asString(data["state"], "state");
  if (has(data, "prefill")) update.prefill = parsePrefill(data["prefill"]);
  if (has(data, "steps")) update.steps = parseSteps(data["steps"], buffers);
  if (has(data, "notices")) update.notices = asStrings(data["notices"], "notices");
  if (has(data, "finish")) update.finish = parseFinish(data["finish"]);
  if (has(data, "failure")) update.failure = parseFailure(data["failure"]);
  return update;
}
function parseInfo(value) {
  const info = asRecord(value, "info");
  const parsed = {
    model: asString(info["model"], "info.model"),
    engine: asString(info["engine"], "info.engine"),
    device: asString(info["device"], "info.device"),
    dtype: asString(info["dtype"], "info.dtype"),
    context_length: asCount(info["context_length"], "info.context_length"),
    prompt: asString(info["prompt"], "info.prompt"),
    params: asRecord(info["params"], "info.params")
  };
  if (has(info, "vocab_size")) parsed.vocab_size = asCount(info["vocab_size"], "info.vocab_size");
  if (has(info, "branch")) parsed.branch = parseBranchPoint(info["branch"]);
  return parsed;
}
function parseBranchPoint(value) {
  const point = asRecord(value, "info.branch");
  return {
    at: asCount(point["at"], "info.branch.at"),
    text: asString(point["text"], "info.branch.text")
  };
}
function parsePrefill(value) {
  const prefill = asRecord(value, "prefill");
  return {
    done: asCount(prefill["done"], "prefill.done"),
    total: asCount(prefill["total"], "prefill.total"),
    reused: asCount(prefill["reused"], "prefill.reused")
  };
}
function parseFinish(value) {
  const finish = asRecord(value, "finish");
  return {
    stop_reason: asString(finish["stop_reason"], "finish.stop_reason"),
    stop_detail: asString(finish["stop_detail"], "finish.stop_detail"),
    completion_tokens: asCount(finish["completion_tokens"], "finish.completion_tokens"),
    ttft_ms: asNumberOrNull(finish["ttft_ms"], "finish.ttft_ms"),
    tokens_per_second: asNumberOrNull(finish["tokens_per_second"], "finish.tokens_per_second")
  };
}
function parseFailure(value) {
  const failure = asRecord(value, "failure");
  return {
    message: asString(failure["message"], "failure.message"),
    hint: asString(failure["hint"], "failure.hint")
  };
}
function parseSteps(value, buffers) {
  const steps = asRecord(value, "steps");
  const count2 = asCount(steps["count"], "steps.count");
  const width = asCount(steps["width"], "steps.width");
  const candidateTexts = asList(steps["candidate_texts"], "steps.candidate_texts").map(
    (texts, i) => asStrings(texts, `steps.candidate_texts.${i}`)
  );
  const block = {
    first: asCount(steps["first"], "steps.first"),
    count: count2,
    width,
    texts: asStrings(steps["texts"], "steps.texts"),
    labels: asStrings(steps["labels"], "steps.labels"),
    candidate_texts: candidateTexts,
    columns: parseColumns(asStrings(steps["columns"], "steps.columns"), buffers, count2, width)
  };
  for (const name of ["texts", "labels", "candidate_texts"])
    if (block[name].length !== count2)
      throw new ProtocolError(`steps.${name} has ${block[name].length} entries, expected ${count2}`);
  if (candidateTexts.some((texts) => texts.length > width))
    throw new ProtocolError(`steps.candidate_texts has a row longer than ${width}`);
  return block;
}
function parseColumns(names, buffers, count2, width) {
  const views = asList(buffers, "buffers");
  if (views.length !== names.length)
    throw new ProtocolError(`${views.length} buffers for ${names.length} columns`);
  const columns = {};
  names.forEach((name, i) => {
    if (!has(COLUMNS, name)) throw new ProtocolError(`unknown column ${show(name)}`);
    if (has(columns, name)) throw new ProtocolError(`column ${name} twice`);
    const length = has(CANDIDATE_COLUMNS, name) ? count2 * width : count2;
    columns[name] = copyColumn(views[i], COLUMNS[name], length, name);
  });
  const missing = Object.keys(COLUMNS).find((name) => !has(columns, name));
  if (missing !== void 0) throw new ProtocolError(`column ${missing} is missing`);
  return columns;
}
function copyColumn(view, kind, length, name) {
  const bytes = ArrayBuffer.isView(view) ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : view instanceof ArrayBuffer ? new Uint8Array(view) : null;
  if (bytes === null) throw new ProtocolError(`column ${name} is no buffer`);
  const expected = length * kind.BYTES_PER_ELEMENT;
  if (bytes.byteLength !== expected)
    throw new ProtocolError(`column ${name} has ${bytes.byteLength} bytes, expected ${expected}`);
  return new kind(bytes.slice().buffer);
}

// src/store.ts
var Series = class {
  #values = new Float64Array(64);
  #length = 0;
  get length() {
    return this.#length;
  }
  /** The values so far; valid until the next `append`. */
  get values() {
    return this.#values.subarray(0, this.#length);
  }
  at(i) {
    return i < this.#length ? this.#values[i] ?? Number.NaN : Number.NaN;
  }
  set(i, value) {
    if (i < this.#length) this.#values[i] = value;
  }
  append(values, from) {
    const length = this.#length + values.length - from;
    if (length > this.#values.length) {
      const room = new Float64Array(Math.max(length, 2 * this.#values.length));
      room.set(this.#values);
      this.#values = room;
    }
    for (let i = from; i < values.length; i++)
      this.#values[this.#length + i - from] = values[i] ?? Number.NaN;
    this.#length = length;
  }
};
function emptyNumbers() {
  return Object.fromEntries(Object.keys(STEP_COLUMNS).map((name) => [name, new Series()]));
}
var RunStore = class {
  run = null;
  info = null;
  state = "";
  prefill = null;
  notices = [];
  finish = null;
  failure = null;
  numbers = emptyNumbers();
  #texts = [];
  #labels = [];
  #rows = [];
  #seq = -1;
  get count() {
    return this.#texts.length;
  }
  /** Whether tokens may still come. */
  get live() {
    return this.run !== null && this.finish === null && this.failure === null && this.state !== "finished";
  }
  /** Whether the first token came with its distribution (`inspect`). */
  get inspected() {
    return !Number.isNaN(this.numbers.max_prob.at(0));
  }
  /** Steps before this one were taken over from another run; 0 for a run of its own. */
  get branchedAt() {
    return this.info?.branch?.at ?? 0;
  }
  text(i) {
    return this.#texts[i] ?? "";
  }
  /** Take over what is new in an update; applying one twice changes nothing. */
  apply(update) {
    const change = { reset: false, gap: false, from: this.count, reflagged: [] };
    if (update.run !== this.run) {
      if (update.info === void 0) return { ...change, gap: true };
      this.#clear(update.run);
      change.reset = true;
      change.from = 0;
    }
    if (update.seq >= this.#seq) this.#takeParts(update);
    if (update.steps !== void 0) this.#takeSteps(update.steps, change);
    return change;
  }
  step(i) {
    const at = (name) => this.numbers[name].at(i);
    const flags = at("flags");
    return {
      index: i,
      text: this.text(i),
      label: this.#labels[i] ?? "",
      tokenId: at("token_id"),
      logprob: at("logprob"),
      prob: Math.exp(at("logprob")),
      rank: at("rank"),
      processedProb: Math.exp(at("processed_logprob")),
      maxProb: at("max_prob"),
      entropy: at("entropy"),
      margin: at("margin"),
      restMass: at("rest_mass"),
      processedRestMass: at("processed_rest_mass"),
      draw: at("draw"),
      elapsed: at("elapsed"),
      incomplete: (flags & FLAGS.incomplete) !== 0,
      special: (flags & FLAGS.special) !== 0,
      forced: (flags & FLAGS.forced) !== 0,
      kept: (flags & FLAGS.kept) !== 0,
      taken: i < this.branchedAt,
      branched: i > 0 && i === this.branchedAt
    };
  }
  /** The recorded alternatives of a step, likeliest (raw) first; empty if it was not inspected. */
  candidates(i) {
    const place = this.#rows[i];
    if (place === void 0) return [];
    const chosen = this.numbers.token_id.at(i);
    const found = [];
    for (let k = 0; k < place.block.width; k++) {
      const candidate = readCandidate(place.block, place.row, k, chosen);
      if (candidate !== null) found.push(candidate);
    }
    const taken = found.find((candidate) => candidate.chosen);
    if (taken !== void 0) taken.rank = this.numbers.rank.at(i);
    return found;
  }
  #clear(run) {
    this.run = run;
    this.info = null;
    this.state = "";
    this.prefill = null;
    this.notices = [];
    this.finish = null;
    this.failure = null;
    this.numbers = emptyNumbers();
    this.#texts = [];
    this.#labels = [];
    this.#rows = [];
    this.#seq = -1;
  }
  #takeParts(update) {
    this.#seq = update.seq;
    if (update.info !== void 0) this.info = update.info;
    if (update.state !== void 0) this.state = update.state;
    if (update.prefill !== void 0) this.prefill = update.prefill;
    if (update.notices !== void 0) this.notices = update.notices;
    if (update.finish !== void 0) this.finish = update.finish;
    if (update.failure !== void 0) this.failure = update.failure;
  }
  #takeSteps(block, change) {
    const have = this.count;
    if (block.first > have) {
      change.gap = true;
      return;
    }
    const skip = Math.min(have - block.first, block.count);
    change.reflagged = this.#takeFlags(block, skip);
    for (const name of Object.keys(STEP_COLUMNS))
      this.numbers[name].append(block.columns[name], skip);
    for (let row = skip; row < block.count; row++) {
      this.#texts.push(block.texts[row] ?? "");
      this.#labels.push(block.labels[row] ?? "");
      this.#rows.push({ block, row });
    }
  }
  /** A replayed step is the one that is known, except that it may have been rolled back since. */
  #takeFlags(block, rows) {
    const changed = [];
    for (let row = 0; row < rows; row++) {
      const i = block.first + row;
      const flags = block.columns.flags[row] ?? 0;
      if (flags === this.numbers.flags.at(i)) continue;
      this.numbers.flags.set(i, flags);
      changed.push(i);
    }
    return changed;
  }
};
function readCandidate(block, row, k, chosen) {
  const columns = block.columns;
  const at = row * block.width + k;
  const id = columns.candidate_id[at] ?? -1;
  if (id < 0) return null;
  return {
    id,
    label: block.candidate_texts[row]?.[k] ?? "",
    rank: k + 1,
    raw: Math.exp(columns.candidate_logprob[at] ?? Number.NaN),
    processed: Math.exp(columns.candidate_processed_logprob[at] ?? Number.NaN),
    removedBy: STAGES[columns.candidate_removed_by[at] ?? 0] ?? "unknown stage",
    chosen: id === chosen
  };
}

// src/sync.ts
function onTrait(model, name, listener, signal) {
  const event = `change:${name}`;
  model.on(event, listener);
  signal.addEventListener("abort", () => model.off(event, listener), { once: true });
}
function onMessage(model, listener, signal) {
  model.on("msg:custom", listener);
  signal.addEventListener("abort", () => model.off("msg:custom", listener), { once: true });
}
function attempt(action) {
  try {
    action();
  } catch (error) {
    console.warn("cartoolkit: the kernel could not be reached", error);
  }
}
function send(model, message) {
  attempt(() => model.send(message));
}
var TraitWriter = class {
  #model;
  #pending = {};
  #timer;
  constructor(model, signal) {
    this.#model = model;
    signal.addEventListener("abort", () => this.flush(), { once: true });
  }
  /** Write after `delay` ms without another write. */
  later(name, value, delay) {
    this.#pending[name] = value;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), delay);
  }
  now(name, value) {
    this.#pending[name] = value;
    this.flush();
  }
  /** Whether a write is still to come. */
  waiting(name) {
    return Object.hasOwn(this.#pending, name);
  }
  flush() {
    clearTimeout(this.#timer);
    const entries = Object.entries(this.#pending);
    this.#pending = {};
    if (entries.length === 0) return;
    attempt(() => {
      for (const [name, value] of entries) this.#model.set(name, value);
      this.#model.save_changes();
    });
  }
};

// src/feed.ts
var ASK_AGAIN = 500;
var REST = 2;
var FRAME = 16;
var Feed = class {
  store = new RunStore();
  #model;
  #events;
  #frame = 0;
  #timer;
  #flushed = { end: 0, cost: 0 };
  #reset = false;
  #changed = [];
  #asked = { what: "", when: Number.NEGATIVE_INFINITY };
  #heard = null;
  constructor(model, events, signal) {
    this.#model = model;
    this.#events = events;
    signal.addEventListener("abort", () => this.#stop(), { once: true });
  }
  /** Whether the kernel was heard of the run shown, as opposed to one that was saved with the page. */
  get attended() {
    return this.#heard !== null && this.#heard === this.store.run;
  }
  /** Show what is there, then listen; the caller says that it is `ready` once it listens itself. */
  start(signal) {
    const snapshot = this.#model.get("snapshot");
    if (typeof snapshot === "object" && snapshot !== null)
      this.#receive(snapshot, snapshot.buffers ?? []);
    this.#flush();
    onMessage(this.#model, (content, buffers) => this.#hear(content, buffers), signal);
  }
  /** Say what is known, so that the kernel sends the rest. */
  ready() {
    send(this.#model, ready(this.store.run, this.store.count));
  }
  #stop() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
  }
  #hear(content, buffers) {
    const run = this.#receive(content, buffers);
    if (run !== null) this.#heard = run;
  }
  /** Take an update over; the run that it is about, or null if it cannot be read. */
  #receive(content, buffers) {
    let update;
    try {
      update = parseUpdate(content, buffers);
    } catch (error) {
      console.warn("cartoolkit: a message was ignored:", error instanceof Error ? error.message : error);
      return null;
    }
    const before = this.store.run;
    const change = this.store.apply(update);
    if (change.reset) {
      this.#reset = true;
      this.#changed = [];
      this.#events.onBegin(update, before);
    }
    this.#changed.push(...change.reflagged);
    if (change.gap) this.#ask(update.run);
    this.#schedule();
    return update.run;
  }
  /** Ask for what is missing, but not once for each message that shows it. */
  #ask(run) {
    const what = `${run} ${this.store.run} ${this.store.count}`;
    if (what === this.#asked.what && performance.now() - this.#asked.when < ASK_AGAIN) return;
    this.#asked = { what, when: performance.now() };
    this.ready();
  }
  /** One flush a frame; where one takes long, as with thousands of tokens in one paragraph, fewer. */
  #schedule() {
    if (this.#frame !== 0 || this.#timer !== void 0) return;
    const rest = this.#flushed.end + REST * this.#flushed.cost - performance.now();
    const request = () => {
      this.#timer = void 0;
      this.#frame = requestAnimationFrame(() => this.#flush());
    };
    if (rest > FRAME) this.#timer = setTimeout(request, rest);
    else request();
  }
  #flush() {
    this.#frame = 0;
    const start = performance.now();
    const news = { reset: this.#reset, changed: this.#changed };
    this.#reset = false;
    this.#changed = [];
    this.#events.onFrame(news);
    const end = performance.now();
    this.#flushed = { end, cost: end - start };
  }
};

// src/metrics.ts
var FULL_ENTROPY = 5;
var FULL_SURPRISAL = 6;
var METRICS = {
  max_prob: {
    title: "max probability (raw)",
    sure: "1",
    unsure: "0",
    value: (step) => step.maxProb,
    doubt: (step) => 1 - step.maxProb,
    format: prob
  },
  prob: {
    title: "probability of the chosen token (raw)",
    sure: "1",
    unsure: "0",
    value: (step) => Math.exp(step.logprob),
    doubt: (step) => 1 - Math.exp(step.logprob),
    format: prob
  },
  entropy: {
    title: "entropy (nats)",
    sure: "0",
    unsure: `≥ ${FULL_ENTROPY} nats`,
    value: (step) => step.entropy,
    doubt: (step) => step.entropy / FULL_ENTROPY,
    format: nats
  },
  surprisal: {
    title: "surprisal (nats)",
    sure: "0",
    unsure: `≥ ${FULL_SURPRISAL} nats`,
    value: (step) => -step.logprob,
    doubt: (step) => -step.logprob / FULL_SURPRISAL,
    format: nats
  }
};
function isMetric(value) {
  return typeof value === "string" && Object.hasOwn(METRICS, value);
}
function doubt(metric, step) {
  const value = METRICS[metric].doubt(step);
  return Number.isNaN(value) ? 0 : Math.min(1, Math.max(0, value));
}
function lowRuns(values, threshold, window = 3) {
  const runs = [];
  let start = 0;
  for (let i = 0; i <= values.length; i++) {
    if (i < values.length && (values[i] ?? Number.NaN) < threshold) continue;
    if (i - start >= window) runs.push([start, i]);
    start = i + 1;
  }
  return runs;
}
function countBelow(values, threshold) {
  let below = 0;
  for (let i = 0; i < values.length; i++) if ((values[i] ?? Number.NaN) < threshold) below++;
  return below;
}
function mean(values, counts = () => true) {
  let sum = 0;
  let n = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value) || !counts(i)) continue;
    sum += value;
    n++;
  }
  return n > 0 ? sum / n : Number.NaN;
}
function tokensPerSecond(elapsed) {
  const times = Array.from(elapsed).filter((time) => !Number.isNaN(time));
  const n = times.length;
  const span = n < 2 ? 0 : (times[n - 1] ?? 0) - (times[0] ?? 0);
  return span > 0 ? (n - 1) / span : Number.NaN;
}

// src/legend.ts
var Legend = class {
  node;
  #select = h("select", { "aria-label": "colour the text by" });
  #sure = h("span", {});
  #unsure = h("span", {});
  #low = h("span", { class: "mark low" });
  constructor(onMetric, signal) {
    for (const [value, { title }] of Object.entries(METRICS))
      this.#select.append(h("option", { value }, title));
    this.#select.addEventListener(
      "change",
      () => {
        if (isMetric(this.#select.value)) onMetric(this.#select.value);
      },
      { signal }
    );
    this.node = h(
      "div",
      { class: "legend" },
      h("label", {}, "colour by", this.#select),
      h("span", { class: "scale" }, this.#sure, h("span", { class: "ramp" }), this.#unsure),
      this.#low,
      h("span", { class: "mark alternative" }, "not first choice")
    );
  }
  update(metric, threshold) {
    if (this.#select.value !== metric) this.#select.value = metric;
    setText(this.#sure, `sure ${METRICS[metric].sure}`);
    setText(this.#unsure, `${METRICS[metric].unsure} unsure`);
    setText(this.#low, `below ${threshold.toFixed(2)}`);
  }
};

// src/plot_geometry.ts
var MARGIN = { left: 34, right: 62, top: 8, bottom: 20 };
function frameOf(width, height) {
  return {
    left: MARGIN.left,
    right: Math.max(MARGIN.left + 40, width - MARGIN.right),
    top: MARGIN.top,
    bottom: Math.max(MARGIN.top + 40, height - MARGIN.bottom)
  };
}
function domainOf(count2, live) {
  if (!live) return Math.max(count2, 2);
  let room = 32;
  while (room < count2) room *= room % 3 === 0 ? 4 / 3 : 3 / 2;
  return room;
}
function stride({ frame, domain }) {
  return (frame.right - frame.left) / domain;
}
function xOf(index, scale) {
  return scale.frame.left + (index + 0.5) * stride(scale);
}
function yOf(value, { top, bottom }) {
  return bottom - value * (bottom - top);
}
function indexAt(x, scale, count2) {
  if (count2 === 0) return null;
  return Math.min(count2 - 1, Math.max(0, Math.floor((x - scale.frame.left) / stride(scale))));
}
function valueAt(y, { top, bottom }) {
  return clampValue((bottom - y) / (bottom - top));
}
function clampValue(value) {
  return Math.round(Math.min(1, Math.max(0, value)) * 100) / 100;
}
function curvePath(values, scale) {
  const perPixel = 1 / stride(scale);
  return perPixel > 1.5 ? densePath(values, scale, perPixel) : sparsePath(values, scale);
}
function sparsePath(values, scale) {
  let path = "";
  let pen = false;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (Number.isNaN(value)) {
      pen = false;
      continue;
    }
    path += `${pen ? "L" : "M"}${px(xOf(i, scale))} ${px(yOf(value, scale.frame))}`;
    pen = true;
  }
  return path;
}
function densePath(values, scale, perPixel) {
  let path = "";
  for (let start = 0; start < values.length; start += perPixel) {
    const end = Math.min(values.length, Math.floor(start + perPixel));
    let least = Number.POSITIVE_INFINITY;
    let greatest = Number.NEGATIVE_INFINITY;
    for (let i = Math.floor(start); i < end; i++) {
      const value = values[i] ?? Number.NaN;
      if (value < least) least = value;
      if (value > greatest) greatest = value;
    }
    if (least > greatest) continue;
    const x = px(xOf(start, scale));
    path += `${path === "" ? "M" : "L"}${x} ${px(yOf(greatest, scale.frame))}L${x} ${px(yOf(least, scale.frame))}`;
  }
  return path;
}
function dotsPath(values, scale, wanted) {
  let path = "";
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN;
    if (!Number.isNaN(value) && wanted(value))
      path += `M${px(xOf(i, scale))} ${px(yOf(value, scale.frame))}h0`;
  }
  return path;
}
function shadePath(runs, scale) {
  const { left, top, bottom } = scale.frame;
  const step = stride(scale);
  return runs.map(([first, end]) => {
    const x = left + first * step;
    return `M${px(x)} ${px(top)}h${px(Math.max(1, (end - first) * step))}V${px(bottom)}H${px(x)}z`;
  }).join("");
}
function ticks(scale, gap = 56) {
  const least = gap / stride(scale);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= least) ?? 10 * power);
  const found = [];
  for (let i = 0; i < scale.domain; i += step) found.push(i);
  return found;
}
function px(value) {
  return String(Math.round(value * 10) / 10);
}

// src/threshold.ts
var SLACK = 3;
var STEPS = {
  ArrowUp: 0.01,
  ArrowRight: 0.01,
  ArrowDown: -0.01,
  ArrowLeft: -0.01,
  PageUp: 0.1,
  PageDown: -0.1
};
var ThresholdLine = class {
  node;
  value = 0.4;
  #events;
  #line = svg("line", { class: "line" });
  #grip = svg("rect", { class: "grip", rx: 4, width: 58, height: 30 });
  #word = svg("text", { "text-anchor": "middle" }, "threshold");
  #number = svg("text", { class: "number", "text-anchor": "middle" });
  #hit = svg("rect", { class: "hit", height: 13 });
  #pressedAt = null;
  #moved = false;
  constructor(events, signal) {
    this.#events = events;
    this.node = svg(
      "g",
      {
        class: "threshold",
        "data-testid": "threshold",
        role: "slider",
        tabindex: 0,
        "aria-label": "threshold on the raw max probability",
        "aria-orientation": "vertical",
        "aria-valuemin": 0,
        "aria-valuemax": 1
      },
      this.#line,
      this.#hit,
      this.#grip,
      this.#word,
      this.#number
    );
    const on = (type, listener) => this.node.addEventListener(type, listener, { signal });
    on("pointerdown", (event) => this.#press(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#release(event));
    on("pointercancel", (event) => this.#release(event));
    on("keydown", (event) => this.#key(event));
  }
  get dragging() {
    return this.#pressedAt !== null && this.#moved;
  }
  /** Whether the hand has just let go: the click that follows a drag selects nothing. */
  get justDragged() {
    return this.#moved;
  }
  draw(width) {
    const { left, right, top, bottom } = this.#events.frame();
    const y = yOf(this.value, { left, right, top, bottom });
    const middle = Math.min(bottom - 7, Math.max(top + 11, y));
    const x = (right + 4 + width) / 2;
    setAttributes(this.#line, { x1: left, x2: right + 4, y1: y, y2: y });
    setAttributes(this.#hit, { x: left, y: y - 6.5, width: right - left });
    setAttributes(this.#grip, { x: x - 29, y: middle - 15 });
    setAttributes(this.#word, { x, y: middle - 2.5 });
    setAttributes(this.#number, { x, y: middle + 10.5 });
    setText(this.#number, this.value.toFixed(2));
    setAttributes(this.node, { "aria-valuenow": this.value, "aria-valuetext": this.value.toFixed(2) });
  }
  #press(event) {
    if (event.button !== 0) return;
    this.#pressedAt = event.clientY;
    this.#moved = false;
    this.node.setPointerCapture?.(event.pointerId);
  }
  #move(event) {
    if (this.#pressedAt === null) return;
    if (!this.#moved && Math.abs(event.clientY - this.#pressedAt) < SLACK) return;
    this.#moved = true;
    this.#set(valueAt(this.#events.toFrame(event), this.#events.frame()), false);
  }
  #release(event) {
    if (this.#pressedAt === null) return;
    this.#pressedAt = null;
    this.node.releasePointerCapture?.(event.pointerId);
    if (!this.#moved) return;
    this.#events.onThreshold(this.value, true);
    setTimeout(() => {
      this.#moved = false;
    });
  }
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = STEPS[event.key];
    const value = event.key === "Home" ? 0 : event.key === "End" ? 1 : step === void 0 ? null : this.value + step;
    if (value === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#set(clampValue(value), false);
  }
  #set(value, done) {
    if (value !== this.value) this.#events.onThreshold(value, done);
  }
};

// src/plot.ts
var DEFAULT_SIZE = { width: 640, height: 200 };
var Y_TICKS = [0, 0.25, 0.5, 0.75, 1];
var DOTS_FROM = 4;
var Plot = class {
  node;
  #events;
  #svg = svg("svg", { role: "group", "aria-label": "raw max probability by token" });
  #grid = svg("g", { class: "grid" });
  #axis = svg("g", { class: "axis" });
  #shade = svg("path", { class: "shade" });
  #curve = svg("path", { class: "curve" });
  #dots = svg("path", { class: "dots" });
  #lowDots = svg("path", { class: "dots low" });
  #branchLine = svg("line", { class: "branch-line", visibility: "hidden" });
  #hoverLine = svg("line", { class: "hover-line", visibility: "hidden" });
  #hoverDot = svg("circle", { class: "hover-dot", r: 3.5, visibility: "hidden" });
  #selection = svg("g", { class: "selection" });
  #line;
  #values = new Float64Array(0);
  #live = false;
  #branchedAt = 0;
  #selected = null;
  #firm = false;
  #size = DEFAULT_SIZE;
  #scale = { frame: frameOf(DEFAULT_SIZE.width, DEFAULT_SIZE.height), domain: 2 };
  constructor(events, signal) {
    this.#events = events;
    this.#line = new ThresholdLine(
      {
        onThreshold: events.onThreshold,
        toFrame: (event) => this.#point(event).y,
        frame: () => this.#scale.frame
      },
      signal
    );
    this.#svg.append(
      this.#grid,
      this.#shade,
      this.#branchLine,
      this.#axis,
      this.#curve,
      this.#dots,
      this.#lowDots,
      this.#selection,
      this.#hoverLine,
      this.#hoverDot,
      this.#line.node
    );
    const title = h("div", { class: "plot-title" }, h("b", {}, "raw max probability"), " by token");
    const canvas = h("div", { class: "canvas" }, this.#svg);
    this.node = h("div", { class: "plot", "data-testid": "plot" }, title, canvas);
    this.#svg.addEventListener("pointermove", (event) => this.#hover(event), { signal });
    this.#svg.addEventListener("pointerleave", () => this.#leave(), { signal });
    this.#svg.addEventListener("click", (event) => this.#select(this.#point(event).x), { signal });
    this.#watchSize(canvas, signal);
  }
  get dragging() {
    return this.#line.dragging;
  }
  /** Tokens before `branchedAt` were taken over from another run. */
  setData(values, live, branchedAt) {
    this.#values = values;
    this.#live = live;
    this.#branchedAt = branchedAt;
    this.#draw();
  }
  setThreshold(value) {
    this.#line.value = value;
    this.#draw();
  }
  /** `firm` when the user chose it, false while it is merely the newest. */
  select(index, firm) {
    this.#selected = index;
    this.#firm = firm;
    this.#drawSelection();
  }
  /** Point at a token, as when the text is hovered. */
  hover(index) {
    const value = index === null ? Number.NaN : this.#values[index] ?? Number.NaN;
    const visibility = Number.isNaN(value) ? "hidden" : "visible";
    setAttributes(this.#hoverLine, { visibility });
    setAttributes(this.#hoverDot, { visibility });
    if (index === null || Number.isNaN(value)) return;
    const { top, bottom } = this.#scale.frame;
    const x = xOf(index, this.#scale);
    setAttributes(this.#hoverLine, { x1: x, x2: x, y1: top, y2: bottom });
    setAttributes(this.#hoverDot, { cx: x, cy: yOf(value, this.#scale.frame) });
  }
  #watchSize(canvas, signal) {
    if (typeof ResizeObserver !== "function") return;
    const observer = new ResizeObserver(([entry]) => {
      const box = entry?.contentRect;
      if (box === void 0 || box.width < 1 || box.height < 1) return;
      if (box.width === this.#size.width && box.height === this.#size.height) return;
      this.#size = { width: box.width, height: box.height };
      this.#draw();
    });
    observer.observe(canvas);
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  }
  #point(event) {
    const box = this.#svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
  #hover(event) {
    const index = indexAt(this.#point(event).x, this.#scale, this.#values.length);
    if (this.#line.dragging || index === null) {
      this.#leave();
      return;
    }
    this.hover(index);
    this.#events.onHover(index, this.#hoverDot);
  }
  #leave() {
    this.hover(null);
    this.#events.onHover(null, null);
  }
  #select(x) {
    const index = indexAt(x, this.#scale, this.#values.length);
    if (index !== null && !this.#line.justDragged) this.#events.onSelect(index);
  }
  #draw() {
    const { width, height } = this.#size;
    const values = this.#values;
    const threshold = this.#line.value;
    this.#scale = { frame: frameOf(width, height), domain: domainOf(values.length, this.#live) };
    const scale = this.#scale;
    const step = stride(scale);
    setAttributes(this.#svg, { viewBox: `0 0 ${width} ${height}`, width, height });
    this.#drawAxes();
    this.#drawBranch();
    setAttributes(this.#shade, { d: shadePath(lowRuns(values, threshold), scale) });
    setAttributes(this.#curve, { d: curvePath(values, scale), class: step < 1 ? "curve dense" : "curve" });
    setAttributes(this.#dots, { d: step < DOTS_FROM ? "" : dotsPath(values, scale, (v) => v >= threshold) });
    setAttributes(this.#lowDots, { d: dotsPath(values, scale, (v) => v < threshold) });
    this.#lowDots.style.strokeWidth = step < DOTS_FROM ? `${Math.max(2, step)}px` : "";
    this.#drawSelection();
    this.#line.draw(width);
  }
  #drawBranch() {
    const shown = this.#branchedAt > 0 && this.#branchedAt <= this.#values.length;
    setAttributes(this.#branchLine, { visibility: shown ? "visible" : "hidden" });
    if (!shown) return;
    const { top, bottom } = this.#scale.frame;
    const x = xOf(this.#branchedAt - 0.5, this.#scale);
    setAttributes(this.#branchLine, { x1: x, x2: x, y1: top, y2: bottom });
  }
  #drawAxes() {
    const { left, right, bottom } = this.#scale.frame;
    this.#grid.replaceChildren(
      ...Y_TICKS.map((value) => {
        const y = yOf(value, this.#scale.frame);
        return svg("line", { x1: left, x2: right, y1: y, y2: y });
      })
    );
    const rows = Y_TICKS.map(
      (value) => svg(
        "text",
        { x: left - 8, y: yOf(value, this.#scale.frame) + 3.5, "text-anchor": "end" },
        String(value)
      )
    );
    const columns = ticks(this.#scale).map(
      (index) => svg("text", { x: xOf(index, this.#scale), y: bottom + 15, class: "tick" }, String(index))
    );
    const unit = svg("text", { x: right + 8, y: bottom + 15, class: "unit" }, "token");
    this.#axis.replaceChildren(...rows, ...columns, unit);
  }
  #drawSelection() {
    const index = this.#selected;
    const value = index === null ? Number.NaN : this.#values[index] ?? Number.NaN;
    this.#selection.replaceChildren();
    this.#selection.classList.toggle("firm", this.#firm);
    if (index === null || index >= this.#values.length) return;
    const { left, right, top, bottom } = this.#scale.frame;
    const x = xOf(index, this.#scale);
    this.#selection.append(svg("line", { x1: x, x2: x, y1: top, y2: bottom }));
    if (!Number.isNaN(value)) {
      const low = value < this.#line.value;
      const y = yOf(value, this.#scale.frame);
      this.#selection.append(svg("circle", { cx: x, cy: y, r: 4.5, class: low ? "low" : "" }));
    }
    const label = svg("text", { y: bottom + 15, class: "tick" }, String(index));
    const half = 5 + 3.5 * String(index).length;
    const at = Math.min(right - half, Math.max(left + half, x));
    setAttributes(label, { x: at });
    this.#selection.append(label);
    for (const tick of this.#axis.querySelectorAll(".tick"))
      setAttributes(tick, {
        visibility: Math.abs(Number(tick.getAttribute("x")) - at) < 2 * half + 6 ? "hidden" : null
      });
  }
};

// src/status.ts
var EMPTY = "Nothing has been generated yet. Write a prompt and press Generate.";
var REASONS = {
  stop: "its end token",
  length: "its length",
  stopped: "you",
  local_decode_timeout: "the time limit",
  error: "an error"
};
function phaseOf(store) {
  if (store.run === null) return "empty";
  if (store.failure !== null || store.state === "failed") return "failed";
  if (store.finish !== null || store.state === "finished") return "finished";
  if (store.state === "paused") return "paused";
  return store.count === 0 ? "prefilling" : "running";
}
function endedBy(reason, detail) {
  const words = REASONS[reason] ?? reason;
  if (reason === "stopped") return `ended by ${words}`;
  if (reason === "stop" || words === "") return detail || words ? `ended by ${detail || words}` : "";
  return detail === "" ? `ended by ${words}` : `ended by ${words} (${detail})`;
}
function statusText(store) {
  const tokens = plural(store.finish?.completion_tokens ?? store.count, "token");
  switch (phaseOf(store)) {
    case "empty":
      return EMPTY;
    case "prefilling":
      return prefillText(store);
    case "paused":
      return `paused · ${tokens}`;
    case "failed":
      return store.count === 0 ? "failed before the first token" : `failed after ${tokens}`;
    case "running":
      return joined(tokens, speedText(tokensPerSecond(store.numbers.elapsed.values)));
    case "finished":
      return finishText(store, tokens);
  }
}
function prefillText({ prefill, state }) {
  if (state === "waiting") return "waiting for the model";
  if (prefill === null || prefill.total === 0) return "reading the prompt";
  return `reading the prompt ${count(prefill.done)} / ${plural(prefill.total, "token")}`;
}
function finishText(store, tokens) {
  const { finish } = store;
  if (finish === null) return tokens;
  const first = finish.ttft_ms === null ? "" : `first after ${seconds(finish.ttft_ms / 1e3)}`;
  const speed2 = finish.tokens_per_second === null ? "" : speedText(finish.tokens_per_second);
  return joined(tokens, speed2, first, endedBy(finish.stop_reason, finish.stop_detail));
}
function speedText(value) {
  return Number.isFinite(value) ? speed(value) : "";
}
function joined(...parts) {
  return parts.filter((part) => part !== "").join(" · ");
}
var SPOKEN = { prefilling: "Reading the prompt.", running: "Generating." };
var Status = class {
  node;
  /** Told to screen readers when the phase changes, not with every token. */
  spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  #text = h("span", { class: "status-text" });
  #bar = h(
    "div",
    { class: "progress", role: "progressbar", "aria-label": "reading the prompt", hidden: true },
    h("i")
  );
  #phase = null;
  constructor() {
    this.node = h("div", { class: "status", "data-testid": "status" }, this.#bar, this.#text);
  }
  update(store) {
    const phase = phaseOf(store);
    const text = statusText(store);
    setText(this.#text, text);
    this.node.dataset["phase"] = phase;
    this.#progress(store, phase);
    if (phase === this.#phase) return;
    const first = this.#phase === null;
    this.#phase = phase;
    if (!first) setText(this.spoken, SPOKEN[phase] ?? text);
  }
  #progress({ prefill }, phase) {
    this.#bar.hidden = phase !== "prefilling" || prefill === null || prefill.total === 0;
    if (this.#bar.hidden || prefill === null) return;
    const share = Math.min(1, prefill.done / prefill.total);
    this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const fill = this.#bar.firstElementChild;
    if (fill instanceof HTMLElement) fill.style.width = `${100 * share}%`;
  }
};

// src/styles.ts
var THEME = `
:host { all: initial; display: block; width: 100%; }
.view {
  --bg: var(--jp-layout-color1, var(--vscode-editor-background, #fff));
  --fg: var(--jp-ui-font-color1, var(--vscode-editor-foreground, #1b1f24));
  --line: var(--jp-border-color2, #d9dee3);
  --accent: #0b5cad;
  --on-accent: #fff;
  --doubt: 217 119 6;
  --doubt-full: .62;
  --low: #b45309;
  --raw: #7c8996;
  --processed: #0b5cad;
  --removed: #b42318;
  --branch: #7c3aad;
  --failed-bg: #fdecea;
  --noted-bg: #fff6e0;
  --dim: color-mix(in srgb, var(--fg) 72%, var(--bg));
  --soft: color-mix(in srgb, var(--fg) 4%, var(--bg));
  --chosen-bg: color-mix(in srgb, var(--processed) 12%, var(--bg));
  --mono: var(--jp-code-font-family, ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace);
  --sans: var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif);
  container-type: inline-size; min-width: 280px;
  color-scheme: light;
}
.view.dark {
  --bg: var(--jp-layout-color1, var(--vscode-editor-background, #14171a));
  --fg: var(--jp-ui-font-color1, var(--vscode-editor-foreground, #e7eaee));
  --line: var(--jp-border-color2, #2d343b);
  --accent: #6cb2ff;
  --on-accent: #10151a;
  --doubt: 245 158 11;
  --doubt-full: .46;
  --low: #f5a83a;
  --raw: #8592a0;
  --processed: #6cb2ff;
  --removed: #ff9a90;
  --branch: #cf9bff;
  --failed-bg: #3b1f1d;
  --noted-bg: #33280f;
  color-scheme: dark;
}
`;
var CARD = `
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.card {
  position: relative; margin: 0; border: 1px solid var(--line); border-radius: 8px;
  background: var(--bg); color: var(--fg); font: 13px/1.45 var(--sans); overflow: clip; text-align: left;
}
.header { display: grid; gap: 4px 12px; padding: 9px 12px; border-bottom: 1px solid var(--line); }
.what, .how { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: center; min-width: 0; }
.what b { font-weight: 600; overflow-wrap: anywhere; }
.how { color: var(--dim); font-size: 12px; gap: 0; }
.how span:not(:last-child)::after { content: "·"; margin: 0 .5em; }
.asked {
  font-size: 13px; white-space: pre-wrap; overflow: hidden; overflow-wrap: anywhere; unicode-bidi: plaintext;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  border-left: 3px solid var(--line); padding-left: 8px; 
}
.origin { font-size: 12px; color: var(--dim); border-left: 2px solid var(--branch); padding-left: 6px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.settings { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 18px; min-width: 0; }
.chip { font: 12px/1.4 var(--mono); color: var(--dim); border: 1px solid var(--line); border-radius: 10px; padding: 1px 8px; white-space: nowrap; }
.notices { margin: 0; padding: 6px 12px 6px 28px; background: var(--noted-bg); border-bottom: 1px solid var(--line); font-size: 12.5px; }
.failure { display: grid; gap: 2px; padding: 10px 12px; background: var(--failed-bg); border-bottom: 1px solid var(--line); border-left: 4px solid var(--removed); overflow-wrap: anywhere; }
.failure b { font-weight: 600; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 392px; }
.main { display: flex; flex-direction: column; min-width: 0; padding: 10px 12px 6px; border-right: 1px solid var(--line); }
.footer { display: flex; flex-wrap: wrap; gap: 2px 18px; padding: 7px 12px; border-top: 1px solid var(--line); color: var(--dim); font-size: 12px; }
.footer b { color: var(--fg); font: 12px var(--mono); }
.footer .remark { margin-left: auto; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.card[data-none] :is(.legend, .tokens, .plot, .side, .footer) { display: none; }
.card[data-none] .columns { grid-template-columns: minmax(0, 1fr); }
.card[data-none] .main { border: 0; padding: 28px 16px; }
.card[data-none] .meta { justify-content: center; }
.card[data-none] .status { justify-content: center; font-size: 13.5px; text-align: center; }
.card[data-phase="prefilling"] .footer > :nth-child(-n + 3) { display: none; }
.card[data-bare] .side { min-height: 0; }
.card[data-bare] :is(.plot, .legend, .footer > :nth-child(-n + 3)) { display: none; }
@container (max-width: 859px) {
  .columns { grid-template-columns: minmax(0, 1fr); }
  .main { border-right: 0; border-bottom: 1px solid var(--line); }
  .footer .remark { margin-left: 0; }
}
`;
var META = `
.meta { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: center; justify-content: space-between; color: var(--dim); font-size: 12px; min-height: 26px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; }
.legend label { display: inline-flex; gap: 6px; align-items: center; }
.legend select {
  font: 600 12px var(--sans); color: var(--fg); background: var(--bg); border: 1px solid var(--line);
  border-radius: 4px; padding: 2px 4px; width: 190px; max-width: 100%; text-overflow: ellipsis;
}
.scale { display: inline-flex; gap: 6px; align-items: center; white-space: nowrap; }
.ramp {
  width: 72px; height: 10px; border-radius: 2px; border: 1px solid var(--line); forced-color-adjust: none;
  background: linear-gradient(90deg, rgb(var(--doubt) / 0), rgb(var(--doubt) / var(--doubt-full)));
}
.mark { white-space: nowrap; padding-bottom: 1px; }
.mark.low { border-bottom: 2px dotted var(--low); }
.mark.alternative { border-bottom: 1.5px solid var(--fg); }
.status { display: flex; flex: 1 0 100%; gap: 8px; align-items: center; justify-content: flex-end; min-height: 20px; text-align: right; font-variant-numeric: tabular-nums; }
.status[data-phase="failed"] { color: var(--removed); }
.progress { flex: none; width: 96px; height: 6px; border-radius: 3px; background: var(--line); overflow: hidden; forced-color-adjust: none; }
.progress i { display: block; height: 100%; background: var(--processed); }
`;
var TOKENS = `
.tokens {
  position: relative; margin: 4px -4px 0; padding: 2px 4px; min-height: 60px; max-height: 420px; overflow: hidden auto;
  font-size: 15px; line-height: 1.87; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4;
  cursor: text; scrollbar-width: thin; overscroll-behavior: auto;
}
.paragraph { unicode-bidi: plaintext; }
.token {
  cursor: pointer; padding: 2px 0 1px; border-radius: 2px; border-bottom: 2px solid transparent;
  background-color: rgb(var(--doubt) / calc(var(--d, 0) * var(--doubt-full)));
}
.token.low { border-bottom: 2px dotted var(--low); }
.token.alternative { text-decoration: underline solid 1.3px; text-underline-offset: 2.5px; text-decoration-skip-ink: none; }
.token.dropped { text-decoration: line-through; opacity: .65; }
.token.forced { box-shadow: inset 0 0 0 1px var(--dim); }
.token.branched { position: relative; }
.token.branched::after { content: ""; position: absolute; left: -4px; top: -3px; bottom: -3px; border-left: 2px solid var(--branch); }
.token.isolated { unicode-bidi: isolate; }
.token:is(:hover, .hovered) { outline: 1px solid var(--dim); outline-offset: 1px; }
.token.marked { outline: 1.5px dashed var(--accent); outline-offset: 1px; }
.token.selected { outline: 2px solid var(--accent); outline-offset: 1px; }
.token:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; box-shadow: 0 0 0 5px color-mix(in srgb, var(--accent) 30%, transparent); }
.token.boxed::before { content: attr(data-sign); }
.token.boxed, .sign {
  font: 11px/1.4 var(--mono); color: var(--dim); unicode-bidi: isolate; text-decoration: none; font-style: normal;
}
.token.boxed { display: inline-block; vertical-align: 1px; line-height: 1.3; border: 1px solid var(--line); border-radius: 3px; padding: 0 4px; margin: 0 1px; text-decoration: none; }
.token.boxed.low { border-bottom: 2px dotted var(--low); }
.token.boxed.cut { text-decoration: line-through; }
.sign::before { content: attr(data-sign); }
.sign { color: var(--fg); user-select: none; }
.sign.break { font-size: 13px; }
.unseen { font-size: 0; }
`;
var PLOT = `
.plot { display: flex; flex-direction: column; flex: 1 1 auto; margin-top: 8px; min-height: 184px; }
.plot-title { color: var(--dim); font-size: 12px; }
.plot-title b { font-weight: 600; color: var(--fg); }
.canvas { position: relative; flex: 1 1 160px; min-height: 160px; max-height: 260px; }
.canvas svg { position: absolute; inset: 0; display: block; overflow: visible; touch-action: pan-y; cursor: crosshair; user-select: none; }
svg text { fill: var(--dim); font: 10.5px var(--mono); }
svg .tick { text-anchor: middle; }
svg .unit { font-family: var(--sans); }
.grid line { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.shade { fill: rgb(var(--doubt) / .17); }
.curve { fill: none; stroke: var(--processed); stroke-width: 1.5; stroke-linejoin: round; }
.curve.dense { stroke-width: 1; }
.dots { fill: none; stroke: var(--processed); stroke-width: 4; stroke-linecap: round; }
.dots.low { stroke: var(--low); stroke-width: 5.5; }
.branch-line { stroke: var(--branch); stroke-width: 2; pointer-events: none; }
.hover-line { stroke: var(--dim); stroke-width: 1; pointer-events: none; }
.hover-dot { fill: var(--bg); stroke: var(--fg); stroke-width: 1.5; pointer-events: none; }
.selection { pointer-events: none; }
.selection line { stroke: var(--accent); stroke-width: 1.5; stroke-dasharray: 2 3; }
.selection.firm line { stroke-dasharray: none; }
.selection circle { fill: var(--processed); stroke: var(--bg); stroke-width: 1.5; }
.selection circle.low { fill: var(--low); }
.selection text { fill: var(--accent); font-weight: 700; }
.threshold { cursor: ns-resize; outline: none; touch-action: none; }
.threshold .line { stroke: var(--removed); stroke-width: 1.5; stroke-dasharray: 5 3; }
.threshold .hit { fill: transparent; }
.threshold .grip { fill: var(--bg); stroke: var(--line); }
.threshold text { fill: var(--removed); font-family: var(--sans); }
.threshold .number { font: 700 11px var(--mono); }
.threshold:hover .grip { stroke: var(--removed); }
.threshold:focus-visible .grip { stroke: var(--accent); stroke-width: 2.5; }
`;
var SIDE = `
/* The height of a full panel, so that the page rests when one comes or goes. */
.side { min-height: 438px; padding: 10px 12px; background: var(--soft); min-width: 0; }
.quiet { color: var(--dim); margin: 4px 0; max-width: 44em; }
.side-title { display: flex; flex-wrap: nowrap; gap: 8px; align-items: center; min-width: 0; height: 22px; white-space: nowrap; }
.label {
  font: 12px/1.35 var(--mono); background: var(--bg); color: var(--fg); border: 1px solid var(--line); border-radius: 3px;
  padding: 0 4px; white-space: pre; overflow: hidden; text-overflow: ellipsis; unicode-bidi: isolate;
}
.side-title .label { font-weight: 600; min-width: 24px; }
.state { font-size: 11px; color: var(--dim); border: 1px dashed var(--dim); border-radius: 3px; padding: 0 4px; }
.follows, .link { margin-left: auto; font-size: 12px; color: var(--dim); }
.link { font: 12px var(--sans); color: var(--accent); background: none; border: 0; padding: 1px 3px; border-radius: 3px; cursor: pointer; }
.link:hover { text-decoration: underline; }
.side:focus { outline: none; }
.side:focus-visible { box-shadow: inset 0 0 0 2px var(--accent); }
.take { margin: 0; text-align: start; cursor: pointer; border-color: color-mix(in srgb, var(--accent) 45%, var(--line)); }
.take:hover { background: var(--chosen-bg); border-color: var(--accent); }
.take:active { background: var(--accent); color: var(--on-accent); }
:is(.link, .take, select):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.figures { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.12fr) minmax(0, .88fr); gap: 1px 16px; margin: 7px 0 8px; max-width: 480px; font-size: 12px; color: var(--dim); }
.figures div { display: flex; justify-content: space-between; gap: 6px; white-space: nowrap; }
.figures dd { margin: 0; color: var(--fg); font: 12px/1.5 var(--mono); }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: 12px; }
.table { min-height: 252px; }
col.rank { width: 22px; } col.name { width: 30%; } col.raw { width: 44px; } col.processed { width: 66px; } col.fate { width: 57px; }
tr { height: 21px; }
th, td { padding: 0 4px; vertical-align: middle; text-align: left; white-space: nowrap; overflow: hidden; line-height: 18px; background: none; border: 0; }
th { font-weight: 500; color: var(--dim); font-size: 11.5px; }
th.number, td.number, td.rank { text-align: right; }
td.number { font: 11.5px var(--mono); font-variant-numeric: tabular-nums; }
td.rank { font: 10.5px var(--mono); color: var(--dim); padding: 0 2px 0 0; }
td.name .label { display: inline-block; max-width: 100%; vertical-align: middle; }
td.bars i { display: block; height: 6px; border-radius: 1px; forced-color-adjust: none; }
td.bars i.raw { background: var(--raw); margin-bottom: 2px; }
td.bars i.processed { background: var(--processed); }
th.key::before { content: ""; display: inline-block; width: 8px; height: 6px; margin-right: 4px; border-radius: 1px; vertical-align: 1px; background: var(--raw); forced-color-adjust: none; }
th.key.processed::before { background: var(--processed); }
tr.chosen td { background: var(--chosen-bg); }
tr.chosen td.fate { font-weight: 600; }
tr:is(.removed, .others) td { color: var(--dim); }
tr.removed .label { color: var(--dim); text-decoration: line-through; text-decoration-color: var(--removed); }
.stage { font-size: 11px; line-height: 15px; display: inline-block; color: var(--removed); border: 1px solid currentColor; border-radius: 3px; padding: 0 4px; }
.more { display: flex; justify-content: space-between; align-items: center; gap: 8px; height: 22px; padding-top: 2px; white-space: nowrap; }
.more .link { margin-left: 0; }
.more .link:last-child:not(:first-child) { margin-left: auto; }
.hint { font-size: 11.5px; color: var(--dim); overflow: hidden; text-overflow: ellipsis; }
.draw-bar { position: relative; height: 18px; margin-top: 8px; border-radius: 3px; box-shadow: 0 0 0 1px var(--line); background: var(--bg); forced-color-adjust: none; }
.segment {
  position: absolute; top: 0; bottom: 0; font: 10.5px/18px var(--mono); padding: 0 4px; overflow: hidden; white-space: pre; text-overflow: ellipsis;
  background: color-mix(in srgb, var(--raw) 38%, var(--bg)); color: var(--fg); border-right: 1px solid var(--bg);
}
.segment.chosen { background: var(--processed); color: var(--on-accent); }
.segment.others { background: repeating-linear-gradient(135deg, var(--line) 0 3px, var(--bg) 3px 6px); }
.draw-mark { position: absolute; top: -4px; bottom: -4px; width: 2px; margin-left: -1px; background: var(--fg); box-shadow: 0 0 0 1px var(--bg); }
.draw-ends { display: flex; justify-content: space-between; gap: 8px; margin-top: 6px; color: var(--dim); font-size: 11.5px; font-variant-numeric: tabular-nums; text-align: center; }
`;
var REST2 = `
@container (max-width: 369px) {
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .side { min-height: 470px; padding: 10px 8px; }
  col.name { width: 25%; }
  .hint { display: none; }
}
.tooltip {
  position: absolute; top: 0; left: 0; z-index: 2; display: flex; gap: 6px; align-items: center; pointer-events: none; white-space: nowrap;
  padding: 3px 7px; border-radius: 5px; border: 1px solid var(--line); background: var(--bg); color: var(--fg); font-size: 12px;
  box-shadow: 0 2px 8px rgb(0 0 0 / .18); max-width: calc(100% - 8px);
}
.tooltip .label { max-width: 16em; }
.numbers { font: 11.5px var(--mono); }
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; scroll-behavior: auto !important; } }
@media (forced-colors: active) {
  .view, .view.dark { --processed: Highlight; --raw: GrayText; --accent: Highlight; --low: CanvasText; --removed: CanvasText; --branch: CanvasText; --line: CanvasText; --bg: Canvas; --fg: CanvasText; --dim: CanvasText; --on-accent: HighlightText; }
  .segment { border: 1px solid CanvasText; }
  .token { border-bottom-color: Canvas; }
  .token.low { border-bottom-color: CanvasText; }
  tr.chosen { outline: 2px solid Highlight; outline-offset: -2px; }
}
`;
var STYLES = THEME + CARD + META + TOKENS + PLOT + SIDE + REST2;

// src/summary.ts
function describeParams(params) {
  const number = (name) => typeof params[name] === "number" ? params[name] : null;
  const words = [];
  const add = (name, value) => {
    if (value !== null) words.push(`${name} ${value}`);
  };
  const unless = (name, off, show2) => {
    const value = number(name);
    return value === null ? null : value === off ? "off" : show2(value);
  };
  const penalty = number("repeat_penalty");
  const temperature = number("temperature");
  if (penalty !== null && penalty !== 1) add("repeat penalty", penalty.toFixed(2));
  add("temperature", temperature === null ? null : temperature === 0 ? "0 (greedy)" : temperature.toFixed(2));
  add("top-k", unless("top_k", 0, count));
  add(
    "top-p",
    unless("top_p", 1, (value) => value.toFixed(2))
  );
  add(
    "min-p",
    unless("min_p", 0, (value) => value.toFixed(2))
  );
  const seed = params["seed"];
  if (typeof seed === "number" || typeof seed === "string") add("seed", String(seed));
  const most = number("max_tokens");
  if (most !== null) words.push(`at most ${plural(most, "token")}`);
  return words;
}
var Header = class {
  node = h("header", { class: "header", hidden: true });
  #shown = null;
  #showModel;
  /** A host that names the model itself leaves that line out. */
  constructor(showModel) {
    this.#showModel = showModel;
  }
  update(info) {
    if (info === this.#shown) return;
    this.#shown = info;
    this.node.hidden = info === null;
    if (info === null) return;
    const chip = (text) => text === "" ? null : h("span", { class: "chip" }, text);
    const what = h(
      "div",
      { class: "what" },
      h("b", {}, info.model),
      chip(info.engine),
      chip([info.device, info.dtype].filter((part) => part !== "").join(" · ")),
      chip(info.context_length > 0 ? `${count(info.context_length)} ctx` : "")
    );
    const how = h(
      "div",
      { class: "how" },
      ...describeParams(info.params).map((words) => h("span", {}, words))
    );
    const asked = h("div", { class: "asked", title: info.prompt, dir: "auto" }, info.prompt);
    const origin = info.branch ? h("div", { class: "origin", "data-testid": "origin" }, info.branch.text) : null;
    const settings = h("div", { class: "settings" }, how, origin);
    const rows = [this.#showModel ? what : null, settings, info.prompt === "" ? null : asked];
    this.node.replaceChildren(...rows.filter((row) => row !== null));
  }
};
var Notices = class {
  node = h("div", {});
  #notices = h("ul", { class: "notices", "data-testid": "notices", hidden: true });
  #failure = h("div", { class: "failure", "data-testid": "failure", role: "alert", hidden: true });
  constructor() {
    this.node.append(this.#notices, this.#failure);
  }
  update({ notices, failure }) {
    const shown = [...this.#notices.children].map((item) => item.textContent);
    if (notices.length !== shown.length || notices.some((text2, i) => text2 !== shown[i]))
      this.#notices.replaceChildren(...notices.map((text2) => h("li", {}, text2)));
    this.#notices.hidden = notices.length === 0;
    this.#failure.hidden = failure === null;
    const text = failure === null ? "" : failure.message + failure.hint;
    if (this.#failure.textContent === text) return;
    this.#failure.replaceChildren(
      ...failure === null ? [] : [h("b", {}, failure.message), h("span", {}, failure.hint)]
    );
  }
};
var FIGURES = ["perplexity", "entropy", "below", "prompt"];
var Footer = class {
  node;
  #values = Object.fromEntries(FIGURES.map((name) => [name, h("span", {})]));
  constructor() {
    const remark = h("span", { class: "remark" }, "natural logs · raw = before the sampler");
    this.node = h("footer", { class: "footer" }, ...FIGURES.map((name) => this.#values[name]), remark);
  }
  update(store, threshold) {
    const { logprob, entropy, max_prob: maxProb, flags } = store.numbers;
    const kept = (i) => (flags.at(i) & FLAGS.kept) !== 0;
    const perplexity = Math.exp(-mean(logprob.values, kept));
    const runs = lowRuns(maxProb.values, threshold).length;
    const below = countBelow(maxProb.values, threshold);
    setFigure(this.#values.perplexity, "perplexity", nats(perplexity), "");
    setFigure(this.#values.entropy, "mean entropy", nats(mean(entropy.values, kept)), "nats");
    setFigure(
      this.#values.below,
      `below ${threshold.toFixed(2)}:`,
      count(below),
      `${below === 1 ? "token" : "tokens"}, ${plural(runs, "run")} of 3+`
    );
    const prefill = store.prefill;
    this.#values.prompt.hidden = prefill === null;
    if (prefill === null) return;
    const words = `${prefill.total === 1 ? "token" : "tokens"}, ${count(prefill.reused)} re-used`;
    const name = store.branchedAt > 0 ? "read" : "prompt";
    setFigure(this.#values.prompt, name, count(prefill.total), words);
  }
};
function setFigure(node, before, value, after) {
  if (node.childElementCount === 0) node.append(h("span", {}), " ", h("b", {}), " ", h("span", {}));
  const [first, middle, last] = node.children;
  if (first === void 0 || middle === void 0 || last === void 0) return;
  setText(first, before);
  setText(middle, value);
  setText(last, after);
}

// src/theme.ts
function luminance(colour) {
  const parts = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  const [red, green, blue, alpha = 1] = parts;
  if (!colour.startsWith("rgb") || red === void 0 || green === void 0 || blue === void 0)
    return null;
  if (alpha < 0.5) return null;
  const linear = [red, green, blue].map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0);
}
function themeColour(host) {
  return getComputedStyle(host).getPropertyValue("--jp-layout-color1").trim();
}
function backgroundLuminance(host) {
  for (let node = host; node !== null; node = parentOf(node)) {
    const found = luminance(getComputedStyle(node).backgroundColor);
    if (found !== null) return found;
  }
  return null;
}
function parentOf(node) {
  if (node.parentElement !== null) return node.parentElement;
  const root = node.getRootNode();
  return root instanceof ShadowRoot ? root.host : null;
}
function declaredDark() {
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
function isDark(host) {
  const card = resolveColour(host, themeColour(host));
  const behind = card ?? backgroundLuminance(host);
  if (behind !== null) return behind < 0.2;
  return declaredDark() ?? prefersDark()?.matches ?? false;
}
function resolveColour(host, colour) {
  if (colour === "") return null;
  host.style.setProperty("background-color", colour);
  const computed = getComputedStyle(host).backgroundColor;
  host.style.removeProperty("background-color");
  return luminance(computed);
}
function prefersDark() {
  return typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : void 0;
}
function followTheme(host, apply, signal) {
  const timers = /* @__PURE__ */ new Set();
  const check = () => apply(isDark(host));
  const forget = () => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
  };
  const later = () => {
    check();
    forget();
    for (const delay of [60, 400, 1500]) timers.add(setTimeout(check, delay));
  };
  const observer = new MutationObserver(later);
  const attributeFilter = [
    "class",
    "style",
    "theme",
    "data-theme",
    "data-jp-theme-light",
    "data-jp-theme-name"
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
    { once: true }
  );
  later();
}

// src/selection.ts
function selectionIn(node) {
  const root = node.getRootNode();
  const selection = root.getSelection?.() ?? document.getSelection();
  if (selection === null || selection === void 0 || selection.rangeCount === 0) return null;
  const range = rangeOf(selection, root);
  if (range === null || !range.intersectsNode(node)) return null;
  const all = document.createRange();
  all.selectNodeContents(node);
  if (range.compareBoundaryPoints(Range.START_TO_START, all) < 0) range.setStart(node, 0);
  if (range.compareBoundaryPoints(Range.END_TO_END, all) > 0) range.setEnd(node, node.childNodes.length);
  return range;
}
function rangeOf(selection, root) {
  if (root instanceof ShadowRoot && typeof selection.getComposedRanges === "function") {
    const found = selection.getComposedRanges({ shadowRoots: [root] })[0];
    if (found !== void 0) {
      const range = document.createRange();
      range.setStart(found.startContainer, found.startOffset);
      range.setEnd(found.endContainer, found.endOffset);
      return range;
    }
  }
  return selection.getRangeAt(0).cloneRange();
}

// src/token_text.ts
var BREAK = "⏎";
var PARTS = /^([ \t]*)([\s\S]*?)((?:\r?\n|\r)*)$/;
var HIDDEN = /\r?\n|(?!\t)[\p{Zl}\p{Zp}\p{Cc}\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu;
var OVERRIDES = /[\u202a-\u202e\u2066-\u2069]/u;
function layout({ text, special }) {
  if (special) return { lead: text, body: [], tail: "" };
  const [, lead = "", middle = "", tail = ""] = PARTS.exec(text) ?? [];
  if (middle === "" && tail === "") return { lead: "", body: pieces(lead), tail: "" };
  const breaks = tail.match(/\r?\n|\r/g) ?? [];
  return { lead, body: [...pieces(middle), ...breaks.map(() => ({ text: "", sign: BREAK }))], tail };
}
function pieces(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), sign: "" });
    found.push({ text: match[0], sign: /[\r\n]/.test(match[0]) ? BREAK : codePoint(match[0]) });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), sign: "" });
  return found;
}
function turnsDirection(text) {
  return OVERRIDES.test(text);
}
function boxKind(step) {
  if (step.special) return "special";
  if (step.text !== "") return null;
  return step.incomplete ? "bytes" : "cut";
}

// src/token_span.ts
function describe(step, threshold) {
  const text = step.text === "" || step.special ? step.label : step.text;
  const words = [`token ${step.index} "${text.trim() || visible(text)}"`];
  if (Number.isFinite(step.prob)) words.push(`probability ${prob(step.prob)}`, `rank ${step.rank}`);
  if (step.maxProb < threshold) words.push("below threshold");
  if (step.special) words.push("control token");
  if (step.incomplete) words.push("part of a character");
  if (step.forced) words.push("put there, not drawn");
  if (!step.kept) words.push("rolled back");
  if (step.branched) words.push("the branch begins here");
  return words.join(", ");
}
function makeSpan(step, body, threshold) {
  const span = h("span", {
    class: "token",
    "data-testid": "token",
    "data-index": step.index,
    role: "option",
    tabindex: -1,
    "aria-selected": "false",
    "aria-label": describe(step, threshold)
  });
  const box = boxKind(step);
  if (box !== null) {
    span.classList.add("boxed", box);
    span.dataset["sign"] = visible(step.label);
  }
  for (const piece of body) span.append(...pieceNodes(piece));
  if (turnsDirection(step.text)) span.classList.add("isolated");
  if (step.rank > 1) span.classList.add("alternative");
  if (step.maxProb < threshold) span.classList.add("low");
  if (step.forced) span.classList.add("forced");
  if (!step.kept) span.classList.add("dropped");
  if (step.branched) span.classList.add("branched");
  return span;
}
function pieceNodes({ text, sign }) {
  if (sign === "") return [document.createTextNode(text)];
  const mark = h("i", {
    class: sign === BREAK ? "sign break" : "sign",
    "data-sign": sign,
    "aria-hidden": "true"
  });
  if (text === "") return [mark];
  return [mark, /[\r\n]/.test(text) ? document.createTextNode(text) : h("span", { class: "unseen" }, text)];
}
function nearestOnNextLine(spans, index, direction) {
  const from = spans[index]?.getBoundingClientRect();
  if (from === void 0) return index;
  const middle = (box) => box.left + box.width / 2;
  let line = null;
  let best = { index, distance: Number.POSITIVE_INFINITY };
  for (let i = index + direction; i >= 0 && i < spans.length; i += direction) {
    const to = spans[i]?.getBoundingClientRect();
    if (to === void 0 || Math.abs(to.bottom - from.bottom) < from.height / 2) continue;
    if (line !== null && Math.abs(to.bottom - line) > from.height / 2) break;
    line = to.bottom;
    const distance = Math.abs(middle(to) - middle(from));
    if (distance < best.distance) best = { index: i, distance };
  }
  return best.index;
}

// src/tokens.ts
var TokenText = class {
  node;
  #store;
  #events;
  #spans = [];
  #metric = "max_prob";
  #threshold = 0.4;
  #selected = null;
  #marked = null;
  #hovered = null;
  #paragraph = null;
  #tabStop = 0;
  #atEnd = true;
  constructor(store, events, signal) {
    this.#store = store;
    this.#events = events;
    this.node = h("div", {
      class: "tokens",
      "data-testid": "tokens",
      role: "listbox",
      "aria-label": "generated text, one option a token",
      "aria-orientation": "horizontal",
      dir: "auto"
    });
    const on = (type, listener) => this.node.addEventListener(type, listener, { signal });
    on("click", (event) => this.#click(event));
    on("keydown", (event) => this.#key(event));
    on("copy", (event) => this.#copy(event));
    on("focusin", (event) => this.#focused(event.target));
    on("focusout", () => this.#events.onHover(null, null));
    on("pointerover", (event) => this.#hover(event.target));
    on("pointerleave", () => this.#events.onHover(null, null));
    on("scroll", () => {
      this.#atEnd = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 32;
    });
  }
  clear() {
    this.#spans = [];
    this.#selected = null;
    this.#marked = null;
    this.#hovered = null;
    this.#paragraph = null;
    this.#tabStop = 0;
    this.#atEnd = true;
    this.node.replaceChildren();
  }
  /** Add the steps that the store has and the page has not. */
  append() {
    const fragment = document.createDocumentFragment();
    let paragraph = this.#paragraph;
    for (let i = this.#spans.length; i < this.#store.count; i++) {
      const step = this.#store.step(i);
      const { lead, body, tail } = layout(step);
      const span = makeSpan(step, body, this.#threshold);
      if (paragraph === null) {
        paragraph = h("div", { class: "paragraph", role: "presentation" });
        fragment.append(paragraph);
      }
      paragraph.append(lead, span, tail);
      this.#colour(span, step);
      this.#spans.push(span);
      if (tail !== "") paragraph = null;
    }
    this.#paragraph = paragraph;
    this.node.append(fragment);
    this.#spans[this.#tabStop]?.setAttribute("tabindex", "0");
  }
  /** Keep the newest line in sight, unless the reader has scrolled back. */
  followEnd() {
    if (this.#atEnd) this.node.scrollTop = this.node.scrollHeight;
  }
  setMetric(metric) {
    if (metric === this.#metric) return;
    this.#metric = metric;
    for (const [i, span] of this.#spans.entries()) this.#colour(span, this.#store.step(i));
  }
  setThreshold(threshold) {
    const before = this.#threshold;
    this.#threshold = threshold;
    const values = this.#store.numbers.max_prob.values;
    this.#spans.forEach((span, i) => {
      const value = values[i] ?? Number.NaN;
      if (value < before === value < threshold) return;
      span.classList.toggle("low", value < threshold);
      span.setAttribute("aria-label", describe(this.#store.step(i), threshold));
    });
  }
  /** Flags of these steps have changed. */
  reflag(indices) {
    for (const i of indices) {
      const span = this.#spans[i];
      const step = this.#store.step(i);
      span?.classList.toggle("dropped", !step.kept);
      span?.setAttribute("aria-label", describe(step, this.#threshold));
    }
  }
  /** `selected` is what the user chose; `marked` is what the side panel shows while it follows. */
  select(selected, marked) {
    if (selected !== this.#selected) {
      this.#toggle(this.#selected, "selected", false)?.setAttribute("aria-selected", "false");
      this.#toggle(selected, "selected", true)?.setAttribute("aria-selected", "true");
      this.#selected = selected;
      if (selected !== null) {
        this.#setTabStop(selected);
        this.#reveal(selected);
      }
    }
    const shown = selected === null ? marked : null;
    if (shown === this.#marked) return;
    this.#toggle(this.#marked, "marked", false);
    this.#toggle(shown, "marked", true);
    this.#marked = shown;
  }
  /** Point at a token, as when the plot is hovered. */
  hover(index) {
    this.#toggle(this.#hovered, "hovered", false);
    this.#toggle(index, "hovered", true);
    this.#hovered = index;
  }
  #toggle(index, name, on) {
    const span = index === null ? void 0 : this.#spans[index];
    span?.classList.toggle(name, on);
    return span;
  }
  #colour(span, step) {
    span.style.setProperty("--d", doubt(this.#metric, step).toFixed(3));
  }
  #indexOf(target) {
    const span = target instanceof Element ? target.closest(".token") : null;
    return span === null ? null : Number(span.dataset["index"]);
  }
  #hover(target) {
    const index = this.#indexOf(target);
    this.#events.onHover(index, index === null ? null : this.#spans[index] ?? null);
  }
  #focused(target) {
    this.#setTabStop(this.#indexOf(target));
    if (target instanceof Element && target.matches(":focus-visible")) this.#hover(target);
  }
  #click(event) {
    const index = this.#indexOf(event.target);
    if (index === null || !(selectionIn(this.node)?.collapsed ?? true)) return;
    this.#events.onSelect(index);
  }
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const index = this.#indexOf(event.target);
    if (index === null) return;
    const action = this.#keyAction(event.key, index);
    if (action === null) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }
  #keyAction(key, index) {
    const last = this.#spans.length - 1;
    const focus = (i) => () => this.#focus(Math.min(last, Math.max(0, i)));
    switch (key) {
      case "Enter":
      case " ":
        return () => this.#events.onSelect(index);
      case "Escape":
        return () => this.#events.onSelect(null);
      case "ArrowLeft":
        return focus(index - 1);
      case "ArrowRight":
        return focus(index + 1);
      case "ArrowUp":
        return focus(nearestOnNextLine(this.#spans, index, -1));
      case "ArrowDown":
        return focus(nearestOnNextLine(this.#spans, index, 1));
      case "Home":
        return focus(0);
      case "End":
        return focus(last);
      default:
        return null;
    }
  }
  #focus(index) {
    this.#reveal(index);
    this.#spans[index]?.focus({ preventScroll: true });
  }
  #setTabStop(index) {
    if (index === null || index === this.#tabStop) return;
    this.#spans[this.#tabStop]?.setAttribute("tabindex", "-1");
    this.#spans[index]?.setAttribute("tabindex", "0");
    this.#tabStop = index;
  }
  /** Scroll the text, not the page, until a token is in sight. */
  #reveal(index) {
    const span = this.#spans[index];
    if (span === void 0 || this.node.scrollHeight <= this.node.clientHeight) return;
    const box = span.getBoundingClientRect();
    const frame = this.node.getBoundingClientRect();
    if (box.top < frame.top + 4) this.node.scrollTop -= frame.top + 4 - box.top;
    else if (box.bottom > frame.bottom - 4) this.node.scrollTop += box.bottom - frame.bottom + 4;
  }
  /** Browsers turn no-break spaces into spaces and may add breaks; the copy is the text as it was generated. */
  #copy(event) {
    const range = selectionIn(this.node);
    if (range === null || range.collapsed || event.clipboardData === null) return;
    event.clipboardData.setData("text/plain", range.toString());
    event.preventDefault();
  }
};

// src/tooltip.ts
var Tooltip = class {
  node;
  #head = h("span", {});
  #label = h("bdi", { class: "label" });
  #figures = h("span", { class: "numbers" });
  constructor() {
    this.node = h(
      "div",
      { class: "tooltip", "aria-hidden": "true", hidden: true },
      this.#head,
      this.#label,
      this.#figures
    );
  }
  /** Show a step beside an element, within `frame`. */
  show(step, anchor, frame, metric) {
    setText(this.#head, `token ${step.index}`);
    setText(this.#label, visible(step.label || step.text));
    setText(this.#figures, readout(step, metric));
    this.node.hidden = false;
    const around = frame.getBoundingClientRect();
    const box = anchor.getBoundingClientRect();
    const own = this.node.getBoundingClientRect();
    const x = box.left + box.width / 2 - own.width / 2 - around.left;
    const above = box.top - own.height - 8 - around.top;
    const left = Math.max(4, Math.min(around.width - own.width - 4, x));
    const top = above < 0 ? box.bottom + 8 - around.top : above;
    this.node.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
  hide() {
    this.node.hidden = true;
  }
};
function readout(step, metric) {
  if (!Number.isFinite(step.prob)) return "not inspected";
  const words = [
    prob(step.prob),
    `rank ${count(step.rank)}`,
    `max ${prob(step.maxProb)}`
  ];
  if (metric === "entropy" || metric === "surprisal")
    words.push(`${metric} ${METRICS[metric].format(METRICS[metric].value(step))}`);
  return words.join(" · ");
}

// src/run_parts.ts
var WRITE_DELAY = 120;
var SECOND_CLICK = 700;
var RunParts = class {
  host = h("div", { class: "cartoolkit-run", "data-lm-suppress-shortcuts": "true" });
  card = h("article", { class: "card", "data-testid": "run-view", "aria-label": "generation" });
  header;
  notices = new Notices();
  status = new Status();
  footer = new Footer();
  tooltip = new Tooltip();
  legend;
  tokens;
  plot;
  panel;
  #model;
  #hooks;
  #feed;
  #writer;
  #metric = "max_prob";
  #threshold = 0.4;
  #selected = null;
  #branched = Number.NEGATIVE_INFINITY;
  constructor(model, signal, hooks = {}) {
    this.#model = model;
    this.#hooks = hooks;
    this.#feed = new Feed(
      model,
      {
        onBegin: (update, before) => this.#begin(update, before),
        onFrame: (news) => this.#show(news)
      },
      signal
    );
    this.header = new Header(model.get("show_model") !== false);
    this.#writer = new TraitWriter(model, signal);
    this.legend = new Legend((metric) => this.#chooseMetric(metric), signal);
    this.tokens = this.#makeTokens(signal);
    this.plot = this.#makePlot(signal);
    this.panel = this.#makePanel(signal);
  }
  get store() {
    return this.#feed.store;
  }
  get threshold() {
    return this.#threshold;
  }
  /** Put the card, with what a view has laid out in it, into the host. */
  mount(...content) {
    this.card.append(...content, this.status.spoken, this.tooltip.node);
    const style = h("style", {}, STYLES);
    this.host.attachShadow({ mode: "open" }).append(style, h("div", { class: "view" }, this.card));
  }
  /** Show what is there, then listen, then say what one has. */
  start(signal) {
    this.#readTraits();
    this.#feed.start(signal);
    for (const name of ["metric", "threshold", "selected", "can_branch"])
      onTrait(this.#model, name, () => this.#traitChanged(), signal);
    followTheme(this.host, (dark) => this.card.parentElement?.classList.toggle("dark", dark), signal);
    this.#feed.ready();
  }
  /** Select a token, for all views of this model; null selects none. */
  choose(selected) {
    if (selected !== this.#selected) this.#writer.now("selected", selected);
  }
  #makeTokens(signal) {
    const onHover = (index, anchor) => {
      this.plot.hover(index);
      this.#readOut(index, anchor);
    };
    return new TokenText(this.store, { onSelect: (index) => this.#chosen(index), onHover }, signal);
  }
  #makePlot(signal) {
    const onHover = (index, anchor) => {
      this.tokens.hover(index);
      this.#readOut(index, anchor);
    };
    return new Plot(
      {
        onSelect: (index) => this.#chosen(index),
        onHover,
        onThreshold: (value, done) => this.#moveThreshold(value, done)
      },
      signal
    );
  }
  #makePanel(signal) {
    return new SidePanel(
      {
        onFollow: () => this.#chosen(null),
        onBranch: (step, token) => this.#branch(step, token),
        onRelease: () => this.#showSelected()
      },
      signal
    );
  }
  /** A run that begins has nothing selected; one that is replayed keeps what is, and a branch its place. */
  #begin(update, before) {
    if (before !== null && update.steps === void 0 && update.info?.branch === void 0) this.choose(null);
  }
  #show(news) {
    const { store } = this;
    if (news.reset) this.tokens.clear();
    this.tokens.append();
    this.tokens.reflag(news.changed);
    this.header.update(store.info);
    this.notices.update(store);
    this.status.update(store);
    this.card.dataset["phase"] = phaseOf(store);
    this.card.toggleAttribute("data-none", store.count === 0 && !store.live);
    this.card.toggleAttribute("data-bare", store.count > 0 && !store.inspected);
    this.plot.setData(store.numbers.max_prob.values, store.live, store.branchedAt);
    this.#showThreshold();
    this.#showSelected();
    this.#hooks.onShow?.(news);
    if (store.live) this.tokens.followEnd();
  }
  #showThreshold() {
    this.tokens.setThreshold(this.#threshold);
    this.plot.setThreshold(this.#threshold);
    this.legend.update(this.#metric, this.#threshold);
    this.footer.update(this.store, this.#threshold);
    this.#hooks.onThreshold?.(this.#threshold);
  }
  #showSelected() {
    const { count: count2 } = this.store;
    const selected = this.#selected !== null && this.#selected < count2 ? this.#selected : null;
    const shown = selected ?? this.panel.held(this.store) ?? (count2 > 0 ? count2 - 1 : null);
    this.tokens.select(selected, shown);
    this.plot.select(shown, selected !== null);
    this.panel.show(this.store, shown, { follows: selected === null, offers: this.#canBranch });
  }
  /** Whether somebody is there to go on from a token of the run shown. */
  get #canBranch() {
    return this.#model.get("can_branch") === true && this.#feed.attended;
  }
  #branch(step, token) {
    const now = performance.now();
    if (this.store.run === null || now - this.#branched < SECOND_CLICK) return;
    this.#branched = now;
    send(this.#model, branch(this.store.run, step, token));
  }
  #readTraits() {
    const metric = this.#model.get("metric");
    const threshold = this.#model.get("threshold");
    const selected = this.#model.get("selected");
    this.#metric = isMetric(metric) ? metric : "max_prob";
    const moving = this.plot.dragging || this.#writer.waiting("threshold");
    if (!moving && Number.isFinite(threshold)) this.#threshold = clampValue(threshold);
    this.#selected = Number.isInteger(selected) && selected !== null && selected >= 0 ? selected : null;
    this.tokens.setMetric(this.#metric);
  }
  #traitChanged() {
    this.#readTraits();
    this.#showThreshold();
    this.#showSelected();
  }
  #chooseMetric(metric) {
    this.#writer.now("metric", metric);
  }
  #chosen(selected) {
    this.choose(selected);
    this.#hooks.onChoose?.(selected);
  }
  #moveThreshold(value, done) {
    this.#threshold = value;
    if (done) this.#writer.now("threshold", value);
    else this.#writer.later("threshold", value, WRITE_DELAY);
    this.#showThreshold();
  }
  #readOut(index, anchor) {
    if (index === null || anchor === null) this.tooltip.hide();
    else this.tooltip.show(this.store.step(index), anchor, this.card, this.#metric);
  }
};

// src/run_view.ts
function assemble(parts) {
  const { header, notices, legend, status, tokens, plot, panel, footer } = parts;
  const top = h("div", { class: "meta" }, legend.node, status.node);
  const main = h("div", { class: "main" }, top, tokens.node, plot.node);
  const columns = h("div", { class: "columns" }, main, panel.node);
  parts.mount(header.node, notices.node, columns, footer.node);
}
function renderRun(model, el) {
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

// src/index.ts
var VIEWS = { run: renderRun };
function render({ model, el }) {
  const name = model.get("view");
  const renderer = Object.hasOwn(VIEWS, name) ? VIEWS[name] : void 0;
  if (renderer !== void 0) return renderer(model, el);
  const note = document.createElement("p");
  note.textContent = `cartoolkit: this version of the widget cannot show "${name}".`;
  el.append(note);
  return () => note.remove();
}
var index_default = { render };
export {
  index_default as default
};

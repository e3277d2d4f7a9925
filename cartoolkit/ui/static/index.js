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
  return asList(value, where).map((entry2, i) => asString(entry2, `${where}.${i}`));
}
function asCount(value, where) {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected a whole number`);
}
function asIndices(value, where) {
  return asList(value, where).map((entry2, i) => asCount(entry2, `${where}.${i}`));
}
function asBoolean(value, where) {
  if (typeof value === "boolean") return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected true or false`);
}
function asOneOf(known, value, where) {
  const found = known.find((one) => one === value);
  if (found !== void 0) return found;
  throw new ProtocolError(`${where} is ${show(value)}, expected one of ${known.join(", ")}`);
}
function asNumberOrNull(value, where) {
  if (value === null) return null;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  throw new ProtocolError(`${where} is ${show(value)}, expected a number or null`);
}
function show(value) {
  return String(JSON.stringify(value) ?? typeof value).slice(0, 60);
}

// src/retrieval_protocol.ts
var OUTCOMES = ["found", "nothing", "failed", "timeout"];
function parsePolicy(value) {
  const policy = asRecord(value, "info.policy");
  return {
    name: asString(policy["name"], "info.policy.name"),
    trigger: asString(policy["trigger"], "info.policy.trigger"),
    threshold: asNumberOrNull(policy["threshold"], "info.policy.threshold"),
    retriever: asString(policy["retriever"], "info.policy.retriever")
  };
}
function parseLookUps(value) {
  return asList(value, "look_ups").map(
    (row, i) => parseLookUp(asRecord(row, `look_ups.${i}`), `look_ups.${i}`)
  );
}
function parseLookUp(row, where) {
  const countOrNull = (name) => row[name] === null ? null : asCount(row[name], `${where}.${name}`);
  return {
    at: asCount(row["at"], `${where}.at`),
    position: asCount(row["position"], `${where}.position`),
    keep: asCount(row["keep"], `${where}.keep`),
    dropped: asCount(row["dropped"], `${where}.dropped`),
    query: asString(row["query"], `${where}.query`),
    reason: asString(row["reason"], `${where}.reason`),
    trigger_steps: asIndices(row["trigger_steps"], `${where}.trigger_steps`),
    upfront: asBoolean(row["upfront"], `${where}.upfront`),
    outcome: asOneOf(OUTCOMES, row["outcome"], `${where}.outcome`),
    note: asString(row["note"], `${where}.note`),
    hits: asList(row["hits"], `${where}.hits`).map((hit, i) => parseHit(hit, `${where}.hits.${i}`)),
    ms: asNumberOrNull(row["ms"], `${where}.ms`),
    prefill_tokens: countOrNull("prefill_tokens"),
    reused_tokens: countOrNull("reused_tokens"),
    prefill_ms: asNumberOrNull(row["prefill_ms"], `${where}.prefill_ms`),
    chances: asList(row["chances"], `${where}.chances`).map(
      (chance, i) => parseChance(chance, `${where}.chances.${i}`)
    )
  };
}
function parseHit(value, where) {
  const hit = asRecord(value, where);
  return {
    id: asString(hit["id"], `${where}.id`),
    title: asString(hit["title"], `${where}.title`),
    source: asString(hit["source"], `${where}.source`),
    score: asNumberOrNull(hit["score"], `${where}.score`),
    text: asString(hit["text"], `${where}.text`),
    added: asBoolean(hit["added"], `${where}.added`),
    used: asList(hit["used"], `${where}.used`).map((range2, i) => parseRange(range2, `${where}.used.${i}`))
  };
}
function parseRange(value, where) {
  const [start, end, ...rest] = asIndices(value, where);
  if (start === void 0 || end === void 0 || rest.length > 0 || end < start)
    throw new ProtocolError(`${where} is ${show(value)}, expected a start and an end`);
  return [start, end];
}
function parseChance(value, where) {
  const chance = asRecord(value, where);
  return {
    text: asString(chance["text"], `${where}.text`),
    before: asNumberOrNull(chance["before"], `${where}.before`),
    after: asNumberOrNull(chance["after"], `${where}.after`)
  };
}
function parseWhatIf(value) {
  const whatIf = asRecord(value, "what_if");
  return {
    threshold: asNumberOrNull(whatIf["threshold"], "what_if.threshold"),
    policy: asString(whatIf["policy"], "what_if.policy"),
    look_ups: asList(whatIf["look_ups"], "what_if.look_ups").map((row, i) => {
      const where = `what_if.look_ups.${i}`;
      const supposed = asRecord(row, where);
      return {
        at: asCount(supposed["at"], `${where}.at`),
        trigger_steps: asIndices(supposed["trigger_steps"], `${where}.trigger_steps`),
        reason: asString(supposed["reason"], `${where}.reason`)
      };
    }),
    runs: asBoolean(whatIf["runs"], "what_if.runs")
  };
}
function parseBudget(value) {
  const budget = asRecord(value, "budget");
  const count2 = (name) => asCount(budget[name], `budget.${name}`);
  const countOrNull = (name) => budget[name] === null ? null : count2(name);
  return {
    retrievals: count2("retrievals"),
    max_retrievals: count2("max_retrievals"),
    fruitless: count2("fruitless"),
    kept: count2("kept"),
    decoded: count2("decoded"),
    context_tokens: countOrNull("context_tokens"),
    max_context_tokens: countOrNull("max_context_tokens")
  };
}
function parseBeside(value) {
  return asList(value, "beside").map((entry2, i) => {
    const where = `beside.${i}`;
    const row = asRecord(entry2, where);
    return {
      policy: asString(row["policy"], `${where}.policy`),
      answer: asString(row["answer"], `${where}.answer`),
      look_ups: asCount(row["look_ups"], `${where}.look_ups`),
      decoded: asCount(row["decoded"], `${where}.decoded`),
      prefilled: asCount(row["prefilled"], `${where}.prefilled`),
      ms: asNumberOrNull(row["ms"], `${where}.ms`),
      running: asBoolean(row["running"], `${where}.running`),
      failed: asString(row["failed"], `${where}.failed`),
      shown: asBoolean(row["shown"], `${where}.shown`)
    };
  });
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
function pick(row) {
  return { type: "pick", v: PROTOCOL_VERSION, row };
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
  if (has(data, "look_ups")) update.look_ups = parseLookUps(data["look_ups"]);
  if (has(data, "retrieved")) update.retrieved = asIndices(data["retrieved"], "retrieved");
  if (has(data, "what_if")) update.what_if = parseWhatIf(data["what_if"]);
  if (has(data, "beside")) update.beside = parseBeside(data["beside"]);
  if (has(data, "budget")) update.budget = parseBudget(data["budget"]);
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
  if (has(info, "policy")) parsed.policy = parsePolicy(info["policy"]);
  return parsed;
}
function parseBranchPoint(value) {
  const point2 = asRecord(value, "info.branch");
  return {
    at: asCount(point2["at"], "info.branch.at"),
    text: asString(point2["text"], "info.branch.text")
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

// src/places.ts
function placesOf(flags, rewinds = []) {
  const back = /* @__PURE__ */ new Map();
  for (const { at, keep, outcome } of rewinds) if (outcome === "found") back.set(at, keep);
  const places = { of: [], kept: [], drafts: [], count: 0 };
  let next = 0;
  for (let i = 0; i < flags.length; i++) {
    next = Math.min(next, back.get(i) ?? next);
    const kept = ((flags[i] ?? 0) & FLAGS.kept) !== 0;
    if (kept) {
      next = places.kept.length;
      places.kept.push(i);
    } else extend(places.drafts, i, back.has(i));
    places.of.push(next);
    next++;
    places.count = Math.max(places.count, next);
  }
  return places;
}
function extend(drafts, i, anew) {
  const last = drafts.at(-1);
  if (last !== void 0 && last[1] === i && !anew) last[1] = i + 1;
  else drafts.push([i, i + 1]);
}
function placeAt(places, at) {
  return places.of[at] ?? places.kept.length;
}
function stepBefore(places, at, place) {
  for (let i = Math.min(at, places.of.length) - 1; i >= 0; i--) if (places.of[i] === place) return i;
  return null;
}

// src/look_up_words.ts
var QUOTE = 48;
function whereMade(row, places, text) {
  if (row.upfront) return "before the answer";
  const before = textBefore(row, places, text);
  return before === "" ? `at token ${row.keep}` : `at token ${row.keep}, after “${before}”`;
}
function textBefore(row, places, text) {
  let found = "";
  for (let place = row.keep - 1; place >= 0 && found.length <= QUOTE; place--) {
    const step = stepBefore(places, row.at, place);
    if (step === null) break;
    found = text(step) + found;
  }
  const plain = found.replace(/\s+/gu, " ").trim();
  if (plain.length <= QUOTE) return plain;
  const cut = Array.from(plain).slice(-QUOTE).join("");
  return `…${cut.slice(cut.indexOf(" ") + 1)}`;
}
function outcomeText({ outcome, hits, note }) {
  const added = hits.filter((hit) => hit.added).length;
  switch (outcome) {
    case "found":
      return added < hits.length ? `${plural(hits.length, "passage")}, ${count(added)} of them new in the prompt` : plural(hits.length, "passage");
    case "nothing":
      return joined(hits.length > 0 ? "nothing new" : "nothing", note, "the text went on");
    case "failed":
      return joined(note || "the look-up failed", "the text went on");
    case "timeout":
      return joined(note || "no answer in time", "the text went on");
  }
}
function whyNotAdded(hit, earlier) {
  const known = earlier.some(({ hits }) => hits.some(({ id, added }) => added && id === hit.id));
  return known ? "was in the prompt already" : "did not enter the prompt";
}
function costText(row) {
  const words = [];
  if (row.dropped > 0) words.push(`dropped ${plural(row.dropped, "token")}`);
  if (row.prefill_tokens !== null) words.push(`read ${plural(row.prefill_tokens, "token")}`);
  if (row.reused_tokens !== null) words.push(`re-used ${count(row.reused_tokens)}`);
  if (row.ms !== null) words.push(`look-up ${duration(row.ms)}`);
  if (row.prefill_ms !== null) words.push(`reading ${duration(row.prefill_ms)}`);
  return words;
}
function duration(ms) {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  return ms < 1e3 ? `${Math.round(ms)} ms` : seconds(ms / 1e3);
}
function joined(...parts) {
  return parts.filter((part) => part !== "").join("; ");
}

// src/beside.ts
function budgetFigures(budget) {
  const { context_tokens: context, max_context_tokens: most } = budget;
  const passages = context === null ? "" : count(context);
  const limit = most === null ? "" : ` of ${count(most)}`;
  return [
    ["look-ups that found", `${count(budget.retrievals)} of ${count(budget.max_retrievals)}`],
    ["in vain", count(budget.fruitless)],
    ["tokens kept", `${count(budget.kept)} of ${count(budget.decoded)} decoded`],
    ["tokens of passages", passages === "" ? "–" : passages + limit]
  ];
}
var BudgetLine = class {
  node = h("dl", { class: "budget", "data-testid": "budget", "aria-label": "budget used" });
  #shown = null;
  update(budget) {
    this.node.hidden = budget === null;
    if (budget === null || budget === this.#shown) return;
    this.#shown = budget;
    this.node.replaceChildren(
      ...budgetFigures(budget).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))
    );
  }
};
var COLUMNS2 = ["policy", "answer", "look-ups", "decoded", "read", "time"];
var BesideTable = class {
  node = h("section", { class: "beside", "data-testid": "beside", hidden: true });
  #body = h("tbody", {});
  #shown = [];
  /** `onPick`: the reader wants to see the run of a row. */
  constructor(onPick, signal) {
    const head = h(
      "tr",
      {},
      ...COLUMNS2.map((name, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, name))
    );
    const columns = COLUMNS2.map((name) => h("col", { class: `beside-${name}` }));
    const table = h("table", {}, h("colgroup", {}, ...columns), h("thead", {}, head), this.#body);
    table.setAttribute("aria-label", "the same question under other policies");
    this.node.append(h("h3", {}, "The same question under other policies"), table);
    this.#body.addEventListener(
      "click",
      (event) => {
        const target = event.target instanceof Element ? event.target : null;
        const button2 = target?.closest("[data-row]");
        if (button2) onPick(Number(button2.dataset["row"]));
      },
      { signal }
    );
  }
  /** `offers`: somebody is there who can show the run of a row. */
  update(rows, offers) {
    this.node.hidden = rows.length === 0;
    if (rows === this.#shown) return;
    this.#shown = rows;
    const root = this.node.getRootNode();
    const active = root instanceof ShadowRoot ? root.activeElement : null;
    const focused = active instanceof HTMLElement ? active.dataset["row"] : void 0;
    this.#body.replaceChildren(...rows.map((row, i) => besideRow(row, i, offers)));
    if (focused !== void 0) this.#body.querySelector(`[data-row="${focused}"]`)?.focus();
  }
};
function besideRow(row, i, offers) {
  const { policy, answer, failed, running, shown } = row;
  const waits = !running && failed === "" && row.ms === null;
  const numbers = waits || failed !== "" ? ["–", "–", "–", "–"] : figures(row);
  const name = offers && !shown && !waits && failed === "" ? h(
    "button",
    { type: "button", class: "link", "data-row": i, title: `show the run of ${policy}` },
    policy
  ) : policy;
  const state = failed !== "" ? "failed" : running ? "running" : waits ? "waits" : "";
  return h(
    "tr",
    {
      class: `${state}${shown ? " chosen" : ""}`.trim(),
      "data-testid": "beside-row",
      "aria-current": shown ? "true" : null
    },
    h("th", { scope: "row" }, name),
    h("td", { class: "answer" }, answerText(answer, failed, running, waits)),
    ...numbers.map((number) => h("td", { class: "number" }, number))
  );
}
function figures({ look_ups, decoded, prefilled, ms }) {
  return [
    count(look_ups),
    count(decoded),
    count(prefilled),
    ms === null ? "–" : duration(ms)
  ];
}
function answerText(answer, failed, running, waits) {
  if (failed !== "") return h("span", { class: "fault" }, `failed: ${failed}`);
  if (waits) return h("span", { class: "quiet" }, "waits for its turn");
  const text = h("bdi", { class: "answer-text", title: answer }, answer.trim());
  return running ? h("span", { class: "unfinished" }, text, h("span", { class: "state" }, "running")) : text;
}

// src/passage.ts
var SHORT = 240;
var BEFORE = 60;
function excerpt(length, used) {
  if (length <= SHORT) return [0, length];
  const first = Math.min(length, ...used.map(([start2]) => start2));
  const start = first < length && first > SHORT - BEFORE ? Math.min(first - BEFORE, length - SHORT) : 0;
  return [start, start + SHORT];
}
function stretches(characters, used, [start, end]) {
  const found = [];
  for (let i = start; i < end; i++) {
    const inside = used.some(([first, last]) => i >= first && i < last);
    const stretch = found.at(-1);
    if (stretch !== void 0 && stretch.used === inside) stretch.text += characters[i] ?? "";
    else found.push({ text: characters[i] ?? "", used: inside });
  }
  return found;
}
function passageText({ text, used }, open) {
  const characters = Array.from(text);
  const whole = [0, characters.length];
  const shown = open ? whole : excerpt(characters.length, used);
  const body = h("bdi", { class: "passage-text" });
  if (shown[0] > 0) body.append("… ");
  for (const { text: part, used: taken } of stretches(characters, used, shown))
    body.append(taken ? h("mark", {}, part) : part);
  if (shown[1] < characters.length) body.append(" …");
  const long = characters.length > SHORT;
  return [body, long ? toggle(open, characters.length) : null];
}
function toggle(open, length) {
  const words = open ? "show less" : `show all ${length.toLocaleString("en-US")} characters`;
  return h(
    "button",
    { type: "button", class: "link", "data-action": "open", "aria-expanded": String(open) },
    words
  );
}
function sourceText({ title, source, id, score }) {
  const where = [title, source].filter((part) => part !== "");
  const named = where.length > 0 ? where : [id];
  return [...named, score === null ? "" : `score ${score.toFixed(2)}`].filter((part) => part !== "").join(" · ");
}

// src/look_ups.ts
var LONG_QUERY = 180;
var LookUps = class {
  node = h("div", { class: "look-ups", "data-testid": "look-ups" });
  #events;
  #list = h("ol", { class: "timeline" });
  #none = h("p", { class: "quiet" });
  #cards = [];
  /** What is open, as `card hit`; a query is hit -1. */
  #open = /* @__PURE__ */ new Set();
  #run = null;
  #rows = [];
  #places = placesOf([]);
  #store = null;
  #selected = null;
  constructor(events, signal) {
    this.#events = events;
    this.node.append(this.#none, this.#list);
    this.#list.addEventListener("click", (event) => this.#click(event.target), { signal });
    this.#list.addEventListener("keydown", (event) => this.#key(event), { signal });
  }
  update(store, places) {
    if (store.run !== this.#run) {
      this.#run = store.run;
      this.#open.clear();
      this.#cards = [];
      this.#list.replaceChildren();
    }
    const grown = store.lookUps.length > this.#rows.length;
    this.#store = store;
    this.#rows = store.lookUps;
    this.#places = places;
    this.#none.hidden = this.#rows.length > 0;
    setText(this.#none, noneText(store));
    this.#rows.forEach((_, k) => void this.#updateCard(k));
    for (const { node } of this.#cards.splice(this.#rows.length)) node.remove();
    if (grown && store.live && this.#selected === null) this.#reveal(this.#cards.length - 1);
  }
  select(index) {
    this.#selected = index;
    this.#cards.forEach(({ node }, k) => void mark(node, k === index));
    if (index !== null) this.#reveal(index);
  }
  /** Cards that have not changed stay the same elements: a focus or a selection in them is left alone. */
  #updateCard(k) {
    const row = this.#rows[k];
    const store = this.#store;
    if (row === void 0 || store === null) return;
    const where = whereMade(row, this.#places, (step) => store.text(step));
    const open = [...this.#open].filter((name) => name.startsWith(`${k} `)).join();
    const view = `${where}|${open}`;
    const known = this.#cards[k];
    if (known?.row === row && known.view === view) return;
    const key = JSON.stringify(row);
    if (known?.key === key && known.view === view) {
      known.row = row;
      return;
    }
    const node = known?.node ?? h("li", { class: "look-up", "data-testid": "look-up", "data-card": k });
    const focused = known === void 0 ? null : focusWithin(node);
    node.replaceChildren(...this.#content(k, row, where));
    node.dataset["outcome"] = row.outcome;
    mark(node, k === this.#selected);
    if (known === void 0) this.#list.append(node);
    this.#cards[k] = { node, row, key, view };
    if (focused !== null) buttons(node)[focused]?.focus({ preventScroll: true });
  }
  #content(k, row, where) {
    const title = h("button", { type: "button", class: "look-up-title", "data-action": "select" });
    title.append(h("span", { class: "number" }, String(k + 1)), h("bdi", {}, where));
    const parts = [
      ["why", [h("bdi", {}, row.reason)]],
      ["asked", this.#query(row.query, this.#open.has(`${k} -1`))],
      ["found", [h("span", { class: "outcome" }, outcomeText(row))]]
    ];
    const list = h("dl", {}, ...parts.flatMap(([name, children]) => entry(name, ...children)));
    const earlier = this.#rows.slice(0, k);
    if (row.hits.length > 0) list.append(this.#hits(k, row.hits, earlier));
    if (row.outcome === "found" && row.note !== "") list.append(...entry("note", h("bdi", {}, row.note)));
    if (row.chances.length > 0) list.append(...entry("changed", chanceTable(row.chances)));
    const cost = costText(row);
    if (cost.length > 0) list.append(...entry("cost", cost.join(" · ")));
    return [h("h4", {}, title), list];
  }
  #query(query, open) {
    const long = query.length > LONG_QUERY;
    const text = h("q", { class: long && !open ? "cut" : "", dir: "auto" }, query);
    const attributes = { type: "button", class: "link", "data-action": "open", "data-hit": -1 };
    const button2 = h(
      "button",
      { ...attributes, "aria-expanded": String(open) },
      open ? "show less" : "show all"
    );
    return [text, long ? button2 : null];
  }
  #hits(k, hits, earlier) {
    const items = hits.map((hit, i) => {
      const [text, button2] = passageText(hit, this.#open.has(`${k} ${i}`));
      if (button2 instanceof HTMLElement) button2.dataset["hit"] = String(i);
      const why = hit.added ? null : h("span", { class: "why-not" }, whyNotAdded(hit, earlier));
      const source = h("span", { class: "source" }, h("bdi", {}, sourceText(hit)), why);
      return h("li", { class: hit.added ? "hit" : "hit left-out" }, text ?? null, source, button2 ?? null);
    });
    return h("dd", { class: "hits" }, h("ul", {}, ...items));
  }
  #click(target) {
    if (!(target instanceof Element)) return;
    const card = target.closest("[data-card]");
    const button2 = target.closest("button");
    if (card === null) return;
    const k = Number(card.dataset["card"]);
    if (button2?.dataset["action"] === "open") this.#toggle(k, Number(button2.dataset["hit"]));
    else if (button2 !== null) this.#events.onSelect(k === this.#selected ? null : k);
  }
  #toggle(k, hit) {
    const name = `${k} ${hit}`;
    if (!this.#open.delete(name)) this.#open.add(name);
    this.#updateCard(k);
  }
  #key(event) {
    if (event.key !== "Escape" || this.#selected === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#events.onSelect(null);
  }
  /** Scroll the timeline, not the page, until a card is in sight. */
  #reveal(index) {
    const card = this.#cards[index]?.node;
    if (card === void 0 || this.#list.scrollHeight <= this.#list.clientHeight) return;
    const box = card.getBoundingClientRect();
    const frame = this.#list.getBoundingClientRect();
    if (box.top < frame.top || box.height > frame.height) this.#list.scrollTop += box.top - frame.top - 2;
    else if (box.bottom > frame.bottom) this.#list.scrollTop += box.bottom - frame.bottom + 2;
  }
};
function noneText({ live, info }) {
  if (info?.policy?.name === "none") return "This policy looks nothing up.";
  return live ? "Nothing has been looked up so far." : "Nothing was looked up: the model was never in doubt as the policy understands it.";
}
function mark(card, selected) {
  card.classList.toggle("selected", selected);
  card.querySelector(".look-up-title")?.setAttribute("aria-pressed", String(selected));
}
function entry(name, ...children) {
  return [h("dt", {}, name), h("dd", {}, ...children)];
}
function chanceTable(chances) {
  const number = (value) => value === null ? "–" : prob(value);
  const rows = chances.map(
    ({ text, before, after }) => h(
      "li",
      {},
      h("bdi", { class: "label" }, visible(text)),
      h("span", { class: "numbers" }, `${number(before)} → `),
      h("b", { class: "numbers" }, number(after))
    )
  );
  return h("ul", { class: "chances", title: "raw probability before the look-up → after it" }, ...rows);
}
function buttons(card) {
  return [...card.querySelectorAll("button")];
}
function focusWithin(card) {
  const root = card.getRootNode();
  const active = root instanceof ShadowRoot || root instanceof Document ? root.activeElement : null;
  const index = active instanceof HTMLElement ? buttons(card).indexOf(active) : -1;
  return index < 0 ? null : index;
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
    const mark2 = h("span", { class: "draw-mark" });
    mark2.style.left = `${100 * step.draw}%`;
    bar.append(mark2);
  }
  const ends = h("div", { class: "draw-ends" }, h("span", {}, "0"), h("span", {}, "1"));
  ends.firstChild?.after(h("span", {}, drawSentence(step, greedy)));
  return h("div", { class: "draw" }, bar, ends);
}

// src/candidate_table.ts
var STAGE_NAMES = { top_k: "top-k", top_p: "top-p", min_p: "min-p" };
function stageName(stage) {
  return STAGE_NAMES[stage] ?? stage;
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

// src/candidates.ts
var SHORT2 = 10;
function shortList(candidates, size = SHORT2) {
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
    const key = [
      store.run,
      index,
      mode.follows,
      mode.offers,
      waits,
      store.live,
      flags,
      mode.place,
      this.#all
    ].join();
    if (key === this.#key) return;
    this.#key = key;
    const focused = this.#focused();
    this.#rendering = true;
    this.node.replaceChildren(...this.#content(this.#shown));
    this.#rendering = false;
    if (focused !== null) this.#refocus(focused, before?.run === store.run && before.index === index);
  }
  #content({ store, index, follows, offers, place }) {
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
    const head = [this.#title(step, store, follows, place), figures2(step)];
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
  #title(step, store, follows, place) {
    const label = visible(step.label || step.text);
    const states = [
      step.special ? "control token" : null,
      step.incomplete ? "part of a character" : null,
      step.forced ? "forced" : null,
      step.taken ? "taken over" : null,
      step.kept ? null : "rolled back",
      place === step.index ? null : `place ${place}`
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
    if (total <= SHORT2) return null;
    const words = this.#all ? `show the first ${SHORT2}` : `show all ${total}`;
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
function figures2(step) {
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
  lookUps = [];
  whatIf = null;
  budget = null;
  beside = [];
  numbers = emptyNumbers();
  #texts = [];
  #labels = [];
  #retrieved = /* @__PURE__ */ new Set();
  #retrievedList = [];
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
  /** Steps whose word came from a passage. */
  get retrieved() {
    return this.#retrievedList;
  }
  kept(i) {
    return (this.numbers.flags.at(i) & FLAGS.kept) !== 0;
  }
  /** How many steps were rolled back. */
  get dropped() {
    let dropped = 0;
    for (let i = 0; i < this.count; i++) if (!this.kept(i)) dropped++;
    return dropped;
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
    const late = update.seq < this.#seq;
    if (!late) this.#takeParts(update);
    if (update.steps !== void 0) this.#takeSteps(update.steps, change, late);
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
      retrieved: this.#retrieved.has(i),
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
    this.lookUps = [];
    this.#takeRetrieved([]);
    this.whatIf = null;
    this.budget = null;
    this.beside = [];
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
    if (update.look_ups !== void 0) this.lookUps = update.look_ups;
    if (update.retrieved !== void 0) this.#takeRetrieved(update.retrieved);
    if (update.what_if !== void 0) this.whatIf = update.what_if;
    if (update.budget !== void 0) this.budget = update.budget;
    if (update.beside !== void 0) this.beside = update.beside;
  }
  #takeRetrieved(indices) {
    this.#retrievedList = indices;
    this.#retrieved = new Set(indices);
  }
  #takeSteps(block, change, late) {
    const have = this.count;
    if (block.first > have) {
      change.gap = true;
      return;
    }
    const skip = Math.min(have - block.first, block.count);
    if (!late) change.reflagged = this.#takeAgain(block, skip);
    for (const name of Object.keys(STEP_COLUMNS))
      this.numbers[name].append(block.columns[name], skip);
    for (let row = skip; row < block.count; row++) {
      this.#texts.push(block.texts[row] ?? "");
      this.#labels.push(block.labels[row] ?? "");
      this.#rows.push({ block, row });
    }
  }
  /**
   * A step that comes again is the one that is known, except that it may have been rolled back since, or
   * lost text to a stop string that was found only then.
   */
  #takeAgain(block, rows) {
    const changed = [];
    for (let row = 0; row < rows; row++) {
      const i = block.first + row;
      const flags = block.columns.flags[row] ?? 0;
      const text = block.texts[row] ?? "";
      if (flags === this.numbers.flags.at(i) && text === this.#texts[i]) continue;
      this.numbers.flags.set(i, flags);
      this.#texts[i] = text;
      this.#labels[i] = block.labels[row] ?? "";
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
  const times2 = Array.from(elapsed).filter((time) => !Number.isNaN(time));
  const n = times2.length;
  const span = n < 2 ? 0 : (times2[n - 1] ?? 0) - (times2[0] ?? 0);
  return span > 0 ? (n - 1) / span : Number.NaN;
}

// src/legend.ts
var Legend = class {
  node;
  #select = h("select", { "aria-label": "colour the text by" });
  #sure = h("span", {});
  #unsure = h("span", {});
  #low = h("span", { class: "mark low" });
  /** `lookUps`: name the marks of a run that looks things up as well. */
  constructor(onMetric, signal, lookUps) {
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
      h("span", { class: "mark alternative" }, "not first choice"),
      lookUps ? h("span", { class: "mark retrieved" }, "from a passage") : null,
      lookUps ? h("span", { class: "mark dropped" }, "dropped") : null
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
function frameOf(width, height, foot = 0) {
  return {
    left: MARGIN.left,
    right: Math.max(MARGIN.left + 40, width - MARGIN.right),
    top: MARGIN.top,
    bottom: Math.max(MARGIN.top + 40, height - MARGIN.bottom - foot)
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

// src/plot_marks.ts
var NO_MARKS = { made: [], supposed: [], selected: null };
var MARKS_FOOT = 30;
var MADE_ROW = 31;
var SUPPOSED_ROW = 45;
var TRIANGLE = 9;
var DIGIT = 6.5;
var PlotMarks = class {
  /** To be laid under and over the curve of what was kept. */
  under = svg("g", { class: "marks-under" });
  over = svg("g", { class: "marks-over" });
  #bands = svg("path", { class: "shade" });
  #drafts = svg("path", { class: "draft-line" });
  #draftDots = svg("path", { class: "dots draft" });
  #doubts = svg("path", { class: "dots trigger" });
  #rings = svg("path", { class: "dots ring" });
  #ringHoles = svg("path", { class: "dots hole" });
  #chosen = svg("line", { class: "chosen-line", visibility: "hidden" });
  #rows = svg("g", { class: "mark-rows", "aria-hidden": "true" });
  #last = null;
  #rowsKey = "";
  constructor() {
    this.under.append(this.#bands, this.#chosen, this.#drafts, this.#draftDots);
    this.over.append(this.#rings, this.#ringHoles, this.#doubts, this.#rows);
  }
  /** The look-up whose triangle an event came from, or null. */
  lookUpOf(target) {
    const mark2 = target instanceof Element ? target.closest("[data-look-up]") : null;
    return mark2 === null ? null : Number(mark2.dataset["lookUp"]);
  }
  draw(drawn, marks) {
    if (this.#last !== null && isSame(this.#last, { drawn, marks })) return;
    this.#last = { drawn, marks };
    const { scale, places } = drawn;
    const { made: made2, supposed, selected } = marks;
    const bands = places.drafts.map(([first, end]) => {
      const place = places.of[first] ?? 0;
      return [place, place + end - first];
    });
    setAttributes(this.#bands, { d: shadePath(bands, scale) });
    setAttributes(this.#drafts, { d: draftPath(drawn) });
    const drafts = places.drafts.flatMap(([first, end]) => range(first, end));
    const crowded = stride(scale) < 4;
    setAttributes(this.#draftDots, { d: crowded ? "" : stepDots(drafts, drawn) });
    const triggers = (marks2) => [
      ...new Set(marks2.flatMap(({ trigger_steps }) => trigger_steps))
    ];
    const size = crowded ? " crowded" : "";
    setAttributes(this.#doubts, { d: stepDots(triggers(made2), drawn), class: `dots trigger${size}` });
    const rings = stepDots(triggers(supposed), drawn);
    setAttributes(this.#rings, { d: rings });
    setAttributes(this.#ringHoles, { d: rings });
    this.#drawRows(drawn, made2, supposed, selected);
  }
  #drawRows({ scale, places }, made2, supposed, selected) {
    const { right, top, bottom } = scale.frame;
    const xs = made2.map((mark2) => markX(mark2, places, scale));
    const x = selected === null ? void 0 : xs[selected];
    setAttributes(this.#chosen, { visibility: x === void 0 ? "hidden" : "visible" });
    if (x !== void 0) setAttributes(this.#chosen, { x1: x, x2: x, y1: top, y2: bottom });
    const triangles = labelled(xs, selected).map(({ index, text }) => {
      const at = xs[index] ?? 0;
      const chosen = index === selected;
      const edge = text.length > 1 && at + triangleWidth(index) > right + 4;
      const shown = edge ? chosen ? `${index + 1}▲` : "▲" : text;
      return { index, at, chosen, turned: edge && chosen, shown };
    });
    const suppositions = supposed.map((mark2) => markX({ ...mark2, upfront: false }, places, scale));
    const key = JSON.stringify([triangles, suppositions, right, bottom]);
    if (key === this.#rowsKey) return;
    this.#rowsKey = key;
    const name = (text, row) => svg("text", { x: right + 8, y: bottom + row, class: "unit" }, text);
    this.#rows.replaceChildren(
      ...triangles.map((mark2) => triangle(mark2, bottom + MADE_ROW)),
      ...made2.length > 0 ? [name("looked up", MADE_ROW)] : [],
      ...suppositions.map(
        (x2) => svg("text", { class: "supposed", "text-anchor": "middle", x: x2, y: bottom + SUPPOSED_ROW }, "△")
      ),
      ...supposed.length > 0 ? [name("would have", SUPPOSED_ROW)] : []
    );
  }
};
function triangle({ index, at, chosen, turned, shown }, y) {
  const name = `made${chosen ? " selected" : ""}${turned ? " last" : ""}`;
  const x = turned ? at + TRIANGLE / 2 : at - TRIANGLE / 2;
  return svg("text", { class: name, "data-look-up": index, x, y }, shown);
}
function isSame(a, b) {
  const { frame, domain } = a.drawn.scale;
  const { frame: other, domain: otherDomain } = b.drawn.scale;
  return a.drawn.values === b.drawn.values && a.drawn.places === b.drawn.places && domain === otherDomain && frame.right === other.right && frame.bottom === other.bottom && a.marks.made === b.marks.made && a.marks.supposed === b.marks.supposed && a.marks.selected === b.marks.selected;
}
function markX({ at, upfront }, places, scale) {
  return upfront ? scale.frame.left : xOf(placeAt(places, at), scale);
}
function labelled(xs, selected) {
  const order = xs.map((x, index) => ({ x, index })).sort((a, b) => a.x - b.x || a.index - b.index);
  const chosen = selected === null ? void 0 : xs[selected];
  const shown = [];
  let free = Number.NEGATIVE_INFINITY;
  order.forEach(({ x, index }, k) => {
    if (index === selected) return;
    const next = order[k + 1]?.x ?? Number.POSITIVE_INFINITY;
    const covered = chosen !== void 0 && Math.abs(chosen - x) < TRIANGLE + 2 * DIGIT;
    const room = x >= free && next - x >= triangleWidth(index) && !covered;
    shown.push({ index, text: room ? `▲${index + 1}` : "▲" });
    if (room) free = x + triangleWidth(index);
  });
  if (selected !== null && chosen !== void 0) shown.push({ index: selected, text: `▲${selected + 1}` });
  return shown;
}
function triangleWidth(index) {
  return TRIANGLE + DIGIT * String(index + 1).length;
}
function draftPath({ places, values, scale }) {
  let path = "";
  for (const [first, end] of places.drafts) {
    const place = places.of[first] ?? 0;
    const before = place > 0 ? stepBefore(places, first, place - 1) : null;
    let pen = false;
    for (const i of [...before === null ? [] : [before], ...range(first, end)]) {
      const value = values[i] ?? Number.NaN;
      if (Number.isNaN(value)) pen = false;
      else {
        path += `${pen ? "L" : "M"}${point(i, value, places, scale)}`;
        pen = true;
      }
    }
  }
  return path;
}
function stepDots(steps, { values, places, scale }) {
  let path = "";
  for (const i of steps) {
    const value = values[i] ?? Number.NaN;
    if (!Number.isNaN(value)) path += `M${point(i, value, places, scale)}h0`;
  }
  return path;
}
function point(i, value, places, scale) {
  const round = (pixels) => Math.round(pixels * 10) / 10;
  return `${round(xOf(places.of[i] ?? i, scale))} ${round(yOf(value, scale.frame))}`;
}
function range(first, end) {
  return Array.from({ length: end - first }, (_, k) => first + k);
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
var NOTHING = { values: new Float64Array(0), flags: [], live: false, branchedAt: 0 };
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
  #marksLayer = new PlotMarks();
  #options;
  #data = NOTHING;
  #places = placesOf([]);
  /** The values of the steps that stand, by place. */
  #kept = NOTHING.values;
  #marks = NO_MARKS;
  #selected = null;
  #firm = false;
  #size = DEFAULT_SIZE;
  #scale = { frame: frameOf(DEFAULT_SIZE.width, DEFAULT_SIZE.height), domain: 2 };
  constructor(events, signal, options = { marks: false }) {
    this.#events = events;
    this.#options = options;
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
      this.#marksLayer.under,
      this.#branchLine,
      this.#axis,
      this.#curve,
      this.#dots,
      this.#lowDots,
      this.#marksLayer.over,
      this.#selection,
      this.#hoverLine,
      this.#hoverDot,
      this.#line.node
    );
    const by = options.marks ? " by place in the answer; dashed: dropped" : " by token";
    const title = h("div", { class: "plot-title" }, h("b", {}, "raw max probability"), by);
    const canvas = h("div", { class: "canvas" }, this.#svg);
    this.node = h("div", { class: "plot", "data-testid": "plot" }, title, canvas);
    this.#svg.addEventListener("pointermove", (event) => this.#hover(event), { signal });
    this.#svg.addEventListener("pointerleave", () => this.#leave(), { signal });
    this.#svg.addEventListener("click", (event) => this.#select(event), { signal });
    this.#watchSize(canvas, signal);
  }
  get dragging() {
    return this.#line.dragging;
  }
  /** Redraw with this data, and these marks of look-ups. */
  setData(data, marks = NO_MARKS) {
    this.#data = data;
    this.#marks = marks;
    this.#places = placesOf(data.flags, marks.made);
    const { kept, drafts } = this.#places;
    this.#kept = drafts.length === 0 ? data.values : Float64Array.from(kept, (i) => data.values[i] ?? Number.NaN);
    this.#draw();
  }
  /** Where the steps stand on the axis. */
  get places() {
    return this.#places;
  }
  setThreshold(value, marks = NO_MARKS) {
    const { made: made2, supposed, selected } = this.#marks;
    const same = made2 === marks.made && supposed === marks.supposed && selected === marks.selected;
    if (same && value === this.#line.value) return;
    this.#line.value = value;
    this.#marks = marks;
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
    const value = this.#valueOf(index);
    const visibility = Number.isNaN(value) ? "hidden" : "visible";
    setAttributes(this.#hoverLine, { visibility });
    setAttributes(this.#hoverDot, { visibility });
    if (index === null || Number.isNaN(value)) return;
    const { top, bottom } = this.#scale.frame;
    const x = this.#xOf(index);
    setAttributes(this.#hoverLine, { x1: x, x2: x, y1: top, y2: bottom });
    setAttributes(this.#hoverDot, { cx: x, cy: yOf(value, this.#scale.frame) });
  }
  #watchSize(canvas, signal) {
    if (typeof ResizeObserver !== "function") return;
    const observer = new ResizeObserver(([entry2]) => {
      const box = entry2?.contentRect;
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
  #valueOf(index) {
    return index === null ? Number.NaN : this.#data.values[index] ?? Number.NaN;
  }
  #xOf(index) {
    return xOf(this.#places.of[index] ?? index, this.#scale);
  }
  /** The step at a point: of those that share a place the one that is nearest in height. */
  #stepAt({ x, y }) {
    const place = indexAt(x, this.#scale, this.#places.count);
    if (place === null) return null;
    const { kept, drafts, of } = this.#places;
    let best = kept[place] ?? null;
    const height = (index) => Math.abs(yOf(this.#valueOf(index), this.#scale.frame) - y);
    for (const [first, end] of drafts) {
      const index = first + place - (of[first] ?? 0);
      if (index < first || index >= end) continue;
      if (best === null || height(index) < height(best)) best = index;
    }
    return best;
  }
  #hover(event) {
    const index = this.#stepAt(this.#point(event));
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
  #select(event) {
    if (this.#line.justDragged) return;
    const lookUp = this.#marksLayer.lookUpOf(event.target);
    const index = this.#stepAt(this.#point(event));
    if (lookUp !== null) this.#events.onLookUp(lookUp);
    else if (index !== null) this.#events.onSelect(index);
  }
  #draw() {
    const { width, height } = this.#size;
    const values = this.#kept;
    const threshold = this.#line.value;
    const foot = this.#options.marks ? MARKS_FOOT : 0;
    this.#scale = {
      frame: frameOf(width, height, foot),
      domain: domainOf(this.#places.count, this.#data.live)
    };
    const scale = this.#scale;
    const step = stride(scale);
    setAttributes(this.#svg, { viewBox: `0 0 ${width} ${height}`, width, height });
    this.#drawAxes();
    this.#drawBranch();
    const shaded = this.#options.marks ? [] : lowRuns(values, threshold);
    setAttributes(this.#shade, { d: shadePath(shaded, scale) });
    setAttributes(this.#curve, { d: curvePath(values, scale), class: step < 1 ? "curve dense" : "curve" });
    setAttributes(this.#dots, { d: step < DOTS_FROM ? "" : dotsPath(values, scale, (v) => v >= threshold) });
    setAttributes(this.#lowDots, { d: dotsPath(values, scale, (v) => v < threshold) });
    this.#lowDots.style.strokeWidth = step < DOTS_FROM ? `${Math.max(2, step)}px` : "";
    const { values: all } = this.#data;
    this.#marksLayer.draw({ values: all, places: this.#places, scale }, this.#marks);
    this.#drawSelection();
    this.#line.draw(width);
  }
  #drawBranch() {
    const { branchedAt, values } = this.#data;
    const shown = branchedAt > 0 && branchedAt <= values.length;
    setAttributes(this.#branchLine, { visibility: shown ? "visible" : "hidden" });
    if (!shown) return;
    const { top, bottom } = this.#scale.frame;
    const x = xOf(placeAt(this.#places, branchedAt) - 0.5, this.#scale);
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
    const name = this.#places.drafts.length > 0 ? "place" : "token";
    const unit = svg("text", { x: right + 8, y: bottom + 15, class: "unit" }, name);
    this.#axis.replaceChildren(...rows, ...columns, unit);
  }
  #drawSelection() {
    const index = this.#selected;
    const value = this.#valueOf(index);
    this.#selection.replaceChildren();
    this.#selection.classList.toggle("firm", this.#firm);
    if (index === null || index >= this.#data.values.length) return;
    const { left, right, top, bottom } = this.#scale.frame;
    const x = this.#xOf(index);
    this.#selection.append(svg("line", { x1: x, x2: x, y1: top, y2: bottom }));
    if (!Number.isNaN(value)) {
      const low = value < this.#line.value;
      const y = yOf(value, this.#scale.frame);
      this.#selection.append(svg("circle", { cx: x, cy: y, r: 4.5, class: low ? "low" : "" }));
    }
    const place = String(this.#places.of[index] ?? index);
    const label = svg("text", { y: bottom + 15, class: "tick" }, place);
    const half = 5 + 3.5 * place.length;
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
  if (store.state === "looking_up") return "looking_up";
  if (store.state === "prefilling" && store.count > 0 && store.lookUps.length > 0) return "rereading";
  return store.count === 0 ? "prefilling" : "running";
}
function endedBy(reason, detail) {
  const words = REASONS[reason] ?? reason;
  if (reason === "stopped") return `ended by ${words}`;
  if (reason === "stop" || words === "") return detail || words ? `ended by ${detail || words}` : "";
  return detail === "" ? `ended by ${words}` : `ended by ${words} (${detail})`;
}
function statusText(store, empty = EMPTY) {
  const tokens2 = tokensText(store);
  switch (phaseOf(store)) {
    case "empty":
      return empty;
    case "prefilling":
      return prefillText(store, "reading the prompt");
    case "looking_up":
      return joined2("looking up…", store.count === 0 ? "" : tokens2);
    case "rereading":
      return joined2(prefillText(store, "reading the passages"), tokens2);
    case "paused":
      return `paused · ${tokens2}`;
    case "failed":
      return store.count === 0 ? "failed before the first token" : `failed after ${tokens2}`;
    case "running":
      return joined2(tokens2, speedText(tokensPerSecond(store.numbers.elapsed.values)));
    case "finished":
      return finishText(store, tokens2);
  }
}
function tokensText(store) {
  const { dropped, count: count2, finish } = store;
  if (dropped === 0) return plural(finish?.completion_tokens ?? count2, "token");
  return `${plural(count2 - dropped, "token")} kept, ${count(dropped)} dropped`;
}
function prefillText({ prefill, state }, what) {
  if (state === "waiting") return "waiting for the model";
  if (prefill === null || prefill.total === 0) return what;
  return `${what} ${count(prefill.done)} / ${plural(prefill.total, "token")}`;
}
function finishText(store, tokens2) {
  const { finish } = store;
  if (finish === null) return tokens2;
  const first = finish.ttft_ms === null ? "" : `first after ${seconds(finish.ttft_ms / 1e3)}`;
  const speed2 = finish.tokens_per_second === null ? "" : speedText(finish.tokens_per_second);
  return joined2(tokens2, speed2, first, endedBy(finish.stop_reason, finish.stop_detail));
}
function speedText(value) {
  return Number.isFinite(value) ? speed(value) : "";
}
function joined2(...parts) {
  return parts.filter((part) => part !== "").join(" · ");
}
var SPOKEN = {
  prefilling: "Reading the prompt.",
  running: "Generating.",
  looking_up: "Looking something up.",
  rereading: "Reading the passages."
};
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
  #empty;
  /** `empty` is said before there is a run. */
  constructor(empty) {
    this.#empty = empty;
    this.node = h("div", { class: "status", "data-testid": "status" }, this.#bar, this.#text);
  }
  update(store) {
    const phase = phaseOf(store);
    const text = statusText(store, this.#empty);
    setText(this.#text, text);
    this.node.dataset["phase"] = phase;
    this.#progress(store, phase);
    if (phase === this.#phase) return;
    const first = this.#phase === null;
    this.#phase = phase;
    if (!first) setText(this.spoken, SPOKEN[phase] ?? text);
  }
  #progress({ prefill }, phase) {
    const reads = phase === "prefilling" || phase === "rereading";
    this.#bar.hidden = !reads || prefill === null || prefill.total === 0;
    if (this.#bar.hidden || prefill === null) return;
    const share2 = Math.min(1, prefill.done / prefill.total);
    this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * share2)));
    const fill2 = this.#bar.firstElementChild;
    if (fill2 instanceof HTMLElement) fill2.style.width = `${100 * share2}%`;
  }
};

// src/flare_styles.ts
var TEXT = `
.token.retrieved { background-image: linear-gradient(var(--retrieved-bg), var(--retrieved-bg)); box-shadow: 0 2px 0 var(--retrieved); }
.token.retrieved.forced { box-shadow: 0 2px 0 var(--retrieved), inset 0 0 0 1px var(--dim); }
.dropped { color: var(--dim); user-select: none; -webkit-user-select: none; }
/* Not the blank before a draft: a stroke through it reads as a dash. */
.token.dropped, .dropped + .gap.dropped { text-decoration: line-through 1.3px; }
.token.dropped { background-color: transparent; }
.token.dropped.low { border-bottom-color: color-mix(in srgb, var(--low) 60%, transparent); }
.look-up-mark {
  display: inline-block; min-width: 15px; margin: 0 3px; padding: 0 4px; border-radius: 8px; text-align: center; vertical-align: 5px;
  font: 700 10px/14px var(--mono); color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent);
  cursor: pointer; user-select: none; -webkit-user-select: none; text-decoration: none;
}
.look-up-mark::before { content: attr(data-sign); }
.look-up-mark.vain { color: var(--accent); background: var(--bg); border-style: dashed; }
.look-up-mark:hover { box-shadow: 0 0 0 2px color-mix(in srgb, var(--accent) 35%, transparent); }
.look-up-mark.selected { outline: 2px solid var(--accent); outline-offset: 1.5px; }
.look-up-mark:focus-visible { outline: 2px solid var(--accent); outline-offset: 1.5px; box-shadow: 0 0 0 5px color-mix(in srgb, var(--accent) 30%, transparent); }
.mark.retrieved { border-bottom: 2px solid var(--retrieved); background: var(--retrieved-bg); }
.mark.dropped { text-decoration: line-through 1.3px; }
.flare .legend { gap: 4px 8px; }
.flare .legend select { width: 182px; }
.flare .ramp { width: 24px; }
.rule .name { font-weight: 600; }
.rule .chip { white-space: normal; overflow-wrap: anywhere; min-width: 0; }
`;
var MARKS = `
.flare .canvas { min-height: 190px; max-height: 260px; }
.draft-line { fill: none; stroke: var(--raw); stroke-width: 1.2; stroke-dasharray: 3 2.5; stroke-linejoin: round; }
.dots.draft { stroke: var(--raw); stroke-width: 4; }
.dots.trigger { stroke: var(--low); stroke-width: 7.5; }
.dots.ring { stroke: var(--low); stroke-width: 10; }
.dots.hole { stroke: var(--bg); stroke-width: 6.5; }
.chosen-line { stroke: var(--accent); stroke-width: 1; }
.mark-rows .made { fill: var(--accent); font-weight: 700; cursor: pointer; }
.mark-rows .made.last { text-anchor: end; }
.dots.crowded { stroke-width: 3.5; }
.mark-rows .made:hover, .mark-rows .selected { text-decoration: underline; }
.mark-rows .supposed { fill: var(--removed); font-size: 12px; }
`;
var BELOW = `
.below { display: grid; gap: 6px; padding: 2px 0 6px; min-width: 0; }
.what-if { margin: 0; font-size: 12.5px; min-height: 18px; }
.what-if .caveat { color: var(--dim); }
.what-if .caveat::before { content: "· "; }
.what-if.late { color: var(--dim); }
.budget { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0; font-size: 12px; color: var(--dim); }
.budget div { display: flex; gap: 5px; white-space: nowrap; }
.budget dd { margin: 0; color: var(--fg); font: 12px/1.5 var(--mono); }
.beside { margin-top: 4px; min-width: 0; overflow-x: auto; }
.beside h3 { margin: 0 0 3px; font-size: 12.5px; font-weight: 600; }
.beside table { min-width: 430px; }
.beside tr { height: auto; }
.beside :is(th, td) { padding: 3px 4px; vertical-align: top; }
.beside tbody :is(th, td) { border-top: 1px solid var(--line); }
.beside tbody th { color: var(--fg); font-size: 12px; overflow-wrap: anywhere; white-space: normal; }
.beside td.answer { white-space: normal; overflow-wrap: anywhere; }
.beside .answer-text { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.beside .unfinished { display: flex; gap: 6px; align-items: baseline; }
.beside .link { margin: 0; padding: 0; text-align: start; }
.beside .fault { color: var(--removed); }
.beside .quiet { margin: 0; }
.beside tr.chosen th { background: var(--chosen-bg); font-weight: 600; }
.beside-policy { width: 84px; } .beside-answer { width: auto; } .beside-look-ups { width: 58px; } .beside-decoded, .beside-read { width: 56px; } .beside-time { width: 62px; }
`;
var TIMELINE = `
.tabbed { display: flex; flex-direction: column; min-width: 0; background: var(--soft); }
.tabbed .side { background: none; }
.tabs { display: flex; gap: 2px; padding: 0 8px; border-bottom: 1px solid var(--line); }
.tab { font: 12.5px var(--sans); color: var(--dim); background: none; border: 0; border-bottom: 2px solid transparent; margin-bottom: -1px; padding: 7px 8px 6px; cursor: pointer; font-variant-numeric: tabular-nums; }
.tab:hover { color: var(--fg); }
.tab[aria-selected="true"] { color: var(--fg); font-weight: 600; border-bottom-color: var(--accent); }
.tab:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.look-ups { padding: 10px 12px; min-width: 0; min-height: 300px; }
.timeline { list-style: none; margin: 0; padding: 2px; display: grid; gap: 9px; max-height: 620px; overflow: hidden auto; scrollbar-width: thin; }
.look-up { border: 1px solid var(--line); border-left: 3px solid var(--accent); border-radius: 0 5px 5px 0; background: var(--bg); padding: 6px 10px 8px; min-width: 0; }
.look-up:not([data-outcome="found"]) { border-left-style: dashed; }
.look-up.selected { box-shadow: 0 0 0 1px var(--accent); border-color: var(--accent); }
.look-up h4 { margin: 0 0 3px; font-size: 12.5px; line-height: 1.35; }
.look-up-title { font: 600 12.5px/1.35 var(--sans); color: var(--fg); background: none; border: 0; padding: 0; text-align: start; cursor: pointer; border-radius: 3px; overflow-wrap: anywhere; }
.look-up-title:hover bdi { text-decoration: underline; text-decoration-thickness: 1px; }
.look-up-title:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.look-up-title .number { display: inline-block; min-width: 15px; margin-right: 6px; padding: 0 4px; border-radius: 8px; font: 700 10px/15px var(--mono); text-align: center; vertical-align: 1px; color: var(--on-accent); background: var(--accent); }
.look-up:not([data-outcome="found"]) .number { color: var(--accent); background: var(--bg); box-shadow: inset 0 0 0 1px var(--accent); }
.look-up dl { display: grid; grid-template-columns: 52px minmax(0, 1fr); gap: 2px 6px; margin: 0; font-size: 12px; }
.look-up dt { color: var(--dim); }
.look-up dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.look-up q { font-style: italic; quotes: none; unicode-bidi: plaintext; }
.look-up q.cut { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.look-up:is([data-outcome="failed"], [data-outcome="timeout"]) .outcome { color: var(--removed); }
.look-up .hits { grid-column: 2; }
.look-up .link { margin: 0; padding: 0; }
.hits ul, .chances { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px; }
.hit { border-left: 2px solid var(--retrieved); padding-left: 7px; }
.hit.left-out { border-left: 2px dotted var(--dim); color: var(--dim); }
.hit mark { background: var(--retrieved-bg); color: inherit; border-bottom: 2px solid var(--retrieved); border-radius: 2px; }
.passage-text { white-space: pre-line; }
.source { display: block; color: var(--dim); font-size: 11px; }
.why-not { font-style: italic; }
.why-not::before { content: " · "; }
.chances { gap: 1px; }
.chances li { display: flex; gap: 7px; align-items: baseline; min-width: 0; }
.chances .label { max-width: 60%; background: var(--soft); }
.card[data-none] :is(.tabbed, .below) { display: none; }
.card[data-bare] .below .what-if { display: none; }
@media (forced-colors: active) { .token.retrieved { box-shadow: 0 2px 0 CanvasText; } .look-up-mark { border-color: CanvasText; } }
`;
var FLARE_STYLES = TEXT + MARKS + BELOW + TIMELINE;

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
  --retrieved: #0f7a4f;
  --retrieved-bg: rgb(22 140 90 / .17);
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
  --retrieved: #4fd39a;
  --retrieved-bg: rgb(60 190 130 / .24);
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
  .view, .view.dark { --processed: Highlight; --raw: GrayText; --accent: Highlight; --low: CanvasText; --removed: CanvasText; --branch: CanvasText; --retrieved: CanvasText; --line: CanvasText; --bg: Canvas; --fg: CanvasText; --dim: CanvasText; --on-accent: HighlightText; }
  .segment { border: 1px solid CanvasText; }
  .token { border-bottom-color: Canvas; }
  .token.low { border-bottom-color: CanvasText; }
  tr.chosen { outline: 2px solid Highlight; outline-offset: -2px; }
}
`;
var STYLES = THEME + CARD + META + TOKENS + PLOT + SIDE + FLARE_STYLES + REST2;

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
    const policy = info.policy;
    const rule = policy ? h(
      "div",
      { class: "what rule", "data-testid": "policy" },
      h("span", { class: "name" }, policy.name),
      ...[policy.trigger, policy.retriever].map(chip)
    ) : null;
    const rows = [this.#showModel ? what : null, rule, settings, info.prompt === "" ? null : asked];
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
    const standing = store.dropped === 0 ? maxProb.values : maxProb.values.filter((_, i) => kept(i));
    const runs = lowRuns(standing, threshold).length;
    const below = countBelow(standing, threshold);
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
  const range2 = rangeOf(selection, root);
  if (range2 === null || !range2.intersectsNode(node)) return null;
  const all = document.createRange();
  all.selectNodeContents(node);
  if (range2.compareBoundaryPoints(Range.START_TO_START, all) < 0) range2.setStart(node, 0);
  if (range2.compareBoundaryPoints(Range.END_TO_END, all) > 0) range2.setEnd(node, node.childNodes.length);
  return range2;
}
function rangeOf(selection, root) {
  if (root instanceof ShadowRoot && typeof selection.getComposedRanges === "function") {
    const found = selection.getComposedRanges({ shadowRoots: [root] })[0];
    if (found !== void 0) {
      const range2 = document.createRange();
      range2.setStart(found.startContainer, found.startOffset);
      range2.setEnd(found.endContainer, found.endOffset);
      return range2;
    }
  }
  return selection.getRangeAt(0).cloneRange();
}
function keptText(range2) {
  const { commonAncestorContainer: node } = range2;
  const around = node instanceof Element ? node : node.parentElement;
  if (around?.closest(".dropped")) return "";
  const part = range2.cloneContents();
  for (const dropped of part.querySelectorAll(".dropped")) dropped.remove();
  return part.textContent ?? "";
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
  if (step.retrieved) words.push("from a passage");
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
  if (step.retrieved) span.classList.add("retrieved");
  if (!step.kept) span.classList.add("dropped");
  if (step.branched) span.classList.add("branched");
  return span;
}
function pieceNodes({ text, sign }) {
  if (sign === "") return [document.createTextNode(text)];
  const mark2 = h("i", {
    class: sign === BREAK ? "sign break" : "sign",
    "data-sign": sign,
    "aria-hidden": "true"
  });
  if (text === "") return [mark2];
  return [mark2, /[\r\n]/.test(text) ? document.createTextNode(text) : h("span", { class: "unseen" }, text)];
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

// src/token_flow.ts
var TokenFlow = class {
  spans = [];
  #node;
  #store;
  #placed = [];
  #paragraph = null;
  #marks = [];
  constructor(node, store) {
    this.#node = node;
    this.#store = store;
  }
  clear() {
    this.spans.length = 0;
    this.#placed = [];
    this.#paragraph = null;
    this.#marks = [];
    this.#node.replaceChildren();
  }
  /** Add the steps that the store has and the page has not; returns the first of them. */
  append(threshold) {
    const first = this.spans.length;
    const fragment = document.createDocumentFragment();
    let paragraph = this.#paragraph;
    for (let i = first; i < this.#store.count; i++) {
      const step = this.#store.step(i);
      const { lead, body, tail } = layout(step);
      const span = makeSpan(step, body, threshold);
      const placed = { span, lead: blank(lead, step.kept), tail: blank(tail, step.kept), text: step.text };
      if (paragraph === null) {
        paragraph = newParagraph();
        fragment.append(paragraph);
      }
      for (const node of [placed.lead, span, placed.tail]) if (node !== null) paragraph.append(node);
      this.spans.push(span);
      this.#placed.push(placed);
      if (tail !== "") paragraph = null;
    }
    this.#paragraph = paragraph;
    this.#node.append(fragment);
    return first;
  }
  /** Strike a token and the blanks around it, or take the stroke away. */
  strike(i, kept) {
    const placed = this.#placed[i];
    if (placed === void 0) return;
    placed.span.classList.toggle("dropped", !kept);
    placed.lead = struck(placed.lead, kept);
    placed.tail = struck(placed.tail, kept);
  }
  describe(i, threshold) {
    this.spans[i]?.setAttribute("aria-label", describe(this.#store.step(i), threshold));
  }
  /** The first of these steps whose text is no longer the one on the page, or null. */
  rewritten(indices) {
    const found = indices.filter((i) => (this.#placed[i]?.text ?? "") !== this.#store.text(i));
    return found.length > 0 ? Math.min(...found) : null;
  }
  /** Take the tokens from step `first` on off the page, and all marks; `append` and `setMarks` bring them back. */
  cut(first) {
    for (const { node } of this.#marks.splice(0)) node.remove();
    const last = this.#placed[first - 1];
    for (const { span, lead, tail } of this.#placed.splice(first))
      for (const node of [lead, span, tail]) node?.remove();
    this.spans.length = first;
    for (const paragraph of [...this.#node.children]) if (paragraph.firstChild === null) paragraph.remove();
    this.#paragraph = last === void 0 || last.tail !== null ? null : last.span.parentElement;
  }
  /** Show these marks, in order; those that are there already stay the same elements. */
  setMarks(marks) {
    const same = this.#marks.every(({ mark: mark2 }, k) => mark2.at === marks[k]?.at);
    if (!same) for (const { node } of this.#marks.splice(0)) node.remove();
    marks.forEach((mark2, k) => {
      const shown = this.#marks[k];
      const node = shown?.node ?? this.#insert(markNode(k), mark2.at);
      node.setAttribute("aria-label", mark2.label);
      node.classList.toggle("vain", !mark2.found);
      if (shown === void 0) this.#marks.push({ mark: mark2, node });
    });
  }
  mark(k) {
    return this.#marks[k]?.node;
  }
  #insert(node, at) {
    const next = this.#placed[at];
    if (next !== void 0) {
      (next.lead ?? next.span).before(node);
      return node;
    }
    if (this.#paragraph === null) {
      this.#paragraph = newParagraph();
      this.#node.append(this.#paragraph);
    }
    this.#paragraph.append(node);
    return node;
  }
};
function nextOption(from, direction) {
  const sibling = (node2) => direction > 0 ? node2.nextElementSibling : node2.previousElementSibling;
  let node = from;
  while (node !== null) {
    let next = sibling(node);
    if (next === null) {
      const paragraph = node.parentElement === null ? null : sibling(node.parentElement);
      next = (direction > 0 ? paragraph?.firstElementChild : paragraph?.lastElementChild) ?? null;
    }
    if (next instanceof HTMLElement && next.getAttribute("role") === "option") return next;
    node = next;
  }
  return null;
}
function newParagraph() {
  return h("div", { class: "paragraph", role: "presentation" });
}
function markNode(k) {
  return h("span", {
    class: "look-up-mark",
    "data-testid": "look-up-mark",
    "data-look-up": k,
    "data-sign": k + 1,
    role: "option",
    tabindex: -1,
    "aria-selected": "false"
  });
}
function blank(text, kept) {
  if (text === "") return null;
  return kept ? document.createTextNode(text) : h("span", { class: "gap dropped" }, text);
}
function struck(node, kept) {
  if (node === null || node instanceof Text === kept) return node;
  const other = blank(node.textContent ?? "", kept);
  if (other !== null) node.replaceWith(other);
  return other;
}

// src/tokens.ts
var TokenText = class {
  node;
  #store;
  #events;
  #flow;
  #metric = "max_prob";
  #threshold = 0.4;
  #selected = null;
  #marked = null;
  #hovered = null;
  #looked = null;
  #marks = [];
  #retrieved = [];
  #tabStop = null;
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
    this.#flow = new TokenFlow(this.node, store);
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
  get #spans() {
    return this.#flow.spans;
  }
  clear() {
    this.#flow.clear();
    this.#selected = null;
    this.#marked = null;
    this.#hovered = null;
    this.#looked = null;
    this.#marks = [];
    this.#retrieved = [];
    this.#tabStop = null;
    this.#atEnd = true;
  }
  /** Add the steps that the store has and the page has not. */
  append() {
    const first = this.#flow.append(this.#threshold);
    for (let i = first; i < this.#spans.length; i++) this.#colour(i);
    if (this.#tabStop === null) this.#setTabStop(this.#spans[0] ?? null);
  }
  /** Keep the newest line in sight, unless the reader has scrolled back. */
  followEnd() {
    if (this.#atEnd) this.node.scrollTop = this.node.scrollHeight;
  }
  setMetric(metric) {
    if (metric === this.#metric) return;
    this.#metric = metric;
    for (let i = 0; i < this.#spans.length; i++) this.#colour(i);
  }
  setThreshold(threshold) {
    const before = this.#threshold;
    this.#threshold = threshold;
    const values = this.#store.numbers.max_prob.values;
    this.#spans.forEach((span, i) => {
      const value = values[i] ?? Number.NaN;
      if (value < before === value < threshold) return;
      span.classList.toggle("low", value < threshold);
      this.#flow.describe(i, threshold);
    });
  }
  /** Flags or texts of these steps have changed. */
  reflag(indices) {
    const first = this.#flow.rewritten(indices);
    if (first !== null) this.#rewrite(first);
    for (const i of indices) {
      this.#flow.strike(i, this.#store.kept(i));
      this.#flow.describe(i, this.#threshold);
    }
  }
  /** Where something was looked up. */
  setMarks(marks) {
    this.#marks = marks;
    this.#flow.setMarks(marks);
    if (this.#tabStop === null) this.#setTabStop(this.#flow.mark(0) ?? null);
  }
  /** Steps whose word came from a passage. */
  setRetrieved(indices) {
    if (indices === this.#retrieved) return;
    const before = new Set(this.#retrieved);
    const now = new Set(indices);
    this.#retrieved = indices;
    for (const i of /* @__PURE__ */ new Set([...before, ...now])) {
      if (before.has(i) === now.has(i)) continue;
      this.#toggle(i, "retrieved", now.has(i));
      this.#flow.describe(i, this.#threshold);
    }
  }
  /** Show which look-up is chosen. */
  selectLookUp(index) {
    if (index === this.#looked) return;
    for (const [k, on] of [
      [this.#looked, false],
      [index, true]
    ]) {
      const mark2 = k === null ? void 0 : this.#flow.mark(k);
      mark2?.classList.toggle("selected", on);
      mark2?.setAttribute("aria-selected", String(on));
      if (on && mark2 !== void 0) this.#reveal(mark2);
    }
    this.#looked = index;
  }
  /** `selected` is what the user chose; `marked` is what the side panel shows while it follows. */
  select(selected, marked) {
    if (selected !== this.#selected) {
      this.#toggle(this.#selected, "selected", false)?.setAttribute("aria-selected", "false");
      this.#toggle(selected, "selected", true)?.setAttribute("aria-selected", "true");
      this.#selected = selected;
      if (selected !== null) {
        this.#setTabStop(this.#spans[selected] ?? null);
        this.#reveal(this.#spans[selected]);
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
  #colour(i) {
    this.#spans[i]?.style.setProperty("--d", doubt(this.#metric, this.#store.step(i)).toFixed(3));
  }
  /** Lay the text out anew from step `first` on, as where a stop string took some of it away. */
  #rewrite(first) {
    const [selected, marked, looked, retrieved] = [
      this.#selected,
      this.#marked,
      this.#looked,
      this.#retrieved
    ];
    this.#flow.cut(first);
    if (!this.#tabStop?.isConnected) this.#tabStop = null;
    this.append();
    this.#flow.setMarks(this.#marks);
    this.#selected = this.#marked = this.#looked = null;
    this.#retrieved = [];
    this.setRetrieved(retrieved);
    this.select(selected, marked);
    this.selectLookUp(looked);
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
    this.#setTabStop(optionOf(target));
    if (target instanceof Element && target.matches(":focus-visible")) this.#hover(target);
  }
  #click(event) {
    const action = this.#choice(optionOf(event.target));
    if (action === null || !(selectionIn(this.node)?.collapsed ?? true)) return;
    action();
  }
  /** What choosing a token or a mark does. */
  #choice(option) {
    if (option === null) return null;
    const mark2 = option.dataset["lookUp"];
    const index = this.#indexOf(option);
    if (mark2 !== void 0) return () => this.#events.onLookUp(Number(mark2));
    return index === null ? null : () => this.#events.onSelect(index);
  }
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const option = optionOf(event.target);
    if (option === null) return;
    const action = this.#keyAction(event.key, option);
    if (action === null) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }
  #keyAction(key, option) {
    const focus = (to) => () => this.#focus(to ?? option);
    const index = () => this.#indexOf(option) ?? this.#indexOf(nextOption(option, -1)) ?? this.#indexOf(nextOption(option, 1)) ?? 0;
    switch (key) {
      case "Enter":
      case " ":
        return this.#choice(option);
      case "Escape":
        return () => this.#events.onSelect(null);
      case "ArrowLeft":
        return focus(nextOption(option, -1));
      case "ArrowRight":
        return focus(nextOption(option, 1));
      case "ArrowUp":
        return focus(this.#spans[nearestOnNextLine(this.#spans, index(), -1)]);
      case "ArrowDown":
        return focus(this.#spans[nearestOnNextLine(this.#spans, index(), 1)]);
      case "Home":
        return focus(this.#spans[0]);
      case "End":
        return focus(this.#spans.at(-1));
      default:
        return null;
    }
  }
  #focus(option) {
    this.#reveal(option);
    option.focus({ preventScroll: true });
  }
  #setTabStop(option) {
    if (option === null || option === this.#tabStop) return;
    this.#tabStop?.setAttribute("tabindex", "-1");
    option.setAttribute("tabindex", "0");
    this.#tabStop = option;
  }
  /** Scroll the text, not the page, until a token or a mark is in sight. */
  #reveal(span) {
    if (span === void 0 || this.node.scrollHeight <= this.node.clientHeight) return;
    const box = span.getBoundingClientRect();
    const frame = this.node.getBoundingClientRect();
    if (box.top < frame.top + 4) this.node.scrollTop -= frame.top + 4 - box.top;
    else if (box.bottom > frame.bottom - 4) this.node.scrollTop += box.bottom - frame.bottom + 4;
  }
  /**
   * Browsers turn no-break spaces into spaces and may add breaks; the copy is the answer as it was generated,
   * without what was dropped from it.
   */
  #copy(event) {
    const range2 = selectionIn(this.node);
    if (range2 === null || range2.collapsed || event.clipboardData === null) return;
    const text = keptText(range2);
    if (text !== "") event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  }
};
function optionOf(target) {
  return target instanceof Element ? target.closest('[role="option"]') : null;
}

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
  show(step, place, anchor, frame, metric) {
    setText(this.#head, place === step.index ? `token ${step.index}` : `token ${step.index}, place ${place}`);
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
  status;
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
    this.status = new Status(hooks.empty);
    this.#writer = new TraitWriter(model, signal);
    this.legend = new Legend((metric) => this.#chooseMetric(metric), signal, hooks.marks !== void 0);
    this.tokens = this.#makeTokens(signal);
    this.plot = this.#makePlot(signal);
    this.panel = this.#makePanel(signal);
  }
  get store() {
    return this.#feed.store;
  }
  /** Whether the kernel was heard of the run shown. */
  get attended() {
    return this.#feed.attended;
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
  /** The marks of look-ups have changed otherwise than by an update. */
  redrawMarks() {
    this.plot.setThreshold(this.#threshold, this.#hooks.marks?.());
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
    const onSelect = (index) => this.#chosen(index);
    return new TokenText(this.store, { onSelect, onHover, onLookUp: (k) => this.#lookUp(k) }, signal);
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
        onLookUp: (k) => this.#lookUp(k),
        onThreshold: (value, done) => this.#moveThreshold(value, done)
      },
      signal,
      { marks: this.#hooks.marks !== void 0 }
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
    this.card.toggleAttribute("data-none", store.count === 0 && !store.live && store.lookUps.length === 0);
    this.card.toggleAttribute("data-bare", store.count > 0 && !store.inspected);
    this.tokens.setRetrieved(store.retrieved);
    const { max_prob: maxProb, flags } = store.numbers;
    const { live, branchedAt } = store;
    const data = { values: maxProb.values, flags: flags.values, live, branchedAt };
    this.plot.setData(data, this.#hooks.marks?.());
    this.#showThreshold();
    this.#showSelected();
    this.#hooks.onShow?.(news);
    if (store.live) this.tokens.followEnd();
  }
  #showThreshold() {
    this.tokens.setThreshold(this.#threshold);
    this.plot.setThreshold(this.#threshold, this.#hooks.marks?.());
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
    const offers = this.#canBranch && shown !== null && this.store.kept(shown);
    const place = shown === null ? 0 : this.#placeOf(shown);
    this.panel.show(this.store, shown, { follows: selected === null, offers, place });
  }
  #placeOf(index) {
    return this.plot.places.of[index] ?? index;
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
  #lookUp(index) {
    this.#hooks.onLookUp?.(index);
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
    else this.tooltip.show(this.store.step(index), this.#placeOf(index), anchor, this.card, this.#metric);
  }
};

// src/tabs.ts
var Tabs = class {
  node;
  #tabs;
  #shown;
  constructor(tabs, label, signal) {
    this.#shown = tabs[0]?.name ?? "";
    this.#tabs = tabs.map(({ name, title, panel }) => {
      const button2 = h("button", { type: "button", role: "tab", class: "tab", "data-tab": name }, title);
      panel.setAttribute("role", "tabpanel");
      if (!panel.hasAttribute("aria-label")) panel.setAttribute("aria-label", title);
      return { name, button: button2, panel };
    });
    const row = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": label },
      ...this.#tabs.map(({ button: button2 }) => button2)
    );
    row.addEventListener("click", (event) => this.#click(event.target), { signal });
    row.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.node = h("div", { class: "tabbed" }, row, ...this.#tabs.map(({ panel }) => panel));
    this.show(this.#shown);
  }
  get shown() {
    return this.#shown;
  }
  setTitle(name, title) {
    const tab = this.#tabs.find((one) => one.name === name);
    if (tab !== void 0) setText(tab.button, title);
  }
  show(name) {
    this.#shown = name;
    for (const { name: own, button: button2, panel } of this.#tabs) {
      const on = own === name;
      panel.hidden = !on;
      button2.setAttribute("aria-selected", String(on));
      button2.setAttribute("tabindex", on ? "0" : "-1");
    }
  }
  #click(target) {
    const name = target instanceof Element ? target.closest(".tab")?.dataset["tab"] : void 0;
    if (name !== void 0) this.show(name);
  }
  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === void 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const { length } = this.#tabs;
    const at = this.#tabs.findIndex(({ name }) => name === this.#shown);
    const next = this.#tabs[(at + step + length) % length];
    if (next === void 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(next.name);
    next.button.focus();
  }
};

// src/what_if.ts
var NONE2 = [];
var HUNDREDTH = 5e-3;
function isMoved(store, threshold) {
  const own = store.info?.policy?.threshold ?? null;
  return own !== null && Math.abs(own - threshold) >= HUNDREDTH;
}
function answerOf(store) {
  const { whatIf } = store;
  return whatIf !== null && whatIf.threshold !== null && isMoved(store, whatIf.threshold) ? whatIf : null;
}
function supposedOf(store, threshold) {
  return isMoved(store, threshold) ? answerOf(store)?.look_ups ?? NONE2 : NONE2;
}
function whatIfSentence(store, threshold, attended) {
  const { lookUps, info, live } = store;
  const policy = info?.policy;
  if (policy === void 0) return "";
  const did = lookUps.length === 0 ? "it did not" : `it did ${times(lookUps.length)}`;
  if (!attended && !live) return `${made(lookUps.length)} A kernel is needed to try other thresholds.`;
  if (policy.threshold === null) return "This policy has no threshold to drag.";
  if (!isMoved(store, threshold))
    return "Drag the threshold to see which look-ups this run would have made with another one.";
  const answer = answerOf(store);
  if (answer === null || answer.threshold === null) return `Trying ${threshold.toFixed(2)} …`;
  return `At ${answer.threshold.toFixed(2)} ${supposition(answer, live)} (${did}).`;
}
function made(n) {
  return n === 0 ? "This run looked nothing up." : `This run looked up ${times(n)}.`;
}
function supposition({ look_ups, runs }, live) {
  const far = runs || live ? " so far" : "";
  if (look_ups.length === 0) return `this run would have looked nothing up${far}`;
  return `this run would have looked up ${times(look_ups.length)}${far}`;
}
function times(n) {
  return n === 1 ? "once" : n === 2 ? "twice" : `${n} times`;
}
var WhatIfLine = class {
  node;
  #text = h("span", {});
  #caveat = h("span", { class: "caveat" }, "same draws, up to the first change");
  constructor() {
    this.node = h(
      "p",
      { class: "what-if", "data-testid": "what-if", role: "status", "aria-live": "polite" },
      this.#text,
      " ",
      this.#caveat
    );
  }
  update(store, threshold, attended) {
    const text = whatIfSentence(store, threshold, attended);
    setText(this.#text, text);
    this.node.hidden = text === "";
    const answer = attended && isMoved(store, threshold) ? answerOf(store) : null;
    this.#caveat.hidden = answer === null;
    const late = Math.abs((answer?.threshold ?? threshold) - threshold) >= HUNDREDTH;
    this.node.classList.toggle("late", late);
  }
};

// src/flare_view.ts
var EMPTY2 = "Nothing has been asked yet. Write a question and press Answer.";
var LOOK_UPS = "look-ups";
var TOKEN = "token";
var FlareView = class {
  parts;
  #lookUps;
  #tabs;
  #whatIf = new WhatIfLine();
  #budget = new BudgetLine();
  #beside;
  #selected = null;
  #marked = [];
  constructor(model, signal) {
    this.parts = new RunParts(model, signal, {
      empty: EMPTY2,
      marks: () => this.#marks(),
      onShow: (news) => this.#show(news),
      onChoose: (index) => {
        if (index !== null) this.#tabs.show(TOKEN);
      },
      onLookUp: (index) => this.#choose(index),
      onThreshold: (value) => this.#whatIf.update(this.parts.store, value, this.parts.attended)
    });
    this.#lookUps = new LookUps({ onSelect: (index) => this.#choose(index) }, signal);
    this.#beside = new BesideTable((row) => send(model, pick(row)), signal);
    this.#tabs = new Tabs(
      [
        { name: LOOK_UPS, title: "Look-ups", panel: this.#lookUps.node },
        { name: TOKEN, title: "Token", panel: this.parts.panel.node }
      ],
      "what is shown beside the text",
      signal
    );
    this.#assemble();
  }
  #assemble() {
    const { header, notices, legend, status, tokens: tokens2, plot, footer } = this.parts;
    const top = h("div", { class: "meta" }, legend.node, status.node);
    const below = h("div", { class: "below" }, this.#whatIf.node, this.#budget.node, this.#beside.node);
    const main = h("div", { class: "main" }, top, tokens2.node, plot.node, below);
    const columns = h("div", { class: "columns" }, main, this.#tabs.node);
    this.parts.card.classList.add("flare");
    this.parts.mount(header.node, notices.node, columns, footer.node);
  }
  #marks() {
    const { store, threshold } = this.parts;
    return { made: store.lookUps, supposed: supposedOf(store, threshold), selected: this.#selected };
  }
  #show({ reset }) {
    const { store, plot, attended } = this.parts;
    if (reset) {
      this.#marked = [];
      this.#choose(null);
      this.#tabs.show(LOOK_UPS);
    }
    this.#showMarks();
    this.#lookUps.update(store, plot.places);
    const made2 = store.lookUps.length;
    this.#tabs.setTitle(LOOK_UPS, made2 === 0 ? "Look-ups" : `Look-ups ${made2}`);
    this.#budget.update(store.budget);
    this.#beside.update(store.beside, attended);
  }
  #showMarks() {
    const { store, tokens: tokens2, plot } = this.parts;
    if (store.lookUps === this.#marked) return;
    this.#marked = store.lookUps;
    const marks = store.lookUps.map((row, k) => {
      const where = whereMade(row, plot.places, (step) => store.text(step));
      const label = `look-up ${k + 1}, ${where}: ${outcomeText(row)}`;
      return { at: row.at, found: row.outcome === "found", label };
    });
    tokens2.setMarks(marks);
    tokens2.selectLookUp(this.#selected);
  }
  /** Show a look-up in the text, the plot and the timeline; null shows none. */
  #choose(index) {
    this.#selected = index;
    if (index !== null) this.#tabs.show(LOOK_UPS);
    this.#lookUps.select(index);
    this.parts.tokens.selectLookUp(index);
    this.parts.redrawMarks();
  }
};
function renderFlare(model, el) {
  const controller = new AbortController();
  const { parts } = new FlareView(model, controller.signal);
  el.append(parts.host);
  parts.start(controller.signal);
  return () => {
    controller.abort();
    parts.host.remove();
  };
}

// src/router_hold.ts
var PATIENCE = 1500;
var Hold = class {
  #held = null;
  #inHand = false;
  #timer;
  #same;
  #onRelease;
  #signal;
  /** `onRelease` is called when patience has run out; `same` tells whether two values are shown alike. */
  constructor(onRelease, signal, same = Object.is) {
    this.#onRelease = onRelease;
    this.#same = same;
    this.#signal = signal;
  }
  /** While a value is in the hand, nothing that the kernel says takes its place. */
  grip(inHand) {
    this.#inHand = inHand;
    if (!inHand) this.#wait();
  }
  take(value) {
    this.#held = { value };
    this.#wait();
  }
  /** What to show while the kernel says `told`. */
  shown(told) {
    if (this.#held === null) return told;
    if (!this.#inHand && this.#same(this.#held.value, told)) this.release();
    return this.#held === null ? told : this.#held.value;
  }
  release() {
    this.#held = null;
    clearTimeout(this.#timer);
  }
  #wait() {
    clearTimeout(this.#timer);
    if (this.#held === null) return;
    this.#timer = setTimeout(() => {
      if (this.#inHand || this.#signal.aborted) return;
      this.#held = null;
      this.#onRelease();
    }, PATIENCE);
  }
};

// src/router_words.ts
var NONE3 = "–";
var DECIMALS = 2;
var UNSAID = 5e-4;
function points(value) {
  return Number.isFinite(value) ? value.toFixed(3) : NONE3;
}
function weight(value) {
  if (!Number.isFinite(value)) return NONE3;
  const short = value.toFixed(DECIMALS);
  return Math.abs(Number(short) - value) < UNSAID ? short : value.toFixed(DECIMALS + 1);
}
function percent(share2) {
  if (!Number.isFinite(share2)) return NONE3;
  if (share2 > 0 && share2 < 5e-3) return "<1%";
  if (share2 < 1 && share2 > 0.995) return ">99%";
  return `${Math.round(100 * share2)}%`;
}
function usd(value) {
  if (!Number.isFinite(value)) return NONE3;
  if (value === 0) return "$0";
  return value < 1e-6 ? "<$0.000001" : `$${Number(value.toPrecision(3))}`;
}
function milliseconds(value) {
  return Number.isFinite(value) ? duration(value) : NONE3;
}
function weightsOf({ quality, latency, cost }) {
  return [quality, latency, cost].map(weight).join(" / ");
}
function weightsInWords({ quality, latency, cost, local_bonus, first_token }) {
  const what = first_token ? "latency (to the first token alone)" : "latency";
  return `quality counts ${weight(quality)}, ${what} ${weight(latency)}, cost ${weight(cost)}; a model that runs here gets ${weight(local_bonus)} more`;
}
function whereabouts(model) {
  const { where, loaded } = model;
  return [where, ...loaded ? ["loaded"] : [], callsOf(model)].join(" · ");
}
function basisOf({ basis, note }) {
  const parts = note.toLowerCase().includes(basis) ? [note] : [basis, note];
  return parts.filter((part) => part !== "").join(" · ");
}
function callsOf({ calls, successes, failures }) {
  if (calls === 0) return "no calls yet";
  const open = calls - successes - failures;
  const rest = open > 0 ? `, ${count(open)} undecided` : "";
  return `${plural(calls, "call")}, ${count(failures)} failed${rest}`;
}
function termText({ name, weight: w, value, points: p, basis }) {
  return `${name} ${weight(w)} × ${points(value)} = ${points(p)} (${basis})`;
}
function cellSentence(model, workload, cell) {
  const said = cell.kind === "filtered" ? filteredText(cell) : scoredText(cell);
  return `${model.title}, ${workload.title}: ${said}`;
}
function filteredText({ reasons }) {
  return `left out: ${reasons.length === 0 ? "no reason given" : reasons.join("; ")}`;
}
function scoredText(cell) {
  const { score, rank, wins, worth, reliability, bonus, latency_ms, usd: price } = cell;
  const costs = price === null ? "" : `, ${usd(price)}`;
  return [
    `rank ${rank}, score ${points(score)}, wins ${percent(wins)} of the draws`,
    `${cell.terms.map(termText).join(", ")}, local bonus ${weight(bonus)}`,
    `worth ${points(reliability)} × ${points(score)} = ${points(worth)}`,
    `expected ${milliseconds(latency_ms)}${costs}`
  ].join("; ");
}
function winners(workloads, models, cells) {
  return new Map(
    workloads.map(({ title }, j) => {
      const i = cells.findIndex((row) => row[j]?.kind === "scored" && row[j].rank === 1);
      return [title, models[i]?.title ?? "nobody"];
    })
  );
}
function changedWinners(before, now) {
  return [...now].filter(([title, model]) => before.has(title) && before.get(title) !== model).map(([title, model]) => `${title}: now ${model}.`).join(" ");
}

// src/router_answers.ts
var THUMB = "M5 21V10.5H2V21zM7 10.5 11 2c1.5 0 2.5 1 2.5 2.6V9h6a2 2 0 0 1 2 2.4l-1.6 8A2 2 0 0 1 18 21H7z";
var OUTCOMES2 = {
  running: "answering",
  failure: "failed",
  inconclusive: "not counted"
};
var Answers = class {
  node = h("section", { class: "answers", "data-testid": "router-answers", hidden: true });
  #list = h("div", { class: "answer-list" });
  #cards = /* @__PURE__ */ new Map();
  #onVerdict;
  #signal;
  constructor(onVerdict, signal) {
    this.#onVerdict = onVerdict;
    this.#signal = signal;
    this.node.append(h("h3", {}, "Answers"), this.#list);
  }
  /** `judges`: somebody is there who keeps a verdict. */
  update(answers, judges) {
    this.node.hidden = answers.length === 0;
    const before = this.#cards;
    this.#cards = new Map(
      answers.map(({ trace_id: id }) => [
        id,
        before.get(id) ?? new AnswerCard(id, this.#onVerdict, this.#signal)
      ])
    );
    for (const answer of answers) this.#cards.get(answer.trace_id)?.update(answer, judges);
    const cards = [...this.#cards.values()].map(({ node }) => node);
    const same = cards.length === this.#list.children.length;
    if (!same || cards.some((card, i) => this.#list.children[i] !== card))
      this.#list.replaceChildren(...cards);
  }
};
var AnswerCard = class {
  node = h("article", { class: "answer", "data-testid": "router-answer" });
  #model = h("bdi", { class: "title" });
  #figures = h("span", { class: "figures-line" });
  #text = h("div", { class: "answer-text" });
  #story = h("bdi", { class: "story" });
  #more = h("button", { type: "button", class: "link", hidden: true }, "show all");
  #thumbs = h("div", { class: "thumbs", role: "group" });
  #up = thumb("good", "the answer is good");
  #down = thumb("bad", "the answer is bad");
  #held;
  #answer = null;
  #judges = false;
  #open = false;
  constructor(id, onVerdict, signal) {
    this.#held = new Hold(() => this.#drawThumbs(), signal);
    const judge = (accepted) => {
      this.#held.take(accepted);
      onVerdict(id, accepted);
      this.#drawThumbs();
    };
    this.#up.addEventListener("click", () => judge(true));
    this.#down.addEventListener("click", () => judge(false));
    this.#more.addEventListener("click", () => this.#toggle());
    this.#thumbs.append(this.#up, this.#down);
    const head = h("div", { class: "answer-head" }, this.#model, this.#figures);
    const foot = h("div", { class: "answer-foot" }, this.#more, this.#thumbs);
    this.node.append(head, this.#text, this.#story, foot);
  }
  update(answer, judges) {
    this.#answer = answer;
    this.#judges = judges;
    const { model, text, story, outcome } = answer;
    this.node.dataset["outcome"] = outcome;
    setText(this.#model, model);
    setText(this.#figures, figuresOf(answer));
    setText(this.#text, text.trim());
    setText(this.#story, story);
    this.#text.hidden = text === "";
    this.#story.hidden = story === "";
    setAttributes(this.#thumbs, { "aria-label": `verdict on the answer of ${model}` });
    this.#drawMore();
    this.#drawThumbs();
  }
  #toggle() {
    this.#open = !this.#open;
    this.#drawMore();
  }
  #drawMore() {
    const text = this.#answer?.text ?? "";
    const long = text.length > LONG || text.split("\n").length > LINES;
    this.#more.hidden = !long;
    this.#text.classList.toggle("cut", long && !this.#open);
    setText(this.#more, this.#open ? "show less" : "show all");
    setAttributes(this.#more, { "aria-expanded": String(this.#open) });
  }
  #drawThumbs() {
    const answer = this.#answer;
    if (answer === null) return;
    const verdict = this.#held.shown(answer.verdict);
    this.#thumbs.hidden = answer.outcome !== "success";
    for (const [button2, means] of [
      [this.#up, true],
      [this.#down, false]
    ]) {
      setAttributes(button2, { "aria-pressed": String(verdict === means) });
      button2.disabled = !this.#judges || verdict !== null;
    }
  }
};
var LONG = 320;
var LINES = 5;
function figuresOf({ ms, tokens: tokens2, outcome }) {
  const time = ms === null ? [] : [milliseconds(ms)];
  const state = OUTCOMES2[outcome];
  return [...state === void 0 ? [] : [state], ...time, plural(tokens2, "token")].join(" · ");
}
function thumb(word, title) {
  const icon = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: `thumb ${word}` });
  icon.append(svg("path", { d: THUMB }));
  const button2 = h("button", { type: "button", class: "button", title, "aria-pressed": "false" }, icon, word);
  button2.dataset["testid"] = `thumb-${word}`;
  return button2;
}

// src/router_protocol.ts
var TERMS = ["quality", "latency", "cost"];
var WEIGHTS = [...TERMS, "local_bonus"];
var BASES = ["measured", "declared", "assumed"];
function outgoing(message) {
  return { v: PROTOCOL_VERSION, ...message };
}
function parseMessage(content) {
  const data = asRecord(content, "message");
  if (data["type"] !== "update") throw new ProtocolError(`unknown kind of message ${show(data["type"])}`);
  requireVersion(data);
  return parseState(data["state"]);
}
function parseState(value) {
  const data = asRecord(value, "state");
  requireVersion(data);
  const workloads = listOf(data["workloads"], "workloads", parseWorkload);
  const models = listOf(data["models"], "models", parseModel);
  return {
    v: PROTOCOL_VERSION,
    seq: asCount(data["seq"], "seq"),
    question: parseQuestion(data["question"]),
    strategy: parseStrategy(data["strategy"]),
    workloads,
    models,
    cells: parseCells(data["cells"], models.length, workloads.length),
    baselines: listOf(
      data["baselines"],
      "baselines",
      (each, where) => parseBaseline(each, where, workloads.length)
    ),
    selected: orNull(data["selected"], (each) => parsePlace(each, "selected")),
    detail: orNull(data["detail"], parseDetail),
    runs: listOf(data["runs"], "runs", parseAnswer),
    busy: orNull(data["busy"], parseBusy),
    notices: asStrings(data["notices"], "notices")
  };
}
function requireVersion(data) {
  if (data["v"] !== PROTOCOL_VERSION)
    throw new ProtocolError(`protocol version ${show(data["v"])}, expected ${PROTOCOL_VERSION}`);
}
function listOf(value, where, parse) {
  return asList(value, where).map((each, i) => parse(each, `${where}.${i}`));
}
function orNull(value, parse) {
  return value === null ? null : parse(value);
}
function asNumber(value, where) {
  return asNumberOrNull(value, where) ?? Number.NaN;
}
function parseQuestion(value) {
  const data = asRecord(value, "question");
  return {
    prompt_tokens: asCount(data["prompt_tokens"], "question.prompt_tokens"),
    output_tokens: asCount(data["output_tokens"], "question.output_tokens"),
    max_cost_usd: asNumberOrNull(data["max_cost_usd"], "question.max_cost_usd"),
    max_latency_ms: asNumberOrNull(data["max_latency_ms"], "question.max_latency_ms"),
    task: asString(data["task"], "question.task"),
    tasks: asStrings(data["tasks"], "question.tasks")
  };
}
function parseStrategy(value) {
  const data = asRecord(value, "strategy");
  return {
    text: asString(data["text"], "strategy.text"),
    prior_strength: asNumber(data["prior_strength"], "strategy.prior_strength"),
    draws: asCount(data["draws"], "strategy.draws")
  };
}
function parseWorkload(value, where) {
  const data = asRecord(value, where);
  return {
    name: asString(data["name"], `${where}.name`),
    title: asString(data["title"], `${where}.title`),
    quality: asNumber(data["quality"], `${where}.quality`),
    latency: asNumber(data["latency"], `${where}.latency`),
    cost: asNumber(data["cost"], `${where}.cost`),
    local_bonus: asNumber(data["local_bonus"], `${where}.local_bonus`),
    changed: asBoolean(data["changed"], `${where}.changed`),
    first_token: asBoolean(data["first_token"], `${where}.first_token`)
  };
}
function parseModel(value, where) {
  const data = asRecord(value, where);
  return {
    id: asString(data["id"], `${where}.id`),
    title: asString(data["title"], `${where}.title`),
    where: asOneOf(["local", "remote"], data["where"], `${where}.where`),
    basis: asOneOf(BASES, data["basis"], `${where}.basis`),
    note: asString(data["note"], `${where}.note`),
    calls: asCount(data["calls"], `${where}.calls`),
    successes: asCount(data["successes"], `${where}.successes`),
    failures: asCount(data["failures"], `${where}.failures`),
    loaded: asBoolean(data["loaded"], `${where}.loaded`)
  };
}
function parseCells(value, models, workloads) {
  const rows = listOf(value, "cells", (row, where) => listOf(row, where, parseCell));
  if (rows.length !== models) throw new ProtocolError(`cells has ${rows.length} rows for ${models} models`);
  const odd = rows.findIndex((row) => row.length !== workloads);
  if (odd >= 0)
    throw new ProtocolError(`cells.${odd} has ${rows[odd]?.length} cells for ${workloads} workloads`);
  return rows;
}
function parseCell(value, where) {
  const data = asRecord(value, where);
  if (asOneOf(["scored", "filtered"], data["kind"], `${where}.kind`) === "filtered") {
    return {
      kind: "filtered",
      reasons: asStrings(data["reasons"], `${where}.reasons`),
      filters: asStrings(data["filters"], `${where}.filters`)
    };
  }
  return {
    kind: "scored",
    score: asNumber(data["score"], `${where}.score`),
    rank: asCount(data["rank"], `${where}.rank`),
    wins: asNumber(data["wins"], `${where}.wins`),
    worth: asNumber(data["worth"], `${where}.worth`),
    reliability: asNumber(data["reliability"], `${where}.reliability`),
    bonus: asNumber(data["bonus"], `${where}.bonus`),
    latency_ms: asNumber(data["latency_ms"], `${where}.latency_ms`),
    usd: asNumberOrNull(data["usd"], `${where}.usd`),
    terms: listOf(data["terms"], `${where}.terms`, parseTerm)
  };
}
function parseTerm(value, where) {
  const data = asRecord(value, where);
  return {
    name: asOneOf(TERMS, data["name"], `${where}.name`),
    value: asNumber(data["value"], `${where}.value`),
    weight: asNumber(data["weight"], `${where}.weight`),
    points: asNumber(data["points"], `${where}.points`),
    basis: asOneOf(BASES, data["basis"], `${where}.basis`)
  };
}
function parseBaseline(value, where, workloads) {
  const data = asRecord(value, where);
  const cells = listOf(data["cells"], `${where}.cells`, (cell, at) => {
    const { text, hint } = asRecord(cell, at);
    return { text: asString(text, `${at}.text`), hint: asString(hint, `${at}.hint`) };
  });
  if (cells.length !== workloads)
    throw new ProtocolError(`${where}.cells has ${cells.length} cells for ${workloads} workloads`);
  return {
    name: asString(data["name"], `${where}.name`),
    note: asString(data["note"], `${where}.note`),
    cells
  };
}
function parsePlace(value, where) {
  const data = asRecord(value, where);
  return {
    workload: asString(data["workload"], `${where}.workload`),
    model: asString(data["model"], `${where}.model`)
  };
}
function parseDetail(value) {
  const data = asRecord(value, "detail");
  return {
    title: asString(data["title"], "detail.title"),
    lines: listOf(data["lines"], "detail.lines", (each, where) => {
      const line = asRecord(each, where);
      return {
        name: asString(line["name"], `${where}.name`),
        points: asNumber(line["points"], `${where}.points`),
        basis: asString(line["basis"], `${where}.basis`),
        arithmetic: asString(line["arithmetic"], `${where}.arithmetic`)
      };
    }),
    sum: asString(data["sum"], "detail.sum"),
    worth: asString(data["worth"], "detail.worth"),
    fallbacks: asStrings(data["fallbacks"], "detail.fallbacks"),
    changes: listOf(data["changes"], "detail.changes", (each, where) => ({
      text: asString(asRecord(each, where)["text"], `${where}.text`)
    }))
  };
}
function parseAnswer(value, where) {
  const data = asRecord(value, where);
  return {
    trace_id: asString(data["trace_id"], `${where}.trace_id`),
    model: asString(data["model"], `${where}.model`),
    text: asString(data["text"], `${where}.text`),
    ms: asNumberOrNull(data["ms"], `${where}.ms`),
    tokens: asCount(data["tokens"], `${where}.tokens`),
    story: asString(data["story"], `${where}.story`),
    verdict: orNull(data["verdict"], (each) => asBoolean(each, `${where}.verdict`)),
    outcome: asString(data["outcome"], `${where}.outcome`)
  };
}
function parseBusy(value) {
  const data = asRecord(value, "busy");
  return {
    what: asString(data["what"], "busy.what"),
    done: asCount(data["done"], "busy.done"),
    total: asCount(data["total"], "busy.total")
  };
}

// src/router_detail.ts
var SWATCHES = /* @__PURE__ */ new Set(["quality", "latency", "cost", "local bonus"]);
var EMPTY3 = "Select a cell to see how its score comes about, and what would change the choice.";
var DetailPanel = class {
  node = h("section", {
    class: "detail",
    "data-testid": "router-detail",
    "aria-label": "the selected cell"
  });
  #title = h("h3", {});
  #probe = h("button", { type: "button", class: "link", "data-testid": "probe-one" }, "Probe this model");
  #told = h("div", { class: "arithmetic" });
  #changes = h("div", { class: "changes", "data-testid": "changes" });
  #shown = "";
  #shownChanges = null;
  #cell = "";
  #model = null;
  constructor(onProbe, signal) {
    this.#probe.addEventListener(
      "click",
      () => {
        if (this.#model !== null) onProbe(this.#model);
      },
      { signal }
    );
    const body = h("div", { class: "detail-body" }, this.#told, this.#changes);
    this.node.append(h("div", { class: "detail-head" }, this.#title, this.#probe), body);
  }
  /** `model`: the row of the selected cell; `probes`: somebody is there who can measure it. */
  update(detail, place, model, probes) {
    this.#model = model?.id ?? null;
    this.#probe.hidden = model === void 0 || model.where !== "local";
    this.#probe.disabled = !probes;
    setText(this.#title, detail?.title ?? "Nothing is selected");
    this.#tell(detail);
    this.#tellChanges(detail?.changes ?? null, place === null ? "" : `${place.workload}
${place.model}`);
  }
  /** Redrawn only if something is another: a selection of the text stays. */
  #tell(detail) {
    const content = JSON.stringify({ ...detail, changes: null });
    if (content === this.#shown) return;
    this.#shown = content;
    this.#told.replaceChildren(
      ...detail === null ? [h("p", { class: "quiet" }, EMPTY3)] : arithmetic(detail)
    );
  }
  /**
   * What would change the choice takes the kernel longer than all the rest: until it is known, as while a
   * weight is dragged, what was known of the same cell stands there.
   */
  #tellChanges(changes, cell) {
    const waits = changes?.length === 0 && cell === this.#cell && (this.#shownChanges ?? "") !== "";
    this.#changes.classList.toggle("late", waits);
    this.#changes.hidden = changes === null;
    if (waits || changes === null) return;
    const content = changes.length === 0 ? "" : JSON.stringify(changes);
    if (content === this.#shownChanges && cell === this.#cell) return;
    this.#shownChanges = content;
    this.#cell = cell;
    const items = changes.map(({ text }) => h("li", {}, h("bdi", {}, text)));
    this.#changes.replaceChildren(
      h("h3", {}, "What would change it"),
      items.length > 0 ? h("ul", {}, ...items) : h("p", { class: "quiet" }, "Not worked out.")
    );
  }
};
function arithmetic({ lines, sum, worth, fallbacks }) {
  const rows = lines.map(({ name, points: points2, basis, arithmetic: how }) => {
    const swatch = SWATCHES.has(name) ? h("i", { class: `swatch ${swatchOf(name)}` }) : null;
    if (swatch !== null && isBasis(basis)) swatch.dataset["basis"] = basis;
    return h(
      "div",
      { class: "line", "data-testid": "detail-line" },
      h("dt", {}, swatch, h("bdi", {}, name)),
      h("dd", { class: "number" }, points(points2)),
      h("dd", { class: "basis" }, h("bdi", {}, basis)),
      h("dd", { class: "how" }, h("bdi", {}, how))
    );
  });
  const sums = h(
    "dl",
    { class: "sums" },
    ...lines.length > 0 ? pair("score", sum, "sum") : pair("why not", sum),
    ...pair("worth", worth, "sum"),
    ...fallbacks.length > 0 ? [h("dt", {}, "then"), fallbackList(fallbacks)] : []
  );
  return rows.length > 0 ? [h("dl", { class: "lines" }, ...rows), sums] : [sums];
}
function pair(name, text, kind = "") {
  return text === "" ? [] : [h("dt", {}, name), h("dd", { class: kind }, h("bdi", {}, text))];
}
function fallbackList(models) {
  const list = h("dd", { class: "fallbacks", "data-testid": "fallbacks" });
  models.forEach((model, k) => {
    if (k > 0) list.append(" → ");
    list.append(h("bdi", {}, model));
  });
  return list;
}
function swatchOf(name) {
  return name === "local bonus" ? "local_bonus" : name;
}
function isBasis(text) {
  return BASES.some((basis) => basis === text);
}

// src/router_feed.ts
var PATIENCE2 = 2500;
var RouterFeed = class {
  state = null;
  /** The kernel was heard of: what is shown is not only what was saved. */
  attended = false;
  /** It was asked and has not answered for a while. */
  forsaken = false;
  #model;
  #onFrame;
  #frame = 0;
  #timer;
  constructor(model, onFrame, signal) {
    this.#model = model;
    this.#onFrame = onFrame;
    signal.addEventListener(
      "abort",
      () => {
        cancelAnimationFrame(this.#frame);
        clearTimeout(this.#timer);
      },
      { once: true }
    );
  }
  /** Show what is there, then listen, then ask for what is newer. */
  start(signal) {
    this.#readSnapshot();
    this.#onFrame();
    onTrait(this.#model, "snapshot", () => this.#readSnapshot(), signal);
    onMessage(this.#model, (content) => this.#hear(() => parseMessage(content), true), signal);
    this.#timer = setTimeout(() => {
      this.forsaken = !this.attended;
      this.schedule();
    }, PATIENCE2);
    send(this.#model, outgoing({ type: "ready", seq: this.state?.seq ?? null }));
  }
  /** Draw in the next frame. */
  schedule() {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#onFrame();
    });
  }
  #readSnapshot() {
    const snapshot = this.#model.get("snapshot");
    if (typeof snapshot === "object" && snapshot !== null) this.#hear(() => parseState(snapshot), false);
  }
  /** Each state is whole: one that was missed is not missed. */
  #hear(parse, live) {
    let state;
    try {
      state = parse();
    } catch (error) {
      console.warn("cartoolkit: a message was ignored:", error instanceof Error ? error.message : error);
      return;
    }
    if (live) {
      this.attended = true;
      this.forsaken = false;
    }
    if (this.state === null || state.seq > this.state.seq) this.state = state;
    this.schedule();
  }
};

// src/router_cells.ts
var SHOWN_REASONS = 2;
var SEPARATOR = " · ";
var ColumnHead = class {
  node = h("th", { scope: "col", class: "workload", "data-testid": "router-workload" });
  #title = h("bdi", { class: "title" });
  #weights = h("span", { class: "weights" });
  #bonus = h("span", { class: "weights" });
  #marks = h("span", { class: "marks" });
  constructor() {
    this.node.append(this.#title, this.#weights, this.#bonus, this.#marks);
  }
  update(workload) {
    const { title, changed, first_token } = workload;
    setText(this.#title, title);
    setText(this.#weights, weightsOf(workload));
    setText(this.#bonus, `+ ${weight(workload.local_bonus)} if local`);
    const marks = [...first_token ? ["latency: first token"] : [], ...changed ? ["changed"] : []];
    setText(this.#marks, marks.join(" · "));
    this.node.classList.toggle("changed", changed);
    setAttributes(this.node, { title: `${title}: ${weightsInWords(workload)}` });
  }
};
var RowHead = class {
  node = h("th", { scope: "row", class: "model", "data-testid": "router-model" });
  #title = h("bdi", { class: "title" });
  #where = h("span", { class: "facts" });
  #basis = h("bdi", { class: "facts" });
  constructor() {
    this.node.append(this.#title, this.#where, this.#basis);
  }
  update(model, out) {
    setText(this.#title, model.title);
    setParts(this.#where, whereabouts(model));
    setParts(this.#basis, basisOf(model));
    this.node.classList.toggle("out", out);
    const facts = `${whereabouts(model)}
${basisOf(model)}`;
    setAttributes(this.node, { title: `${model.id}
${facts}` });
  }
};
function setParts(node, text) {
  if (node.textContent === text) return;
  const parts = text.split(SEPARATOR).map((part) => h("span", { class: "part" }, part));
  node.replaceChildren(...parts.flatMap((part, i) => i > 0 ? [SEPARATOR, part] : [part]));
}
var SEGMENTS = [...TERMS, "bonus"];
var Stack = class {
  node = h("div", { class: "stack", "aria-hidden": "true" });
  #parts = SEGMENTS.map((name) => h("i", { class: name }));
  #worth = h("em", { class: "worth" });
  constructor() {
    this.node.append(...this.#parts, this.#worth);
  }
  /** `scale`: the score at which the bar is full. */
  update(cell, scale) {
    const parts = TERMS.map((name) => {
      const term = cell.terms.find((each) => each.name === name);
      return [term?.points ?? 0, term?.basis ?? "assumed"];
    });
    parts.push([cell.bonus, null]);
    parts.forEach(([points2, basis], k) => {
      const part = this.#parts[k];
      if (part === void 0) return;
      part.style.width = share(points2, scale);
      if (basis === null) delete part.dataset["basis"];
      else part.dataset["basis"] = basis;
    });
    this.#worth.hidden = !Number.isFinite(cell.worth);
    this.#worth.style.left = share(cell.worth, scale);
  }
};
function share(value, scale) {
  const part = Number.isFinite(value) && scale > 0 ? Math.max(0, Math.min(1, value / scale)) : 0;
  return `${(100 * part).toFixed(2)}%`;
}
var CellView = class {
  node = h("td", { tabindex: -1, "data-testid": "router-cell" });
  #score = h("b", {});
  #rank = h("span", { class: "rank" });
  #wins = h("span", { class: "wins" });
  #stack = new Stack();
  #head = h("div", { class: "cell-head" }, this.#score, this.#rank, this.#wins);
  #out = h("span", { class: "left-out" }, "left out");
  #why = h("bdi", { class: "why" });
  #kind = null;
  update(cell, model, workload, scale) {
    if (cell.kind !== this.#kind) {
      this.#kind = cell.kind;
      if (cell.kind === "scored") this.node.replaceChildren(this.#head, this.#stack.node);
      else this.node.replaceChildren(this.#out, this.#why);
    }
    if (cell.kind === "scored") this.#drawScore(cell, scale);
    else setText(this.#why, reasonsText(cell.reasons));
    const first = cell.kind === "scored" && cell.rank === 1;
    const kind = cell.kind === "scored" ? "scored" : "filtered";
    this.node.className = `cell ${kind}${first ? " first" : ""}`;
    const sentence = cellSentence(model, workload, cell);
    setAttributes(this.node, { "aria-label": sentence, title: sentence });
  }
  select(selected) {
    setAttributes(this.node, { "aria-selected": String(selected) });
  }
  #drawScore(cell, scale) {
    setText(this.#score, points(cell.score));
    setText(this.#rank, `#${cell.rank}`);
    setText(this.#wins, `wins ${percent(cell.wins)}`);
    this.#stack.update(cell, scale);
  }
};
function reasonsText(reasons) {
  if (reasons.length === 0) return "no reason given";
  const more = reasons.length - SHOWN_REASONS;
  return `${reasons.slice(0, SHOWN_REASONS).join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
function baselineRow({ name, note, cells }) {
  const head = h(
    "th",
    { scope: "row", class: "model", title: note },
    h("bdi", { class: "title" }, name),
    h("bdi", { class: "facts" }, note)
  );
  const row = h("tr", { class: "baseline", "data-testid": "router-baseline" }, head);
  for (const { text, hint } of cells)
    row.append(
      h(
        "td",
        { class: "cell", tabindex: -1, title: hint, "aria-label": `${name}: ${text}; ${hint}` },
        h("bdi", {}, text)
      )
    );
  return row;
}

// src/router_grid.ts
var MOVES = {
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  Home: ({ row }, _rows, _columns, whole) => ({ row: whole ? 0 : row, column: 0 }),
  End: ({ row }, rows, columns, whole) => ({ row: whole ? rows - 1 : row, column: columns - 1 })
};
function scaleOf(workloads) {
  return 1 + Math.max(0, ...workloads.map(({ local_bonus: bonus }) => Number.isFinite(bonus) ? bonus : 0));
}
var Grid = class {
  node;
  #table = h("table", { role: "grid", class: "grid", "aria-label": "models by workload" });
  #columns = [];
  #rows = [];
  #foot = h("tbody", { class: "baselines" });
  #baselines = "";
  #at = { row: 0, column: 0 };
  #selected = null;
  #onSelect;
  constructor(onSelect, signal) {
    this.#onSelect = onSelect;
    this.#table.addEventListener("click", (event) => this.#click(event.target), { signal });
    this.#table.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.#table.addEventListener("focusin", (event) => this.#focused(event.target), { signal });
    this.node = h("div", { class: "scroller", "data-testid": "router-grid" }, this.#table);
  }
  update(state, selected) {
    const { workloads, models, cells } = state;
    this.#build(state);
    const scale = scaleOf(workloads);
    workloads.forEach((workload, j) => void this.#columns[j]?.head.update(workload));
    models.forEach((model, i) => {
      const row = this.#rows[i];
      const values = cells[i] ?? [];
      row?.head.update(model, values.length > 0 && values.every(({ kind }) => kind === "filtered"));
      values.forEach((cell, j) => {
        const workload = workloads[j];
        if (workload !== void 0) row?.cells[j]?.update(cell, model, workload, scale);
      });
    });
    this.#drawBaselines(state.baselines);
    this.select(selected);
    this.node.hidden = models.length === 0;
  }
  select(selected) {
    this.#selected = selected;
    this.#columns.forEach(({ name }, j) => {
      for (const { id, cells } of this.#rows)
        cells[j]?.select(selected?.workload === name && selected.model === id);
    });
    if (!this.#holdsFocus()) this.#start();
  }
  /** Make the rows and columns anew if they are others than before; what is in focus stays so. */
  #build({ workloads, models }) {
    const known = workloads.length === this.#columns.length && models.length === this.#rows.length && workloads.every(({ name }, j) => this.#columns[j]?.name === name) && models.every(({ id }, i) => this.#rows[i]?.id === id);
    if (known) return;
    const focused = this.#holdsFocus() ? this.#placeAt(this.#at) : null;
    this.#columns = workloads.map(({ name }) => ({ name, head: new ColumnHead() }));
    this.#rows = models.map(({ id }) => ({
      id,
      head: new RowHead(),
      cells: workloads.map(() => new CellView())
    }));
    this.#assemble();
    this.#start(focused);
    if (focused !== null) this.#cellAt(this.#at)?.focus();
  }
  #assemble() {
    const { length } = this.#columns;
    const columns = [h("col", { class: "of-models" }), ...this.#columns.map(() => h("col", {}))];
    const corner = h("th", { scope: "col", class: "model corner" }, "model");
    const head = h("tr", {}, corner, ...this.#columns.map(({ head: { node } }) => node));
    const rows = this.#rows.map(
      ({ head: { node }, cells }) => h("tr", { "data-testid": "router-row" }, node, ...cells.map((cell) => cell.node))
    );
    this.#table.style.setProperty("--workloads", String(length));
    this.#table.replaceChildren(
      h("colgroup", {}, ...columns),
      h("thead", {}, head),
      h("tbody", {}, ...rows),
      this.#foot
    );
  }
  #drawBaselines(baselines) {
    const content = JSON.stringify(baselines);
    if (content === this.#baselines) return;
    this.#baselines = content;
    this.#foot.replaceChildren(...baselines.map(baselineRow));
  }
  // Where the keyboard is
  get #body() {
    const baselines = [...this.#foot.rows].map((row) => [...row.querySelectorAll("td")]);
    return [...this.#rows.map(({ cells }) => cells.map(({ node }) => node)), ...baselines];
  }
  #cellAt({ row, column }) {
    return this.#body[row]?.[column];
  }
  #placeAt({ row, column }) {
    const model = this.#rows[row]?.id;
    const workload = this.#columns[column]?.name;
    return model === void 0 || workload === void 0 ? null : { model, workload };
  }
  /** Let the tab key come to a cell: the one given or selected, else the first. */
  #start(place = this.#selected) {
    const row = this.#rows.findIndex(({ id }) => id === place?.model);
    const column = this.#columns.findIndex(({ name }) => name === place?.workload);
    this.#moveTo(row < 0 || column < 0 ? { row: 0, column: 0 } : { row, column });
  }
  #moveTo(at) {
    this.#at = at;
    const cell = this.#cellAt(at);
    for (const other of this.#table.querySelectorAll('td[tabindex="0"]'))
      if (other !== cell) other.tabIndex = -1;
    if (cell !== void 0) setAttributes(cell, { tabindex: 0 });
  }
  #holdsFocus() {
    const root = this.node.getRootNode();
    const active = root instanceof ShadowRoot ? root.activeElement : null;
    return active !== null && this.#table.contains(active);
  }
  #find(target) {
    const cell = target instanceof Element ? target.closest("td") : null;
    if (cell === null) return null;
    const body = this.#body;
    const row = body.findIndex((cells) => cells.includes(cell));
    return row < 0 ? null : { row, column: (body[row] ?? []).indexOf(cell) };
  }
  #focused(target) {
    const at = this.#find(target);
    if (at !== null) this.#moveTo(at);
  }
  #click(target) {
    const at = this.#find(target);
    if (at === null) return;
    this.#cellAt(at)?.focus();
    this.#choose(at);
  }
  #choose(at) {
    const place = this.#placeAt(at);
    if (place !== null) this.#onSelect(place);
  }
  #key(event) {
    if (event.altKey || event.metaKey) return;
    const at = this.#find(event.target);
    if (at === null) return;
    if (event.key === "Enter" || event.key === " ") {
      this.#take(event);
      this.#choose(at);
      return;
    }
    const move = MOVES[event.key];
    if (move === void 0) return;
    this.#take(event);
    const to = move(at, this.#body.length, this.#columns.length, event.ctrlKey);
    const cell = this.#cellAt(to);
    if (cell === void 0) return;
    this.#moveTo(to);
    cell.focus();
  }
  #take(event) {
    event.preventDefault();
    event.stopPropagation();
  }
};

// src/router_number.ts
var NO_LIMIT = "no limit";
var NumberControl = class {
  node;
  #spec;
  #slider;
  #field;
  #hold;
  #told = null;
  #onValue;
  constructor(spec, onValue, signal) {
    this.#spec = spec;
    this.#onValue = onValue;
    this.#hold = new Hold(() => this.#draw(), signal, alike);
    const name = spec.unit === "" ? spec.label : `${spec.label} (${spec.unit})`;
    this.#slider = h("input", { type: "range", min: 0, max: spec.scale.last, step: 1, "aria-label": name });
    this.#field = h("input", { type: "number", step: spec.step, min: spec.least, "aria-label": name });
    if (spec.most !== void 0) setAttributes(this.#field, { max: spec.most });
    if (spec.endless) setAttributes(this.#field, { placeholder: NO_LIMIT });
    const swatch = spec.swatch === void 0 ? null : h("i", { class: `swatch ${spec.swatch}` });
    const label = h("span", { class: "knob-name" }, swatch, spec.label, this.#unit());
    this.node = h("div", { class: "knob", "data-testid": spec.testId, title: spec.title ?? null });
    this.node.append(label, this.#slider, this.#field);
    this.#listen(signal);
  }
  /** Show what the kernel says, unless the reader holds another value. */
  update(told) {
    this.#told = told !== null && Number.isFinite(told) ? told : null;
    this.#draw();
  }
  /** The number now belongs to something else: what was held of it is forgotten. */
  forget() {
    this.#hold.release();
  }
  #unit() {
    return this.#spec.unit === "" ? null : h("span", { class: "unit" }, ` ${this.#spec.unit}`);
  }
  #listen(signal) {
    const on = (node, type, listener) => node.addEventListener(type, listener, { signal });
    on(this.#slider, "pointerdown", () => this.#hold.grip(true));
    for (const type of ["pointerup", "pointercancel", "change", "blur"])
      on(this.#slider, type, () => this.#hold.grip(false));
    on(this.#slider, "input", () => this.#moved());
    on(this.#field, "change", () => this.#written());
    this.#field.addEventListener("keydown", ({ key }) => key === "Enter" && this.#written(), { signal });
    on(this.#field, "blur", () => this.#draw());
  }
  #moved() {
    this.#tell(this.#spec.scale.toValue(Number(this.#slider.value)));
  }
  /** An empty field takes a limit away; what is no number within bounds is taken back. */
  #written() {
    const value = this.#read();
    if (value === void 0 || alike(value, this.#hold.shown(this.#told))) this.#draw(true);
    else this.#tell(value);
  }
  /** What stands in the field; undefined if it is no number within bounds. */
  #read() {
    const text = this.#field.value.trim();
    if (text === "") return this.#spec.endless && !this.#field.validity.badInput ? null : void 0;
    const value = Number(text);
    const { least, most = Number.POSITIVE_INFINITY, whole } = this.#spec;
    if (!Number.isFinite(value) || value < least || value > most) return void 0;
    return whole ? Math.round(value) : value;
  }
  #tell(value) {
    this.#hold.take(value);
    this.#draw(true);
    this.#onValue(value);
  }
  /** `whole`: also a field in which the reader is writing. */
  #draw(whole = false) {
    const { scale, write, unit } = this.#spec;
    const value = this.#hold.shown(this.#told);
    const text = value === null ? "" : write(value);
    if (!alike(scale.toValue(Number(this.#slider.value)), value))
      this.#slider.value = String(scale.toPosition(value));
    const spoken = value === null ? NO_LIMIT : `${text} ${unit}`.trim();
    setAttributes(this.#slider, { "aria-valuetext": spoken });
    if ((whole || !this.#writing) && this.#field.value !== text) this.#field.value = text;
  }
  get #writing() {
    const root = this.#field.getRootNode();
    return root instanceof ShadowRoot && root.activeElement === this.#field;
  }
};
function alike(a, b) {
  if (a === null || b === null) return a === b;
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a));
}

// src/router_scales.ts
var WEIGHT_STEPS = 100;
var LOG_STEPS = 120;
var WEIGHT_SCALE = {
  last: WEIGHT_STEPS,
  toPosition: (value) => clamp(Math.round((value ?? 0) * WEIGHT_STEPS), WEIGHT_STEPS),
  toValue: (position) => position / WEIGHT_STEPS
};
function logScale(least, most, { whole, endless } = {}) {
  const span = Math.log(most / least);
  return {
    last: endless ? LOG_STEPS + 1 : LOG_STEPS,
    toPosition(value) {
      if (value === null) return endless ? LOG_STEPS + 1 : 0;
      if (value <= least) return 0;
      return clamp(Math.round(LOG_STEPS * Math.log(value / least) / span), LOG_STEPS);
    },
    toValue(position) {
      if (position > LOG_STEPS) return null;
      const value = Number((least * Math.exp(span * position / LOG_STEPS)).toPrecision(2));
      return whole ? Math.round(value) : value;
    }
  };
}
function clamp(position, last) {
  return Math.min(last, Math.max(0, position));
}

// src/router_knobs.ts
var MOST_TOKENS = 1e6;
var TOKENS2 = { least: 1, most: 131072 };
var USD = { least: 1e-5, most: 1 };
var MS = { least: 10, most: 6e5 };
var WEIGHT_TITLES = {
  quality: "quality",
  latency: "latency",
  cost: "cost",
  local_bonus: "local bonus"
};
function weightSpec(name) {
  const others = "The other two weights keep their ratio, and all three sum to 1.";
  const bonus = "Added to the score of a model that runs on this machine.";
  return {
    label: WEIGHT_TITLES[name],
    unit: "",
    scale: WEIGHT_SCALE,
    least: 0,
    most: 1,
    step: 0.01,
    write: weight,
    testId: `weight-${name}`,
    title: name === "local_bonus" ? bonus : others,
    swatch: name
  };
}
var tokens = { unit: "tokens", whole: true, step: 1, most: MOST_TOKENS, write: String };
var AMOUNTS = {
  prompt_tokens: {
    ...tokens,
    label: "prompt",
    scale: logScale(TOKENS2.least, TOKENS2.most, { whole: true }),
    least: 0,
    testId: "question-prompt_tokens",
    title: "How long the prompt is."
  },
  output_tokens: {
    ...tokens,
    label: "answer",
    scale: logScale(TOKENS2.least, TOKENS2.most, { whole: true }),
    least: 1,
    testId: "question-output_tokens",
    title: "How long the answer is expected to be; prices and times are worked out with it."
  },
  max_cost_usd: {
    label: "budget",
    unit: "USD a call",
    scale: logScale(USD.least, USD.most, { endless: true }),
    least: 0,
    step: 1e-3,
    endless: true,
    write: String,
    testId: "question-max_cost_usd",
    title: "A model that costs more, or whose price nobody knows, is left out."
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
    title: "A model that is expected to take longer is left out."
  }
};
var Knobs = class {
  node;
  #out;
  #weights;
  #amounts;
  #workload = h("select", {
    class: "menu",
    "aria-label": "workload whose weights are shown",
    "data-testid": "workload"
  });
  #task = h("select", { class: "menu", "aria-label": "task", "data-testid": "task" });
  #held;
  #note = h("p", { class: "quiet", "data-testid": "knobs-note" });
  #fields = h("fieldset", {});
  #state = null;
  #name = "";
  #followed = "";
  constructor(out, signal) {
    this.#out = out;
    this.#weights = new Map(
      WEIGHTS.map((name) => [
        name,
        new NumberControl(weightSpec(name), (value) => this.#weigh(name, value ?? 0), signal)
      ])
    );
    const names = Object.keys(AMOUNTS);
    this.#amounts = new Map(
      names.map((name) => [
        name,
        new NumberControl(AMOUNTS[name], (value) => this.#ask(name, value), signal)
      ])
    );
    this.#held = new Hold(() => this.#drawTask(), signal);
    this.#workload.addEventListener("change", () => this.#pick(this.#workload.value), { signal });
    this.#task.addEventListener("change", () => this.#setTask(this.#task.value), { signal });
    this.#fields.append(this.#weightGroup(), this.#questionGroup());
    this.node = h("section", {
      class: "side knobs",
      "aria-label": "what is weighed",
      "data-testid": "knobs"
    });
    this.node.append(this.#note, this.#fields);
  }
  #weightGroup() {
    const head = h("label", { class: "knobs-head" }, h("b", {}, "Weights of"), this.#workload);
    return h("div", { class: "knob-group" }, head, ...[...this.#weights.values()].map(({ node }) => node));
  }
  #questionGroup() {
    const task = h("label", { class: "knob" }, h("span", { class: "knob-name" }, "task"), this.#task);
    return h(
      "div",
      { class: "knob-group" },
      h("div", { class: "knobs-head" }, h("b", {}, "What is asked")),
      ...[...this.#amounts.values()].map(({ node }) => node),
      task
    );
  }
  /** `remark` says why nothing can be turned; empty, everything can. */
  update(state, followed, remark, enabled) {
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
  forgetWeights() {
    for (const control of this.#weights.values()) control.forget();
  }
  #pick(name) {
    this.#show(name);
    if (this.#state !== null) this.#drawWorkload(this.#state.workloads);
  }
  #show(name) {
    if (name === this.#name) return;
    this.#name = name;
    this.forgetWeights();
  }
  #drawWorkload(workloads) {
    fill(
      this.#workload,
      workloads.map(({ name, title, changed }) => [name, changed ? `${title} (changed)` : title])
    );
    this.#workload.value = this.#name;
    const shown = workloads.find(({ name }) => name === this.#name);
    for (const [name, control] of this.#weights) control.update(shown?.[name] ?? null);
  }
  #drawQuestion(question) {
    for (const [name, control] of this.#amounts) control.update(question[name]);
    fill(
      this.#task,
      [.../* @__PURE__ */ new Set([...question.tasks, question.task])].map((task) => [task, task])
    );
    this.#drawTask();
  }
  #drawTask() {
    if (this.#state !== null) this.#task.value = this.#held.shown(this.#state.question.task);
  }
  #weigh(name, value) {
    const workload = this.#name;
    this.#out.post(`weight ${workload} ${name}`, { type: "weight", workload, name, value });
  }
  #ask(name, value) {
    this.#out.post(`question ${name}`, { type: "question", name, value });
  }
  #setTask(value) {
    this.#held.take(value);
    this.#out.now({ type: "question", name: "task", value });
  }
};
function fill(menu, entries) {
  const has2 = [...menu.options].map((option) => `${option.value}
${option.text}`);
  const wants = entries.map(([value, text]) => `${value}
${text}`);
  if (has2.length === wants.length && has2.every((one, i) => one === wants[i])) return;
  menu.replaceChildren(...entries.map(([value, text]) => h("option", { value }, text)));
}
function questionChips(question, strategy) {
  const { prompt_tokens, output_tokens, max_cost_usd, max_latency_ms, task } = question;
  return [
    `prompt ${plural(prompt_tokens, "token")}`,
    `answer ${plural(output_tokens, "token")}`,
    `task ${task}`,
    ...max_cost_usd === null ? [] : [`at most ${usd(max_cost_usd)} a call`],
    ...max_latency_ms === null ? [] : [`at most ${milliseconds(max_latency_ms)}`],
    `${strategy.text}, prior strength ${Number(strategy.prior_strength.toPrecision(3))}`
  ];
}

// src/router_head.ts
var Head = class {
  node = h("header", { class: "header router-head" });
  #chips = h("div", { class: "chips" });
  #probe = button("Probe models", "probe-all", "Measure speed, memory and quality of every local model here");
  #reset = button("Reset weights", "reset", "Give every workload the weights that it had at first");
  constructor(events, signal) {
    this.#probe.addEventListener("click", () => events.onProbe(), { signal });
    this.#reset.addEventListener("click", () => events.onReset(), { signal });
    const title = h("b", {}, "Which model answers?");
    const buttons2 = h("div", { class: "buttons" }, this.#probe, this.#reset);
    this.node.append(h("div", { class: "what" }, title, this.#chips), buttons2);
  }
  update(state, enabled) {
    const chips = questionChips(state.question, state.strategy);
    chips.forEach((text, i) => {
      const chip = this.#chips.children[i] ?? this.#chips.appendChild(h("bdi", { class: "chip" }));
      setText(chip, text);
    });
    while (this.#chips.children.length > chips.length) this.#chips.lastElementChild?.remove();
    const local = state.models.some(({ where }) => where === "local");
    this.#probe.disabled = !enabled || state.busy !== null || !local;
    this.#reset.disabled = !enabled || !state.workloads.some(({ changed }) => changed);
  }
};
function button(text, testId, title) {
  return h("button", { type: "button", class: "button", "data-testid": testId, title }, text);
}
var BusyLine = class {
  node = h("div", { class: "busy", "data-testid": "busy", role: "status", hidden: true });
  #bar = h("div", { class: "progress", role: "progressbar" }, h("i"));
  #text = h("bdi", {});
  constructor() {
    this.node.append(this.#bar, this.#text);
  }
  update(busy) {
    this.node.hidden = busy === null;
    if (busy === null) return;
    const { what, done, total } = busy;
    const share2 = total > 0 ? Math.min(1, done / total) : null;
    setText(
      this.#text,
      total > 0 ? `${what} · ${count(done)} of ${count(total)}` : `${what} …`
    );
    this.#bar.setAttribute("aria-label", what);
    this.#bar.classList.toggle("endless", share2 === null);
    if (share2 === null) this.#bar.removeAttribute("aria-valuenow");
    else this.#bar.setAttribute("aria-valuenow", String(Math.round(100 * share2)));
    const fill2 = this.#bar.firstElementChild;
    if (fill2 instanceof HTMLElement) fill2.style.width = share2 === null ? "" : `${100 * share2}%`;
  }
};
var NoticeList = class {
  node = h("ul", { class: "notices", "data-testid": "router-notices", hidden: true });
  #shown = "";
  update(notices) {
    const content = JSON.stringify(notices);
    if (content === this.#shown) return;
    this.#shown = content;
    this.node.hidden = notices.length === 0;
    this.node.replaceChildren(...notices.map((text) => h("li", {}, h("bdi", {}, text))));
  }
};
var KEYS = [
  ["quality", "quality"],
  ["latency", "latency"],
  ["cost", "cost"],
  ["local_bonus", "local bonus"]
];
var KeyLine = class {
  node = h("div", { class: "key-line", "data-testid": "key-line" });
  #formula = h("span", { class: "formula" });
  constructor() {
    const keys = KEYS.map(
      ([name, text]) => h("span", { class: "key" }, h("i", { class: `swatch ${name}` }), text)
    );
    const bases = ["measured", "declared", "assumed"].map((basis) => {
      const swatch = h("i", { class: "swatch plain" });
      swatch.dataset["basis"] = basis;
      return h("span", { class: "key" }, swatch, basis);
    });
    const worth = h("span", { class: "key" }, h("i", { class: "worth-key" }), "worth");
    this.node.append(
      h("span", { class: "keys" }, ...keys),
      h("span", { class: "keys" }, ...bases, worth),
      this.#formula
    );
  }
  update({ workloads, strategy }) {
    setText(
      this.#formula,
      `score = Σ weight × term + local bonus; ranked by worth = reliability × score; wins of ${plural(strategy.draws, "draw")}; bars from 0 to ${weight(scaleOf(workloads))}`
    );
  }
};

// src/router_outbox.ts
var INTERVAL = 40;
var Outbox = class {
  #model;
  #waiting = /* @__PURE__ */ new Map();
  #timer;
  constructor(model, signal) {
    this.#model = model;
    signal.addEventListener("abort", () => this.flush(), { once: true });
  }
  /** Send a value of something that is dragged; one that still waits is replaced. */
  post(key, message) {
    this.#waiting.set(key, message);
    if (this.#timer === void 0) this.#next();
  }
  /** Send now, after everything that waits. */
  now(message) {
    this.flush();
    this.#send(message);
  }
  flush() {
    clearTimeout(this.#timer);
    this.#timer = void 0;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const message of waiting) this.#send(message);
  }
  #next() {
    this.#timer = void 0;
    const [first] = this.#waiting;
    if (first === void 0) return;
    this.#waiting.delete(first[0]);
    this.#send(first[1]);
    this.#timer = setTimeout(() => this.#next(), INTERVAL);
  }
  #send(message) {
    send(this.#model, outgoing(message));
  }
};

// src/router_styles.ts
var HUES = `
.view {
  --quality: #0b5cad; --latency: #17845f; --cost: #7a57c4; --local_bonus: #b8690a;
  --track: color-mix(in srgb, var(--fg) 9%, var(--bg));
  --first: 240px; --column: 148px; --fact-lines: 2;
}
.view.dark { --quality: #62acff; --latency: #40c291; --cost: #b8a0f5; --local_bonus: #f2ab45; }
.quality { --hue: var(--quality); } .latency { --hue: var(--latency); } .cost { --hue: var(--cost); }
.bonus, .local_bonus { --hue: var(--local_bonus); }
.plain { --hue: var(--fg); }
`;
var FRAME2 = `
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.card {
  position: relative; border: 1px solid var(--line); border-radius: 8px; overflow: clip; text-align: left;
  background: var(--bg); color: var(--fg); font: 13px/1.45 var(--sans);
}
h3 { margin: 0; font-size: 13px; font-weight: 600; }
p { margin: 0; }
bdi { unicode-bidi: isolate; overflow-wrap: anywhere; }
.quiet { color: var(--dim); }
.router-head { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: flex-start; justify-content: space-between; padding: 9px 12px; border-bottom: 1px solid var(--line); }
.what { display: flex; flex: 1 1 300px; flex-wrap: wrap; gap: 6px 10px; align-items: baseline; min-width: 0; }
.chips { display: flex; flex-wrap: wrap; gap: 4px 6px; min-width: 0; }
.chip { font: 12px/1.4 var(--mono); color: var(--dim); border: 1px solid var(--line); border-radius: 10px; padding: 1px 8px; }
.buttons { display: flex; gap: 6px; }
.button {
  font: 12.5px/1.4 var(--sans); color: var(--fg); background: var(--soft); border: 1px solid var(--line); border-radius: 5px;
  padding: 3px 10px; cursor: pointer; white-space: nowrap;
}
.button:hover:enabled { border-color: var(--dim); }
.button:active:enabled { background: var(--chosen-bg); }
.button:disabled, .link:disabled { color: color-mix(in srgb, var(--fg) 45%, var(--bg)); cursor: default; }
.link { font: 12px var(--sans); color: var(--accent); background: none; border: 0; padding: 1px 3px; border-radius: 3px; cursor: pointer; }
.link:hover:enabled { text-decoration: underline; }
:is(.button, .link, select, input):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.notices { margin: 0; padding: 6px 12px 6px 28px; background: var(--noted-bg); border-bottom: 1px solid var(--line); font-size: 12.5px; }
.busy { display: flex; gap: 10px; align-items: center; padding: 6px 12px; border-bottom: 1px solid var(--line); font-size: 12.5px; font-variant-numeric: tabular-nums; }
.progress { flex: none; width: 120px; height: 6px; border-radius: 3px; background: var(--track); overflow: hidden; forced-color-adjust: none; }
.progress i { display: block; height: 100%; background: var(--accent); transition: width .15s; }
.progress.endless i { width: 35%; animation: pass 1.4s ease-in-out infinite alternate; }
@keyframes pass { to { transform: translateX(186%); } }
.key-line { display: flex; flex-wrap: wrap; gap: 3px 20px; align-items: center; padding: 6px 12px; border-bottom: 1px solid var(--line); font-size: 12px; }
.keys { display: flex; flex-wrap: wrap; gap: 3px 12px; }
.key { display: inline-flex; gap: 5px; align-items: center; white-space: nowrap; }
.formula { flex: 1 1 100%; color: var(--dim); font-size: 11.5px; }
.swatch { display: inline-block; flex: none; width: 12px; height: 10px; border-radius: 2px; background: var(--hue); forced-color-adjust: none; }
[data-basis="declared"] { background: repeating-linear-gradient(135deg, var(--hue) 0 3px, color-mix(in srgb, var(--hue) 38%, var(--bg)) 3px 5px); }
[data-basis="assumed"] { background: color-mix(in srgb, var(--hue) 20%, var(--bg)); box-shadow: inset 0 0 0 1.5px var(--hue); }
.worth-key { display: inline-block; width: 2px; height: 13px; background: var(--fg); forced-color-adjust: none; }
.nothing { padding: 28px 16px; text-align: center; }
.card[data-none] :is(.key-line, .detail) { display: none; }
.card[data-none] .columns { grid-template-columns: minmax(0, 1fr); }
@container (min-width: 860px) { .card[data-none] fieldset { grid-template-columns: repeat(2, minmax(0, 420px)); } }
.card[data-blank] > :not(.nothing, .spoken) { display: none; }
.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;
var GRID = `
.scroller { overflow: auto; max-height: max(560px, 85vh); border-bottom: 1px solid var(--line); scrollbar-width: thin; scroll-padding: 88px 0 0 var(--first); }
.grid {
  border-collapse: separate; border-spacing: 0; table-layout: fixed; width: 100%;
  min-width: calc(var(--first) + var(--workloads) * var(--column)); font-size: 12px;
}
col.of-models { width: var(--first); }
.grid :is(th, td) { padding: 7px 10px; vertical-align: top; text-align: start; background: var(--bg); overflow: hidden; }
.grid :is(tbody th, tbody td) { border-top: 1px solid var(--line); }
.grid thead th { position: sticky; top: 0; z-index: 2; border-bottom: 1px solid var(--line); font-weight: 500; color: var(--dim); }
.grid tbody:nth-of-type(1) tr:first-child > * { border-top: 0; }
.grid th.model { position: sticky; left: 0; z-index: 1; border-right: 1px solid var(--line); font-weight: 400; }
.grid th.corner { z-index: 3; }
.workload .title { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; color: var(--fg); font-weight: 600; }
.workload .weights { display: block; font: 11px/1.4 var(--mono); white-space: nowrap; }
.workload .marks { display: block; font-size: 11px; line-height: 1.4; }
.workload.changed :is(.weights, .marks) { color: var(--accent); }
.model .title { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; font-weight: 600; }
.facts { display: block; max-height: calc(var(--fact-lines) * 1.4em); overflow: hidden; color: var(--dim); font-size: 11px; line-height: 1.4; overflow-wrap: anywhere; }
.facts .part { display: inline-block; max-width: 100%; vertical-align: top; }
.model.out .title { color: var(--dim); }
td.cell { cursor: pointer; position: relative; }
.card[data-still] td.cell { cursor: default; }
td.cell:hover { background: var(--soft); }
td.cell:focus { outline: none; }
td.cell[aria-selected="true"] { background: var(--chosen-bg); box-shadow: inset 0 0 0 1px var(--accent); }
td.cell:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.cell-head { display: flex; gap: 7px; align-items: baseline; font: 12px/1.5 var(--mono); white-space: nowrap; color: var(--dim); font-variant-numeric: tabular-nums; }
.cell-head b { color: var(--fg); font-weight: 400; }
.cell-head .wins { margin-left: auto; font-size: 11px; overflow: hidden; text-overflow: ellipsis; }
.first .cell-head b { font-weight: 700; }
.first .rank { color: var(--on-accent); background: var(--accent); border-radius: 8px; padding: 0 6px; font-weight: 700; font-size: 11px; }
.stack { position: relative; contain: layout size; display: flex; gap: 1px; height: 11px; margin-top: 4px; border-radius: 2px; background: var(--track); forced-color-adjust: none; }
.stack i { display: block; flex: none; margin-right: -1px; border-right: 1px solid var(--bg); background: var(--hue); }
.stack i[data-basis="declared"] { background: repeating-linear-gradient(135deg, var(--hue) 0 3px, color-mix(in srgb, var(--hue) 38%, var(--bg)) 3px 5px); }
.stack i[data-basis="assumed"] { background: color-mix(in srgb, var(--hue) 20%, var(--bg)); }
.stack .worth { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--fg); box-shadow: 0 0 0 1px var(--bg); }
.filtered { color: var(--dim); }
td.filtered { background: repeating-linear-gradient(135deg, transparent 0 7px, var(--soft) 7px 14px), var(--bg); }
.left-out { font-size: 11px; line-height: 15px; display: inline-block; border: 1px dashed var(--dim); border-radius: 3px; padding: 0 4px; }
.why { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; font-size: 11.5px; line-height: 1.35; margin-top: 2px; }
.baselines :is(th, td) { background: var(--soft); --fact-lines: 5; }
.baselines td.cell { cursor: default; color: var(--fg); font-size: 12px; }
.baselines .title { font-weight: 500; }
.baselines tr:first-child > * { border-top: 2px solid var(--line); }
`;
var BELOW2 = `
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 392px; }
.detail { padding: 10px 12px 12px; min-width: 0; border-right: 1px solid var(--line); }
.detail-head { display: flex; gap: 12px; align-items: baseline; justify-content: space-between; margin-bottom: 6px; }
.detail-head h3 { overflow-wrap: anywhere; min-width: 0; }
.detail-head .link { flex: none; }
.detail-body { display: grid; gap: 12px; min-height: 190px; align-content: start; }
.detail.late .detail-body, .changes.late ul { opacity: .55; }
.lines, .sums { margin: 0; font-size: 12px; }
.line { display: grid; grid-template-columns: 92px 46px 66px minmax(0, 1fr); gap: 0 10px; padding: 3px 0; border-top: 1px solid var(--line); align-items: baseline; }
.line dt { display: flex; gap: 6px; align-items: center; }
.line dd, .sums dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.line .number { font: 12px/1.5 var(--mono); text-align: right; }
.line .basis { color: var(--dim); }
.how { color: var(--dim); font: 11.5px/1.5 var(--mono); }
.sums { display: grid; grid-template-columns: 56px minmax(0, 1fr); gap: 2px 8px; border-top: 1px solid var(--line); padding-top: 5px; }
.sums:first-child { border-top: 0; }
.sums dt { color: var(--dim); }
.sums .sum { font: 11.5px/1.55 var(--mono); }
.changes ul { margin: 3px 0 0; padding: 0 0 0 18px; font-size: 12.5px; }
.changes li { padding: 1px 0; }
.side { padding: 10px 12px 12px; background: var(--soft); min-width: 0; }
fieldset { display: grid; gap: 12px 22px; margin: 0; padding: 0; border: 0; min-width: 0; }
.knobs > .quiet { margin-bottom: 8px; }
.knob-group { min-width: 0; }
.knobs-head { display: flex; gap: 8px; align-items: center; margin-bottom: 3px; min-height: 24px; font-size: 13px; }
.knobs-head b { font-weight: 600; white-space: nowrap; }
.knob { display: grid; grid-template-columns: 124px minmax(0, 1fr) 86px; gap: 8px; align-items: center; min-height: 26px; font-size: 12px; }
.knob-name { display: flex; flex-wrap: wrap; gap: 0 5px; align-items: center; line-height: 1.25; }
.unit { color: var(--dim); font-size: 11px; }
.knob input[type="range"] { width: 100%; min-width: 0; margin: 0; accent-color: var(--accent); }
:is(.knob input[type="number"], .knobs select) {
  font: 12px/1.4 var(--mono); color: var(--fg); background: var(--bg); border: 1px solid var(--line); border-radius: 4px;
  padding: 2px 4px; width: 100%; min-width: 0;
}
.knob input[type="number"] { text-align: right; }
.knobs .menu { font-family: var(--sans); text-overflow: ellipsis; }
.knob select { grid-column: 2 / 4; }
:is(.knob input[type="number"], .knobs select):disabled { color: var(--dim); background: var(--soft); }
.answers { padding: 10px 12px 12px; border-top: 1px solid var(--line); }
.answer-list { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 290px), 1fr)); gap: 8px; margin-top: 6px; }
.answer { display: flex; flex-direction: column; gap: 4px; min-width: 0; border: 1px solid var(--line); border-left: 3px solid var(--accent); border-radius: 0 5px 5px 0; padding: 6px 10px 8px; }
.answer[data-outcome="failure"] { border-left: 3px dashed var(--removed); }
.answer:is([data-outcome="running"], [data-outcome="inconclusive"]) { border-left: 3px dotted var(--dim); }
.answer-head { display: flex; flex-wrap: wrap; gap: 0 10px; justify-content: space-between; align-items: baseline; }
.answer .title { font-weight: 600; min-width: 0; }
.figures-line { color: var(--dim); font-size: 11.5px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.answer-text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; font-size: 13.5px; line-height: 1.5; max-height: 420px; overflow: hidden auto; }
.answer-text.cut { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 5; overflow: hidden; }
.story { color: var(--dim); font-size: 12px; }
.answer-foot { display: flex; gap: 8px; align-items: center; margin-top: auto; min-height: 26px; }
.thumbs { display: flex; gap: 6px; margin-left: auto; }
.thumbs .button { display: inline-flex; gap: 5px; align-items: center; padding: 2px 8px; }
.thumb { width: 13px; height: 13px; fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.thumb.bad { transform: rotate(180deg); }
.thumbs .button[aria-pressed="true"] { color: var(--fg); border-color: var(--accent); background: var(--chosen-bg); font-weight: 600; }
.thumbs .button[aria-pressed="true"] .thumb { fill: currentColor; }
`;
var NARROW = `
@container (max-width: 859px) {
  .view, .router { --first: 176px; --column: 164px; }
  .columns { grid-template-columns: minmax(0, 1fr); }
  .detail { border-right: 0; border-bottom: 1px solid var(--line); }
  .detail-body { min-height: 0; }
}
@container (min-width: 600px) and (max-width: 859px) { fieldset { grid-template-columns: repeat(2, minmax(0, 1fr)); } .knob { grid-template-columns: 88px minmax(0, 1fr) 86px; } }
@container (max-width: 599px) {
  .router { --first: 124px; --column: 160px; --fact-lines: 3; }
  .grid :is(th, td) { padding: 6px 8px; }
  .line { grid-template-columns: minmax(0, 1fr) 46px 66px; }
  .line .how { grid-column: 1 / -1; }
}
@container (max-width: 419px) { .buttons { flex: 1 1 100%; } .knob { grid-template-columns: 88px minmax(0, 1fr) 86px; } }
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; scroll-behavior: auto !important; } }
@media (forced-colors: active) {
  .view, .view.dark { --bg: Canvas; --fg: CanvasText; --dim: CanvasText; --line: CanvasText; --accent: Highlight; --on-accent: HighlightText; --removed: CanvasText; }
  td.cell[aria-selected="true"] { outline: 2px solid Highlight; outline-offset: -2px; }
  .stack { box-shadow: 0 0 0 1px CanvasText; }
}
`;
var ROUTER_STYLES = THEME + HUES + FRAME2 + GRID + BELOW2 + NARROW;

// src/router_view.ts
var EMPTY4 = "There is no model to choose from yet.";
var WAITING = "Waiting for the table.";
var FORSAKEN = "No kernel answers: it is busy or gone. Until it does, nothing can be changed here.";
var RouterView = class {
  host = h("div", { class: "cartoolkit-router", "data-lm-suppress-shortcuts": "true" });
  feed;
  #view = h("div", { class: "view" });
  #card = h("article", {
    class: "card router",
    "data-testid": "router-view",
    "aria-label": "which model answers"
  });
  #out;
  #head;
  #notices = new NoticeList();
  #busy = new BusyLine();
  #keys = new KeyLine();
  #grid;
  #empty = h("p", { class: "quiet nothing", "data-testid": "router-empty" });
  #detail;
  #knobs;
  #answers;
  #spoken = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  #selection;
  #winners = /* @__PURE__ */ new Map();
  constructor(model, signal) {
    this.feed = new RouterFeed(model, () => this.#draw(), signal);
    this.#out = new Outbox(model, signal);
    this.#selection = new Hold(() => this.feed.schedule(), signal, samePlace);
    const probe = (id) => this.#out.now({ type: "probe", model: id });
    this.#head = new Head({ onProbe: () => probe(null), onReset: () => this.#reset() }, signal);
    this.#grid = new Grid((place) => this.#select(place), signal);
    this.#detail = new DetailPanel(probe, signal);
    this.#knobs = new Knobs(this.#out, signal);
    this.#answers = new Answers((trace_id, accepted) => {
      this.#out.now({ type: "verdict", trace_id, accepted });
    }, signal);
    this.#assemble();
    followTheme(this.host, (dark) => this.#view.classList.toggle("dark", dark), signal);
  }
  #assemble() {
    const columns = h("div", { class: "columns" }, this.#detail.node, this.#knobs.node);
    this.#card.append(
      this.#head.node,
      this.#notices.node,
      this.#busy.node,
      this.#keys.node,
      this.#grid.node,
      this.#empty,
      columns,
      this.#answers.node,
      this.#spoken
    );
    this.#view.append(this.#card);
    this.host.attachShadow({ mode: "open" }).append(h("style", {}, ROUTER_STYLES), this.#view);
  }
  #reset() {
    this.#knobs.forgetWeights();
    this.#out.now({ type: "reset" });
  }
  #draw() {
    const { state, attended, forsaken } = this.feed;
    this.#card.toggleAttribute("data-none", state === null || state.models.length === 0);
    const said = state === null ? forsaken ? FORSAKEN : WAITING : state.notices.length > 0 ? "" : EMPTY4;
    this.#empty.hidden = said === "" || state !== null && state.models.length > 0;
    setText(this.#empty, said);
    this.#card.toggleAttribute("data-blank", state === null);
    this.#card.toggleAttribute("data-still", !attended);
    if (state === null) return;
    const selected = this.#selection.shown(state.selected);
    this.#head.update(state, attended);
    this.#notices.update(state.notices);
    this.#busy.update(state.busy);
    this.#keys.update(state);
    this.#grid.update(state, selected);
    this.#drawDetail(state, selected);
    this.#knobs.update(state, selected?.workload ?? "", forsaken ? FORSAKEN : "", attended);
    this.#answers.update(state.runs, attended);
    this.#speak(state);
  }
  #drawDetail(state, selected) {
    const model = state.models.find(({ id }) => id === selected?.model);
    this.#detail.node.classList.toggle("late", !samePlace(selected, state.selected));
    this.#detail.update(state.detail, state.selected, model, this.feed.attended && state.busy === null);
  }
  /** Tell those who do not see the table who is first now; what was there at first is read as the page. */
  #speak({ workloads, models, cells }) {
    const now = winners(workloads, models, cells);
    const news = changedWinners(this.#winners, now);
    this.#winners = now;
    if (news !== "") setText(this.#spoken, news);
  }
  /** Without a kernel nobody could tell about another cell. */
  #select(place) {
    if (!this.feed.attended) return;
    this.#selection.take(place);
    this.#grid.select(place);
    this.#out.now({ type: "select", ...place });
    this.feed.schedule();
  }
};
function samePlace(a, b) {
  return a?.workload === b?.workload && a?.model === b?.model;
}
function renderRouter(model, el) {
  const controller = new AbortController();
  const { host, feed } = new RouterView(model, controller.signal);
  el.append(host);
  feed.start(controller.signal);
  return () => {
    controller.abort();
    host.remove();
  };
}

// src/run_view.ts
function assemble(parts) {
  const { header, notices, legend, status, tokens: tokens2, plot, panel, footer } = parts;
  const top = h("div", { class: "meta" }, legend.node, status.node);
  const main = h("div", { class: "main" }, top, tokens2.node, plot.node);
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
var VIEWS = { run: renderRun, flare: renderFlare, router: renderRouter };
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

// Mounts the bundle on a model without a kernel. In the console, or from a script that drives the page:
//   lab.send(content, base64Buffers)   a message from the kernel, in the form of tests/fixtures/protocol
//   lab.mount(traits)                  one more view; lab.model, lab.sent and lab.saved show what it did
//   lab.theme("dark" | "light")
import bundle from "../../cartoolkit/ui/static/index.js";

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const view = (text) => new DataView(bytes(text).buffer);

function fakeModel(traits) {
  const listeners = {};
  return {
    get: (name) => traits[name],
    set(name, value) {
      if (traits[name] === value) return;
      traits[name] = value;
      for (const listener of [...(listeners[`change:${name}`] ?? [])]) listener();
    },
    save_changes: () => lab.saved.push({ ...traits, snapshot: undefined }),
    send: (message) => lab.sent.push(message),
    on(event, listener) {
      listeners[event] ??= [];
      listeners[event].push(listener);
    },
    off(event, listener) {
      listeners[event] = (listeners[event] ?? []).filter((known) => known !== listener);
    },
    emit(...message) {
      for (const listener of [...(listeners["msg:custom"] ?? [])]) listener(...message);
    },
  };
}

const lab = {
  sent: [],
  saved: [],
  model: null,
  mount(traits = {}) {
    lab.model ??= fakeModel({
      view: "run",
      metric: "max_prob",
      threshold: 0.4,
      selected: null,
      snapshot: null,
      ...traits,
    });
    const el = document.createElement("div");
    document.getElementById("stage").append(el);
    return bundle.render({ model: lab.model, el });
  },
  send: (content, buffers = []) => lab.model.emit(content, buffers.map(view)),
  theme(name) {
    document.body.dataset.jpThemeLight = String(name !== "dark");
  },
};

window.lab = lab;
lab.theme(new URLSearchParams(location.search).get("theme") ?? "light");

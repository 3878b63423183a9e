/* What the person who runs the server sees: whether it is ready, what is wrong with a prompt, what is loaded. */

import { Lost, Refused, fetchStatus } from "./api.js";
import { button, el } from "./dom.js";
import { LOAD_COMMAND, explain } from "./texts.js";

const NAMES = {
  __proto__: null, llm: "Language model", llm_trouble: "Model trouble", store: "Search store", database: "Database", prompts: "Prompts", index: "Index",
};

/** The token that the address brings along, taken out of it at once: it must not be seen, shared or kept there. */
export function takeToken() {
  const found = /^#operator=(.*)$/s.exec(location.hash);
  if (!found) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}

/** The panel. The token lives in this object alone: a reload forgets it, and so does "Close". */
export class Operator {
  #token = null;

  constructor(element, announce) {
    this.element = element;
    element.tabIndex = -1; // for the focus that comes with a link
    this.announce = announce;
    this.title = el("span", {}, "Operator");
    this.body = el("div", { class: "operator-body" });
    this.refresh = button("Refresh", () => this.load());
    const close = button("Close", () => this.close());
    this.actions = el("div", { class: "actions" }, this.refresh, close);
    element.append(el("details", { class: "more", open: true }, el("summary", {}, this.title), this.body, this.actions));
  }

  open(token) {
    this.#token = token;
    this.element.hidden = false;
    this.element.focus({ preventScroll: true }); // not to the question box, which may be a screen away
    this.element.scrollIntoView({ block: "nearest" });
    return this.load();
  }

  close() {
    this.#token = null;
    this.element.hidden = true;
    this.body.replaceChildren();
    document.getElementById("question").focus();
  }

  async load() {
    const token = this.#token;
    this.refresh.disabled = true;
    this.title.textContent = "Operator";
    try {
      const status = await fetchStatus(token);
      if (token !== this.#token) return; // closed, or opened with another, in the meantime
      this.show(status);
    } catch (error) {
      if (token === this.#token) this.fail(error);
    } finally {
      this.refresh.disabled = false;
    }
  }

  show({ ready, sites }) {
    const status = String(ready.status ?? "unknown");
    this.refresh.hidden = false;
    this.title.textContent = `Operator · ${status}`;
    this.body.replaceChildren(checks(status, ready.checks ?? {}), ...sitesTable(sites));
    this.announce(`Server status: ${status}`);
  }

  fail(error) {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      this.#token = null;
      this.refresh.hidden = true;
      this.body.replaceChildren(
        el("p", { class: "problem" }, "This operator link is not good, or not any more: every start of the server makes a new one."),
        el("p", {}, "Open the one that ", el("code", {}, "askable serve"), " printed last."),
      );
    } else {
      const { what, todo } = explain(error);
      this.body.replaceChildren(el("p", { class: "problem" }, `${what} ${todo}`), ...[cause(error)].filter(Boolean));
    }
    this.announce(this.body.textContent);
  }
}

/** What an operator can do about a failure: visitors are not told. */
function cause(error) {
  if (error instanceof Lost) return navigator.onLine ? el("p", {}, "Is the server running?") : null;
  if (!(error instanceof Refused)) return null;
  if (error.code === "foreign_reply") return el("p", {}, "Often that is a proxy between this page and the server.");
  return error.message ? el("p", {}, "The server says: ", el("bdi", {}, error.message)) : null;
}

function checks(status, found) {
  const rows = [["Status", status], ...Object.entries(found).map(([name, value]) => [NAMES[name] ?? name, value])];
  return el("dl", { class: "checks" }, ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, ...told(value)))));
}

function told(value) {
  if (!Array.isArray(value)) return [String(value)];
  return [el("ul", {}, ...value.map((line) => el("li", {}, el("code", {}, String(line)))))];
}

function sitesTable(sites) {
  if (!sites.length) return [el("p", {}, "Nothing has been loaded yet. Load something with this command:"), el("pre", { class: "command" }, el("code", {}, LOAD_COMMAND))];
  const head = ["Site", "Access", "Documents", "Chunks"].map((name) => el("th", { scope: "col" }, name));
  const rows = sites.map((site) => el("tr", {},
    el("th", { scope: "row" }, site.name),
    el("td", {}, site.access ?? ""),
    ...[site.documents, site.chunks].map((number) => el("td", { class: "number" }, typeof number === "number" ? number.toLocaleString() : ""))));
  return [el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows))];
}

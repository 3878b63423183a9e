/* One question and its answer on the page: what was asked, how it goes, what was found, what can be done. */

import { CardList } from "./cards.js";
import { button, el, setText } from "./dom.js";
import { rememberLine, usedFacts } from "./memory.js";
import { LOAD_COMMAND, NOTHING, count, explain } from "./texts.js";

let made = 0;

export class Turn {
  /** `asked` = {question, site, exact}; `deeds` = {retry, edit, exactly, allSites, announce, severalSites}. */
  constructor(asked, deeds) {
    this.asked = asked;
    this.deeds = deeds;
    this.searched = asked.question;
    this.state = "running"; // running, done, stopped, failed
    this.list = new CardList({ nameSites: deeds.severalSites });
    made += 1;
    this.heading = el("h2", { id: `turn-${made}`, class: "asked", dir: "auto", tabindex: "-1" }, asked.question);
    this.rewrite = el("div", { class: "rewrite", hidden: true });
    this.used = el("div", {});
    this.progress = el("p", { class: "progress" });
    this.remembered = el("div", {});
    this.notes = el("div", { class: "notes" });
    this.after = el("div", { class: "actions" });
    this.element = el(
      "section", { class: "turn is-running", "aria-labelledby": this.heading.id, "aria-busy": "true" },
      this.heading, this.rewrite, this.progress, this.used, this.remembered, this.list.element, this.notes, this.after,
    );
    this.begin();
  }

  /** The same question runs (again): what is shown stays until something better is known. */
  begin() {
    this.state = "running";
    this.empty = null;
    this.queryId = "";
    this.list.unsettle();
    this.notes.replaceChildren();
    this.after.replaceChildren();
    this.remembered.replaceChildren();
    this.trouble = null;
    this.element.classList.add("is-running");
    this.element.setAttribute("aria-busy", "true");
    this.say("Searching…");
  }

  /** Shows one message of the stream; unknown ones are for other clients. */
  receive(message) {
    if (message.query_id) this.queryId = String(message.query_id);
    SHOWN[message.message_type]?.(this, message);
  }

  found() {
    this.say(this.list.size ? `${count(this.list.size)} so far…` : "Searching…");
  }

  finish({ order }) {
    this.list.settle(order);
    this.end("done");
    const onlyToRemember = !this.list.size && !this.empty && this.remembered.childElementCount > 0;
    if (onlyToRemember && !this.failed) this.say("Done");
    else this.say(this.list.size ? count(this.list.size) : this.failed ? "No answer" : "No results");
    if (this.failed?.retry) this.offerRetry();
  }

  stop() {
    if (this.state !== "running") return;
    this.end("stopped");
    this.say(["Stopped", this.list.size ? count(this.list.size) : ""].filter(Boolean).join(" · "));
    this.offerRetry();
  }

  /** The request was refused or the connection is gone for good; what had arrived stays. */
  fail(error) {
    this.end("failed");
    const told = explain(error);
    this.problem(told);
    this.say(this.list.size ? `Not finished · ${count(this.list.size)}` : "No answer");
    if (told.code === "site_unknown") this.after.append(button("Search all sites", () => this.deeds.allSites(this)));
    if (told.retry) this.offerRetry();
  }

  end(state) {
    this.state = state;
    this.broke(0);
    this.element.classList.remove("is-running");
    this.element.removeAttribute("aria-busy");
    if (state !== "done") this.list.settle(null);
  }

  /** The connection broke and is being taken up again (`tries` 0: it goes on). */
  broke(tries, of) {
    this.trouble?.remove();
    this.trouble = tries ? el("p", { class: "note" }, `Connection lost. Trying again (${tries} of ${of})…`) : null;
    if (this.trouble) {
      this.notes.append(this.trouble);
      this.deeds.announce("Connection lost. Trying again.");
    }
  }

  get failed() {
    return this.lastProblem && this.notes.contains(this.lastProblem.element) ? this.lastProblem : null;
  }

  problem(told) {
    const element = el("div", { class: "note is-error", "data-code": told.code }, el("p", {}, el("strong", {}, told.what), " ", told.todo));
    if (this.queryId) element.append(el("p", { class: "reference" }, `Reference: ${this.queryId}`));
    this.lastProblem = { ...told, element };
    this.notes.append(element);
  }

  nothing({ message, reason }) {
    this.empty = reason;
    const text = NOTHING[reason] ?? message ?? "Nothing was found.";
    const note = el("div", { class: "note" }, el("p", {}, text));
    if (reason === "site_empty") note.append(el("p", {}, "Whoever runs it can load something with ", el("code", {}, LOAD_COMMAND), "."));
    this.notes.append(note);
    if (this.deeds.severalSites && this.asked.site !== "all") this.after.append(button("Search all sites", () => this.deeds.allSites(this)));
    if (reason === "retrieval_failed") this.offerRetry();
    else if (reason !== "site_empty") this.after.append(button("Change the question", () => this.deeds.edit(this, this.searched, false)));
  }

  rewritten({ decontextualized_query: searched, original_query: original }) {
    if (!searched || folded(searched) === folded(original || this.asked.question)) return;
    this.searched = searched;
    this.rewrite.replaceChildren(
      el("p", {}, "Searched for: ", el("bdi", { class: "searched" }, searched)),
      el("div", { class: "actions" },
        button("Edit", () => this.deeds.edit(this, searched, true), "quiet"),
        button("Use my exact words", () => this.deeds.exactly(this), "quiet")),
    );
    this.rewrite.hidden = false;
  }

  offerRetry() {
    if (this.after.querySelector("[data-retry]")) return;
    const retry = button("Retry", () => this.deeds.retry(this), "strong");
    retry.dataset.retry = "";
    this.after.prepend(retry);
  }

  say(text) {
    setText(this.progress, text);
    const asking = this.remembered.querySelector(".is-offer") ? ". May this be remembered? Two buttons wait for an answer." : "";
    this.deeds.announce(text + asking);
  }
}

const SHOWN = {
  asking_sites: (turn, { sites, message }) => {
    const names = Array.isArray(sites) ? sites : [];
    if (names.length && names.length <= 3) turn.say(`Searching ${names.join(", ")}…`);
    else if (message) turn.say(message);
  },
  decontextualized_query: (turn, message) => turn.rewritten(message),
  remember: (turn, message) => turn.remembered.append(rememberLine(message, turn.deeds.announce)),
  used_memories: (turn, { items }) => turn.used.replaceChildren(...[usedFacts(Array.isArray(items) ? items : [])].filter(Boolean)),
  result_batch: (turn, { results }) => {
    turn.list.take((Array.isArray(results) ? results : []).filter((item) => item && typeof item === "object"));
    turn.found();
  },
  no_results: (turn, message) => turn.nothing(message),
  error: (turn, message) => turn.problem(explain(message)),
  complete: (turn, message) => turn.finish(message),
};

function folded(text) {
  return text.trim().replace(/\s+/g, " ").toLowerCase();
}

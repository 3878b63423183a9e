/* One question and its answer on the page: what was asked, how it goes, what was found, what can be done. */

import { AnswerText, consideredList } from "./answer.js";
import { CardList } from "./cards.js";
import { button, el, setText } from "./dom.js";
import { forgottenLine, memoriesList, rememberLine, usedFacts } from "./memory.js";
import { askBlock, comparisonBlock, detailsBlock, ensembleBlock } from "./structures.js";
import { NOTHING, count, explain } from "./texts.js";

let made = 0;

export class Turn {
  /** `asked` = {question, site, mode, exact, store}; `deeds` = {retry, edit, exactly, answer, allSites, announce, …}. */
  constructor(asked, deeds) {
    this.asked = asked;
    this.deeds = deeds;
    this.searched = asked.question;
    this.memoryIds = new Set(); // of the facts that were told in this turn
    this.usedIds = new Set(); // of those that the answer takes into account
    this.plain = false; // what it was rewritten to may have words of a fact that is forgotten
    this.memoryDeeds = {
      announce: (text) => {
        this.keepFocus();
        deeds.announce(text);
      },
      kept: (id) => this.memoryIds.add(id),
      forgotten: (ids) => deeds.forgotten(ids),
    };
    this.state = "running"; // running, done, stopped, failed
    this.list = new CardList({ nameSites: deeds.severalSites });
    made += 1;
    this.heading = el("h2", { id: `turn-${made}`, class: "asked", dir: "auto", tabindex: "-1" }, asked.question);
    this.rewrite = el("div", { class: "rewrite", hidden: true });
    this.used = el("div", {});
    this.progress = el("p", { class: "progress" });
    this.remembered = el("div", { focusin: ({ target }) => { this.focusedLine = target.closest(".remember"); } });
    this.alerts = el("div", { class: "notes" }); // above the results: a tenth card would hide them
    this.said = el("div", { class: "said" });
    this.answer = new AnswerText();
    this.considered = el("div", {});
    this.notes = el("div", { class: "notes" });
    this.after = el("div", { class: "actions" });
    this.element = el(
      "section", { class: "turn is-running", "aria-labelledby": this.heading.id, "aria-busy": "true" },
      this.heading, this.rewrite, this.progress, this.alerts, this.used, this.remembered, this.said, this.answer.element,
      this.list.element, this.considered, this.notes, this.after,
    );
    this.begin();
  }

  /** The same question runs (again): what is shown stays until something better is known. */
  begin() {
    this.state = "running";
    this.empty = null;
    this.outcome = "";
    this.queryId = "";
    this.list.unsettle();
    this.answer.clear();
    for (const part of [this.alerts, this.said, this.considered, this.notes, this.after, this.remembered]) part.replaceChildren();
    if (this.asked.mode === "summarize") this.said.append(el("p", { class: "answer is-awaited" }, "The summary comes when the best results are known."));
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

  /** What it was searched as, for later questions. */
  get meant() {
    return this.plain ? this.asked.question : this.searched;
  }

  /** Takes note of the remembered facts that are used, and names them. */
  uses({ items }) {
    const facts = objects(items);
    for (const { memory_id: id } of facts) this.usedIds.add(id);
    this.used.replaceChildren(...[usedFacts(facts)].filter(Boolean));
  }

  found() {
    this.say(this.list.size ? `${count(this.list.size)} so far…` : "Searching…");
  }

  finish({ order }) {
    this.list.settle(order);
    this.end("done");
    const onlyToRemember = !this.list.size && !this.empty && this.remembered.childElementCount > 0;
    if (this.outcome) this.say(this.outcome);
    else if (onlyToRemember && !this.failed) this.say("Done");
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
    const something = this.list.size ? `Not finished · ${count(this.list.size)}` : this.answer.empty ? "No answer" : "Not finished";
    this.say(something);
    if (told.code === "site_unknown") this.after.append(button("Search all sites", () => this.deeds.allSites(this)));
    if (told.retry) this.offerRetry();
  }

  end(state) {
    this.state = state;
    this.broke(0);
    this.element.classList.remove("is-running");
    this.element.removeAttribute("aria-busy");
    this.answer.flush();
    this.said.querySelector(".is-awaited")?.remove();
    if (state !== "done") this.list.settle(null);
  }

  /** The connection broke and is being taken up again (`tries` 0: it goes on). */
  broke(tries, of) {
    this.trouble?.remove();
    this.trouble = tries ? el("p", { class: "note" }, `Connection lost. Trying again (${tries} of ${of})…`) : null;
    if (this.trouble) {
      this.alerts.append(this.trouble);
      this.deeds.announce("Connection lost. Trying again.");
    }
  }

  get failed() {
    return this.lastProblem && this.alerts.contains(this.lastProblem.element) ? this.lastProblem : null;
  }

  problem(told) {
    const element = el("div", { class: "note is-error", "data-code": told.code }, el("p", {}, el("strong", {}, told.what), " ", told.todo));
    if (this.queryId) element.append(el("p", { class: "reference" }, `Reference: ${this.queryId}`));
    this.lastProblem = { ...told, element };
    this.alerts.append(element);
  }

  /** A button of a memory line was pressed and is switched off or gone by now: the focus stays with the line. */
  keepFocus() {
    const line = this.focusedLine;
    this.focusedLine = null;
    if (document.activeElement !== document.body || !line?.firstElementChild) return;
    line.firstElementChild.tabIndex = -1;
    line.firstElementChild.focus({ preventScroll: true });
  }

  /** A piece of the written answer. */
  write(text) {
    if (this.answer.empty) this.say("Writing…");
    this.answer.add(text);
  }

  /** The written answer is whole; its sources are cards, what was only read stands apart. */
  written({ answer, items, considered }) {
    const sources = objects(items);
    this.answer.settle(answer, sources);
    this.list.showSources(sources);
    this.considered.replaceChildren(...[consideredList(objects(considered))].filter(Boolean));
    const named = sources.length === 1 ? "1 source" : `${sources.length} sources`;
    this.outcome = this.answer.empty ? "" : sources.length ? `Answer ready, ${named}` : "Answer ready";
  }

  summed({ message }) {
    if (typeof message !== "string" || !message.trim()) return;
    this.said.querySelector(".is-awaited")?.remove();
    this.said.append(el("p", { class: "answer is-summary", "data-testid": "summary", dir: "auto" }, message.trim()));
    this.outcome = `Summary ready, ${count(this.list.size)}`;
  }

  /** An answer that is no list. */
  tell(block, outcome) {
    this.said.append(block);
    this.outcome = outcome;
  }

  /** What a block above says already, its card does not say again. */
  untold(item) {
    const { description } = item;
    const said = typeof description === "string" && description !== "" && this.said.textContent.includes(description.trim());
    return said ? { ...item, description: "" } : item;
  }

  irrelevant({ message }) {
    this.tell(el("p", { class: "note", "data-kind": "irrelevant", dir: "auto" }, message || "This site has nothing on that."), "Not answered here");
    this.offerAllSites();
    this.offerChange();
  }

  nothing({ message, reason }) {
    this.empty = reason;
    const text = NOTHING[reason] ?? message ?? "Nothing was found.";
    this.notes.append(el("p", { class: "note" }, text));
    this.offerAllSites();
    if (reason === "retrieval_failed") this.offerRetry();
    else if (reason !== "site_empty") this.offerChange();
  }

  offerAllSites() {
    if (this.deeds.severalSites && this.asked.site !== "all") this.after.append(button("Search all sites", () => this.deeds.allSites(this)));
  }

  offerChange() {
    this.after.append(button("Change the question", () => this.deeds.edit(this, this.meant, false)));
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
  __proto__: null,
  asking_sites: (turn, { sites, message }) => {
    const names = Array.isArray(sites) ? sites : [];
    if (names.length && names.length <= 3) turn.say(`Searching ${names.join(", ")}…`);
    else if (message) turn.say(message);
  },
  decontextualized_query: (turn, message) => turn.rewritten(message),
  remember: (turn, message) => turn.remembered.append(rememberLine(message, turn.memoryDeeds)),
  forgotten: (turn, message) => {
    turn.takenBack = true; // it names what is to be forgotten
    turn.remembered.append(forgottenLine(message, turn.memoryDeeds));
  },
  memories: (turn, message) => turn.remembered.append(memoriesList(message, turn.memoryDeeds)),
  used_memories: (turn, message) => turn.uses(message),
  result_batch: (turn, { results }) => {
    turn.list.take(objects(results).map((item) => turn.untold(item)));
    turn.found();
  },
  summary: (turn, message) => turn.summed(message),
  nlws_delta: (turn, { text }) => turn.write(text),
  nlws: (turn, message) => turn.written(message),
  site_is_irrelevant_to_query: (turn, message) => turn.irrelevant(message),
  ask_user: (turn, message) => turn.tell(askBlock(message, (text) => turn.deeds.answer(turn, text)), "One question first"),
  item_details: (turn, message) => turn.tell(detailsBlock(message), "Answer ready"),
  compare_items: (turn, message) => turn.tell(comparisonBlock(message), "Comparison ready"),
  ensemble_result: (turn, message) => turn.tell(ensembleBlock(message), "Suggestions ready"),
  no_results: (turn, message) => turn.nothing(message),
  error: (turn, message) => turn.problem(explain(message)),
  complete: (turn, message) => turn.finish(message),
};

function objects(list) {
  return (Array.isArray(list) ? list : []).filter((one) => one && typeof one === "object");
}

function folded(text) {
  return text.trim().replace(/\s+/g, " ").toLowerCase();
}

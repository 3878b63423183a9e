/* Which sites there are, which one is asked, and what the page says before the first question. */

import { button, el } from "./dom.js";
import { explain } from "./texts.js";
import { fetchSites } from "./api.js";

const MAX_EXAMPLES = 4;

export class Sites {
  /** `parts` = {choice, select, notices, introTitle, introText, introMore}; `ask` sends an example question. */
  constructor(parts, ask) {
    this.parts = parts;
    this.ask = ask;
    this.all = [];
    this.known = false;
    this.value = wanted() || "all";
    parts.select.addEventListener("change", () => this.choose(parts.select.value));
  }

  get several() {
    return this.all.length > 1;
  }

  /** Reads the list; a failure is shown, and asking stays possible. */
  async load() {
    try {
      this.all = await fetchSites();
      this.known = true;
      this.check();
    } catch (error) {
      const { what, todo } = explain(error);
      this.notice(el("p", {}, `The list of sites could not be read. ${what} ${todo}`), button("Retry", () => this.load()));
      return;
    }
    this.showChoice();
    this.showIntro();
  }

  get empty() {
    return this.known && (this.all.length === 0 || this.all.every((site) => site.documents === 0));
  }

  label(value) {
    return value === "all" ? "all sites" : value.split(",").join(", ");
  }

  choose(value) {
    this.value = value;
    const address = new URL(location.href);
    if (value === "all") address.searchParams.delete("site");
    else address.searchParams.set("site", value);
    history.replaceState(null, "", address);
    this.parts.notices.replaceChildren();
    this.showChoice();
    this.showIntro();
  }

  /** A site that the address names and that is not there is said, never silently replaced. */
  check() {
    this.parts.notices.replaceChildren();
    const missing = this.value.split(",").filter((name) => name !== "all" && !this.all.some((site) => site.name === name));
    if (!missing.length || !this.all.length) {
      if (missing.length) this.value = "all"; // nothing is loaded at all, and the page says that
      return;
    }
    this.value = "";
    this.notice(
      el("p", {}, "There is no site ", el("bdi", { class: "wrong" }, missing.join(", ")), " here. Choose one to ask:"),
      ...[...this.all.map((site) => site.name), ...(this.several ? ["all"] : [])].map((name) =>
        button(name === "all" ? "All sites" : name, () => this.choose(name))),
    );
  }

  notice(message, ...buttons) {
    this.parts.notices.replaceChildren(el("div", { class: "note is-warning" }, message, el("div", { class: "actions" }, ...buttons)));
  }

  showChoice() {
    const { choice, select } = this.parts;
    const values = ["all", ...this.all.map((site) => site.name)];
    const options = values.map((value) => el("option", { value }, value === "all" ? "All sites" : value));
    if (this.value === "") options.unshift(el("option", { value: "", disabled: true }, "Choose a site"));
    else if (!values.includes(this.value)) options.push(el("option", { value: this.value }, this.label(this.value)));
    select.replaceChildren(...options);
    select.value = this.value;
    choice.hidden = this.all.length <= 1;
  }

  showIntro() {
    const { introTitle, introText, introMore } = this.parts;
    introTitle.textContent = this.empty ? "Nothing to find yet" : "What are you looking for?";
    if (this.empty) {
      introText.textContent = "There is nothing here to search yet. Please come back later.";
      introMore.replaceChildren();
      return;
    }
    const shown = this.value === "all" || this.value === "" ? this.all : this.all.filter((site) => this.value.split(",").includes(site.name));
    introText.textContent = introduction(shown);
    const examples = mixed(shown.map((site) => site.examples)).slice(0, MAX_EXAMPLES);
    introMore.replaceChildren(...(examples.length
      ? [el("ul", { class: "examples", "aria-label": "Example questions" }, ...examples.map((example) => el("li", {}, button(example, () => this.ask(example), "example"))))]
      : []));
    for (const made of introMore.querySelectorAll("button")) made.dir = "auto";
  }
}

function introduction(sites) {
  if (sites.length === 1 && sites[0].description) return sites[0].description;
  if (sites.length === 1) return `Ask about anything on ${sites[0].name}, in your own words.`;
  const names = new Intl.ListFormat("en").format(sites.slice(0, 4).map((site) => site.name));
  return sites.length && sites.length <= 4 ? `Ask about anything on ${names}, in your own words.` : "Ask in your own words; follow-up questions work too.";
}

/** One of each list in turn, so that every site shows something it can answer. */
function mixed(lists) {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return [...new Set(Array.from({ length: longest }, (_, i) => lists.map((list) => list[i]).filter(Boolean)).flat())];
}

function wanted() {
  return new URLSearchParams(location.search).getAll("site").join(",").trim();
}

/* Answers that are no list: details of an item, a comparison, a menu, a question back. Any shape is readable. */

import { button, el, webAddress } from "./dom.js";

const MAX_DEPTH = 6;
const MAX_PARTS = 100;
const UNTOLD = new Set(["schema_object", "document_id", "site", "siteUrl", "score", "url", "name", "title", "@type", "@id", "@context"]);
const PLAIN = new Set(["description", "text", "details"]); // what they hold says itself what it is

/** A value of any shape as elements, or null for one that says nothing. */
export function rendered(value, depth = 0) {
  if (value === null || value === undefined || value === "" || depth > MAX_DEPTH) return null;
  if (typeof value === "boolean") return el("p", {}, value ? "Yes" : "No");
  if (typeof value !== "object") return el("p", { class: "told", dir: "auto" }, linked(String(value), String(value)));
  const made = Array.isArray(value) ? parts(value, depth) : fields(value, depth);
  return made.childElementCount ? made : null;
}

function parts(list, depth) {
  const made = list.slice(0, MAX_PARTS).map((one) => rendered(one, depth + 1)).filter(Boolean);
  const plain = list.every((one) => typeof one !== "object");
  return el("ul", { class: plain ? "plain-list" : "things" }, ...made.map((one) => el("li", {}, one)));
}

function fields(object, depth) {
  const made = el("div", { class: "thing" });
  const title = heading(object);
  if (title) made.append(title);
  for (const [key, value] of Object.entries(object).slice(0, MAX_PARTS)) {
    const shown = (UNTOLD.has(key) && title) || key === "schema_object" ? null : rendered(value, depth + 1);
    if (shown) made.append(PLAIN.has(key) ? shown : el("div", { class: "field" }, el("p", { class: "label" }, words(key)), shown));
  }
  return made;
}

function heading(object) {
  const name = [object.name, object.title].find((one) => typeof one === "string" && one.trim());
  return name ? el("p", { class: "thing-title", dir: "auto" }, linked(name, object.url)) : null;
}

/** `text` as a link if `address` is one of the web, else as it is. */
function linked(text, address) {
  const checked = webAddress(address);
  return checked ? el("a", { href: checked.href, target: "_blank", rel: "noopener noreferrer" }, text) : text;
}

/** `why_recommended` → "Why recommended". */
function words(key) {
  const said = key.replace(/^@/, "").replace(/([a-z\d])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim().toLowerCase();
  return said.charAt(0).toUpperCase() + said.slice(1);
}

/** A model that is asked for text may write JSON into it. */
function unpacked(value) {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** For an `item_details` message. */
export function detailsBlock({ name, url, details, explanation }) {
  return block("details", [linked(String(name ?? ""), url)], rendered(unpacked(details)), rendered(explanation));
}

/** For a `compare_items` message. */
export function comparisonBlock({ item1, item2, comparison }) {
  const sides = [item1, item2].filter((side) => side && typeof side === "object").map((side) => linked(String(side.name ?? ""), side.url));
  return block("comparison", sides.length === 2 ? [sides[0], " and ", sides[1]] : sides, rendered(unpacked(comparison)));
}

/** For an `ensemble_result` message. */
export function ensembleBlock({ result }) {
  const told = result?.recommendations ?? result;
  if (!told || typeof told !== "object" || Array.isArray(told)) return block("ensemble", [], rendered(told));
  const { theme, ...rest } = told;
  const { items } = rest;
  delete rest.items;
  return block("ensemble", typeof theme === "string" && theme ? [theme] : [], rendered(items), rendered(rest));
}

/** For an `ask_user` message; `answer` sends what is chosen. */
export function askBlock({ message, questions }, answer) {
  const made = block("asks", typeof message === "string" && message ? [message] : []);
  for (const question of Array.isArray(questions) ? questions : []) {
    if (!question || typeof question !== "object") continue;
    if (question.text && question.text !== message) made.append(el("p", { dir: "auto" }, String(question.text)));
    const options = (Array.isArray(question.options) ? question.options : []).filter((one) => typeof one === "string" && one.trim());
    const buttons = options.map((option) => button(option, () => answer(option)));
    for (const one of buttons) one.dir = "auto";
    made.append(el("div", { class: "actions", role: "group", "aria-label": question.text || message || null }, ...buttons));
  }
  if (!made.querySelector("button")) made.append(el("p", { class: "quiet-text" }, "Write your answer into the question box."));
  return made;
}

function block(kind, title, ...content) {
  const shown = content.filter(Boolean);
  const named = title.some((one) => one !== "");
  return el("div", { class: `block is-${kind}`, "data-kind": kind }, named ? el("h3", { class: "block-title", dir: "auto" }, ...title) : null, ...shown);
}

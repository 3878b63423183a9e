/* What an answer shows of long-term memory: facts kept, facts that need consent, facts that were used. */

import { confirmMemory } from "./api.js";
import { button, el } from "./dom.js";
import { explain } from "./texts.js";

/** The line for a `remember` message: a chip if the fact is kept, else the question whether to keep it. */
export function rememberLine(message, announce) {
  const line = el("div", { class: "remember" });
  if (message.memory_id) line.append(chip(message.item_to_remember));
  else if (message.confirm) offer(line, message, announce);
  else line.append(el("p", { class: "chip is-plain", dir: "auto" }, message.message || `Noted: ${message.item_to_remember}`));
  return line;
}

function chip(text) {
  return el("p", { class: "chip" }, "Remembered: ", el("bdi", {}, text));
}

function offer(line, message, announce) {
  const failed = el("p", { class: "problem", hidden: true });
  const keep = button("Remember on this device", () => confirm(), "strong");
  const drop = button("No thanks", () => done(el("p", { class: "chip is-plain" }, "Not remembered"), "Not remembered"));
  line.classList.add("is-offer");
  line.append(
    el("p", { class: "offer-text" }, "Remember for next time: ", el("bdi", {}, message.item_to_remember), "?"),
    el("div", { class: "actions" }, keep, drop),
    failed,
  );

  function done(node, said) {
    const hadFocus = line.contains(document.activeElement);
    line.classList.remove("is-offer");
    line.replaceChildren(node);
    if (hadFocus) {
      node.tabIndex = -1; // the button that had the focus is gone: stay in this place
      node.focus();
    }
    announce(said);
  }

  async function confirm() {
    keep.disabled = drop.disabled = true;
    failed.hidden = true;
    try {
      const stored = await confirmMemory(message.confirm);
      done(chip(stored.text || message.item_to_remember), "Remembered");
    } catch (error) {
      const gone = error.status >= 400 && error.status < 500 && error.status !== 429; // another try says the same
      const { what, todo } = explain(error);
      failed.textContent = gone ? "This offer has run out. Ask me to remember it again." : `Not remembered. ${what} ${todo}`;
      failed.hidden = false;
      keep.disabled = gone;
      drop.disabled = false;
      (gone ? drop : keep).focus();
      announce("Could not be remembered");
    }
  }
}

/** "Used 2 remembered facts", to be opened; null for none. */
export function usedFacts(items) {
  const facts = items.map((item) => item?.text).filter((text) => typeof text === "string" && text);
  if (!facts.length) return null;
  const label = facts.length === 1 ? "Used 1 remembered fact" : `Used ${facts.length} remembered facts`;
  return el("details", { class: "used" }, el("summary", {}, label), el("ul", {}, ...facts.map((fact) => el("li", { dir: "auto" }, fact))));
}

/* What an answer shows of long-term memory: facts kept, asked about, used, told and forgotten. */

import { confirmMemory, forgetMemory, keepMemory, readMemory, undoMemory } from "./api.js";
import { button, el } from "./dom.js";
import { explain } from "./texts.js";

const again = new Map(); // id of a fact that was forgotten and then kept again -> its new id

/**
 * The line for a `remember` message: a chip if the fact is kept, else the question whether to keep it.
 * `deeds` = {announce, kept(id), forgotten(ids)}.
 */
export function rememberLine(message, deeds) {
  const line = el("div", { class: "remember" });
  if (message.memory_id) keep(line, message.item_to_remember, message.memory_id, deeds);
  else if (message.confirm) {
    offer(line, message, deeds, {
      text: ["Remember for next time: ", el("bdi", {}, message.item_to_remember), "?"],
      yes: "Remember on this device",
      dropped: "Not remembered",
      failed: "Not remembered.",
      gone: "This offer has run out. Ask me to remember it again.",
      done(stored) {
        keep(line, stored.text || message.item_to_remember, stored.memory_id, deeds);
        return "Remembered";
      },
    });
  } else line.append(el("p", { class: "chip is-plain", dir: "auto" }, message.message || `Noted: ${message.item_to_remember}`));
  return line;
}

/** The line for a `forgotten` message: what is forgotten, or the question whether to forget it. */
export function forgottenLine(message, deeds) {
  const line = el("div", { class: "remember" });
  const items = facts(message.items);
  const listed = items.length ? [el("ul", {}, ...items.map((item) => el("li", { dir: "auto" }, item.text)))] : [];
  if (!message.confirm) {
    deeds.forgotten(items.map((item) => item.memory_id));
    line.append(el("p", { class: "chip is-plain", dir: "auto" }, message.message || "Forgotten"));
    return line;
  }
  offer(line, message, deeds, {
    text: [message.message || "Shall I forget this?", ...listed],
    yes: "Forget",
    dropped: "Not forgotten",
    failed: "Not forgotten.",
    gone: "This offer has run out. Ask me to forget it again.",
    done(answer) {
      deeds.forgotten(answer.erased ? null : answer.forgotten);
      line.replaceChildren(el("p", { class: "chip is-plain" }, "Forgotten"));
      return "Forgotten";
    },
  });
  return line;
}

/** The list for a `memories` message: what is kept about the person, each fact with a button that forgets it. */
export function memoriesList(message, deeds) {
  const items = facts(message.items);
  const list = el("div", { class: "memories" }, el("p", {}, items.length ? "What I remember about you:" : message.message || "Nothing is kept about you here."));
  if (items.length) list.append(el("ul", {}, ...items.map((item) => listed(el("li", { class: "remember" }), item, deeds))));
  return list;
}

function facts(items) {
  return (Array.isArray(items) ? items : []).filter((item) => item && typeof item.text === "string" && item.text);
}

/** The chip of a kept fact; with an id it can be taken back. */
function keep(line, text, id, deeds) {
  line.replaceChildren(el("p", { class: "chip" }, "Remembered: ", el("bdi", {}, text)));
  if (!id) return;
  deeds.kept(id);
  line.append(...deed(line, deeds, {
    label: "Undo",
    failed: "Still remembered.",
    act: () => orGone(undoMemory(latest(id))),
    done() {
      deeds.forgotten([id, latest(id)]);
      line.replaceChildren(el("p", { class: "chip is-plain" }, "Not remembered"));
      return "Not remembered";
    },
  }));
}

/** A kept fact in a list; where it has no id, nobody can forget it from here. */
function listed(line, fact, deeds) {
  line.replaceChildren(el("p", { dir: "auto" }, fact.text));
  if (!fact.memory_id) return line;
  const id = () => latest(fact.memory_id);
  line.append(...deed(line, deeds, {
    label: "Forget",
    about: fact.text,
    failed: "Still remembered.",
    async act() {
      const whole = await orGone(readMemory(id())); // an Undo needs more than the list tells
      const gone = await orGone(forgetMemory(id()));
      return gone && (whole?.status ?? "active") === "active" ? { ...fact, ...whole, memory_id: id() } : null;
    },
    done(kept) {
      deeds.forgotten([fact.memory_id, id()]);
      line.replaceChildren(el("p", { class: "is-gone" }, "Forgotten: ", el("bdi", {}, fact.text)));
      if (kept) line.append(...keepAgain(line, kept, deeds));
      return "Forgotten";
    },
  }));
  return line;
}

/** The Undo of a fact that was forgotten just now: what it was is kept anew, as the server has nothing of it any more. */
function keepAgain(line, fact, deeds) {
  return deed(line, deeds, {
    label: "Undo",
    about: fact.text,
    failed: "Still forgotten.",
    act: () => keepMemory(fact),
    done(kept) {
      if (kept.memory_id && kept.memory_id !== fact.memory_id) again.set(fact.memory_id, kept.memory_id);
      listed(line, { text: fact.text, memory_id: kept.memory_id }, deeds);
      return "Remembered again";
    },
  });
}

/** The id that a fact has by now. */
function latest(id) {
  return again.has(id) ? latest(again.get(id)) : id;
}

/** The answer, or null where the fact was gone already: that is what was wanted. */
async function orGone(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error.code !== "not_found") throw error;
    return null;
  }
}

/**
 * A button for one thing the server is asked for, and the place where a failure of it is told. `says` = {label, about,
 * failed, act(), done(answer)}: `done` shows in the line what became of it, and returns that in a word.
 */
function deed(line, deeds, { label, about, failed, act, done }) {
  const problem = el("p", { class: "problem", hidden: true });
  let busy = false;
  const pressed = button(label, async ({ detail }) => {
    if (busy || detail > 1) return; // the second half of a double click is not meant for what the first one brought
    busy = true;
    problem.hidden = true;
    pressed.setAttribute("aria-disabled", "true"); // one that is `disabled` would lose the focus
    try {
      const answer = await act();
      const hadFocus = line.contains(document.activeElement);
      const said = done(answer);
      if (hadFocus) focusOn(line.firstElementChild);
      deeds.announce(said);
    } catch (error) {
      const { what, todo } = explain(error);
      problem.textContent = `${failed} ${what} ${todo}`;
      problem.hidden = false;
      deeds.announce(problem.textContent);
    } finally {
      busy = false;
      pressed.removeAttribute("aria-disabled");
    }
  }, "quiet");
  if (about) pressed.setAttribute("aria-label", `${label}: ${about}`); // one of several in a list
  return [pressed, problem];
}

/** A question with two buttons; `says` = {text, yes, dropped, failed, gone, done(answer)}. */
function offer(line, message, deeds, says) {
  const failed = el("p", { class: "problem", hidden: true });
  const yes = button(says.yes, () => confirm(), "strong");
  const no = button("No thanks", () => {
    line.classList.remove("is-offer");
    replaced(line, el("p", { class: "chip is-plain" }, says.dropped));
    deeds.announce(says.dropped);
  });
  line.classList.add("is-offer");
  line.append(el("div", { class: "offer-text" }, ...says.text), el("div", { class: "actions" }, yes, no), failed);

  async function confirm() {
    const hadFocus = line.contains(document.activeElement); // a button that is disabled loses it
    yes.disabled = no.disabled = true;
    failed.hidden = true;
    try {
      const answer = await confirmMemory(message.confirm);
      line.classList.remove("is-offer");
      const said = says.done(answer);
      if (hadFocus) focusOn(line.firstElementChild);
      deeds.announce(said);
    } catch (error) {
      const gone = error.status >= 400 && error.status < 500 && error.status !== 429; // another try says the same
      const { what, todo } = explain(error);
      failed.textContent = gone ? says.gone : `${says.failed} ${what} ${todo}`;
      failed.hidden = false;
      yes.disabled = gone;
      no.disabled = false;
      (gone ? no : yes).focus();
      deeds.announce(`${says.failed} Try again, or leave it.`);
    }
  }
}

/** Puts `node` in the line's place; the button that had the focus is gone, so the focus stays in this place. */
function replaced(line, node) {
  const hadFocus = line.contains(document.activeElement);
  line.replaceChildren(node);
  if (hadFocus) focusOn(node);
}

function focusOn(node) {
  node.tabIndex = -1;
  node.focus();
}

/** "Used 2 remembered facts", to be opened; null for none. */
export function usedFacts(items) {
  const facts = items.map((item) => item?.text).filter((text) => typeof text === "string" && text);
  if (!facts.length) return null;
  const label = facts.length === 1 ? "Used 1 remembered fact" : `Used ${facts.length} remembered facts`;
  return el("details", { class: "used" }, el("summary", {}, label), el("ul", {}, ...facts.map((fact) => el("li", { dir: "auto" }, fact))));
}

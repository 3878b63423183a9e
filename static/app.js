/* Puts the page together: the conversation, what is sent, and the keys. */

import { Announcer } from "./announcer.js";
import { ask } from "./api.js";
import { Composer, isComposing } from "./composer.js";
import { el } from "./dom.js";
import { Modes } from "./modes.js";
import { Operator, takeToken } from "./operator.js";
import { Sites } from "./sites.js";
import { Turn } from "./turn.js";

const MAX_PREVIOUS = 20;

const token = takeToken(); // before anything else: it leaves the address at once

const byId = (id) => document.getElementById(id);
const transcript = byId("transcript");
const announcer = new Announcer(byId("status"));
const announce = (text) => announcer.say(text);

let conversation = newConversation();
let running = null; // {turn, stop: AbortController}

const sites = new Sites(
  {
    choice: byId("site-choice"), select: byId("site"), notices: byId("notices"),
    introTitle: byId("intro-title"), introText: byId("intro-text"), introMore: byId("intro-more"),
  },
  (example) => send(example, null),
);
const modes = new Modes(byId("modes"), offerAgain);
const operator = new Operator(byId("operator"), announce);
const composer = new Composer(
  {
    form: byId("composer"), box: byId("question"), send: byId("send"), label: byId("send-label"),
    problem: byId("question-problem"), exactNote: byId("exact-note"), exactCancel: byId("exact-cancel"),
  },
  { send, stop, busy: () => running !== null },
);

function newConversation() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return { id: Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join(""), turns: [] };
}

/**
 * Asks `question`; false if it cannot be sent now. With `replaced` it takes that turn's place in the conversation and,
 * if `exact`, is searched as it is written. `store` false: nothing about the person may be kept.
 */
function send(question, replaced, { site = sites.value, store = true, exact = Boolean(replaced) } = {}) {
  if (site === "") {
    byId("notices").querySelector("button")?.focus();
    return false;
  }
  stop();
  const before = conversation.turns.at(-1)?.asked;
  const turn = new Turn({ question, site, mode: modes.value, exact, store }, deeds());
  turn.previous = previousTo(replaced);
  if (replaced) replaced.replaced = true;
  conversation.turns.push(turn);
  if (before && before.site !== site) transcript.append(el("p", { class: "divider" }, "Now asking ", el("bdi", {}, sites.label(site))));
  transcript.append(turn.element);
  document.body.classList.remove("is-empty");
  byId("new-conversation").hidden = false;
  turn.element.scrollIntoView({ block: "start" }); // once: after this only the reader scrolls
  run(turn);
  return true;
}

function deeds() {
  return {
    announce,
    severalSites: sites.several,
    retry: (turn) => { stop(); turn.begin(); run(turn); turn.heading.focus({ preventScroll: true }); },
    edit: (turn, text, exact) => composer.edit(text, exact ? turn : null),
    exactly: (turn) => send(turn.asked.question, turn, { site: turn.asked.site }),
    forgotten,
    answer: (turn, text) => send(text, null, { site: turn.asked.site, store: turn.asked.store }),
    allSites: (turn) => { sites.choose("all"); send(turn.asked.question, null); },
  };
}

/**
 * Turns that told a fact which is forgotten are not sent along any more, and from the first one on that told or used
 * it the questions are sent as they were typed: it would come back with what they were rewritten to. Null: all.
 */
function forgotten(ids) {
  let known = false;
  for (const turn of conversation.turns) {
    const told = ids === null || ids.some((id) => turn.memoryIds.has(id));
    if (told) turn.takenBack = true;
    known ||= told || ids.some((id) => turn.usedIds.has(id));
    if (known) turn.plain = true;
  }
}

/** What counts as asked before: answered turns that no corrected one stands for, and that were not taken back. */
function previousTo(replaced) {
  const end = replaced ? conversation.turns.indexOf(replaced) : conversation.turns.length;
  return conversation.turns.slice(0, end < 0 ? undefined : end).filter((turn) => !turn.replaced && !turn.takenBack && turn.state !== "failed");
}

function body({ asked, previous: all }) {
  const previous = all.filter((turn) => !turn.takenBack); // also where it is asked again after an Undo
  const sent = {
    query: asked.question,
    site: asked.site,
    prev: previous.map((turn) => turn.meant).slice(-MAX_PREVIOUS),
    last_ans: previous.filter((turn) => turn.list.size > 0).at(-1)?.list.shown ?? [],
    conversation_id: conversation.id,
    mode: asked.mode,
    streaming: true,
  };
  if (asked.exact) sent.decontextualized_query = asked.question;
  if (!asked.store) sent.remember = false;
  return sent;
}

async function run(turn) {
  const mine = { turn, stop: new AbortController() };
  running = mine;
  composer.running(true);
  offerAgain();
  try {
    const messages = ask(body(turn), { signal: mine.stop.signal, onBreak: (tries, of) => turn.broke(tries, of) });
    for await (const message of messages) {
      if (mine.stop.signal.aborted) break; // read in one piece with what came before the stop
      if (message.message_type === "api_version") byId("llm-note").hidden = message.llm !== "none";
      turn.receive(message);
    }
  } catch (error) {
    if (mine.stop.signal.aborted) turn.stop();
    else turn.fail(error);
  } finally {
    if (running === mine) {
      running = null;
      composer.running(false);
      offerAgain();
    }
  }
}

/** Another kind of answer was chosen: the last question can be asked again for it. */
function offerAgain() {
  const last = conversation.turns.at(-1);
  byId("again").hidden = running !== null || !last || last.asked.mode === modes.value;
}

function askAgain() {
  const last = conversation.turns.at(-1);
  send(last.asked.question, last, last.asked);
  byId("question").focus();
}

/** Ends the running answer at once, whether or not anything has come; what has come stays. */
function stop() {
  if (!running) return;
  const { turn, stop: controller } = running;
  running = null;
  composer.running(false);
  controller.abort();
  turn.stop();
  offerAgain();
}

function startAnew() {
  stop();
  conversation = newConversation();
  transcript.replaceChildren();
  document.body.classList.add("is-empty");
  byId("new-conversation").hidden = true;
  composer.edit("", null);
  offerAgain();
  announce("New conversation");
  sites.load();
}

function onKey(event) {
  if (isComposing(event) || event.defaultPrevented) return;
  if (event.key === "Escape" && running) {
    event.preventDefault();
    stop();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
    event.preventDefault();
    byId("question").focus();
  }
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

/**
 * A link with ?q= asks once, and a reload does not ask again. Any page can link here, so what such a link asks may
 * keep nothing about the person who followed it.
 */
function askFromAddress() {
  const address = new URL(location.href);
  const question = address.searchParams.get("q")?.trim();
  if (!question) return;
  address.searchParams.delete("q");
  history.replaceState(null, "", address);
  if (!send(question, null, { store: false })) composer.fill(question);
}

byId("new-conversation").addEventListener("click", startAnew);
byId("again").addEventListener("click", askAgain);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", () => { // the link was opened in a tab that has the page already
  const brought = takeToken();
  if (brought !== null) operator.open(brought);
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && sites.empty) sites.load(); // something may have been loaded since
});

if (token !== null) operator.open(token);
await sites.load();
askFromAddress();
if (!matchMedia("(pointer: coarse)").matches && document.activeElement === document.body) byId("question").focus();

/* What the page says when something is missing or fails: what happened, and what to do about it. */

import { Lost, Refused } from "./api.js";

const ADVICE_LATER = "Please try again in a moment.";
const ADVICE_OPERATOR = "Please tell whoever runs this site.";
const FROM_SEARCH = "What is shown comes straight from search.";

const TOO_MANY = ["Too much was asked in a short time.", "Wait a little, then try again.", true];

/** code -> [what happened, what to do, whether asking again can help] */
const FAILURES = {
  bad_request: ["The server could not take this question.", "Change it and ask again.", false],
  site_unknown: ["There is no such site here.", "Choose another site.", false],
  not_found: ["This is no longer here.", "Ask again.", true],
  forbidden: ["You may not ask this site.", "Choose another site, or sign in where you came from.", false],
  unauthorized: ["This server answers only people it knows.", "Sign in where you came from, then ask again.", false],
  rate_limited: TOO_MANY,
  too_many: TOO_MANY,
  model_failed: ["The language model failed.", `${FROM_SEARCH} ${ADVICE_LATER}`, true],
  model_timeout: ["The language model took too long.", `${FROM_SEARCH} ${ADVICE_LATER}`, true],
  model_busy: ["The language model is busy.", `${FROM_SEARCH} ${ADVICE_LATER}`, true],
  model_refused: ["The language model cannot be used here at the moment.", `${FROM_SEARCH} ${ADVICE_OPERATOR}`, false],
  model_reply: ["The language model gave no usable reply.", `${FROM_SEARCH} ${ADVICE_LATER}`, true],
  store_failed: ["Searching does not work at the moment.", ADVICE_LATER, true],
  store_mismatch: ["Searching does not work: something is not set up right here.", ADVICE_OPERATOR, false],
  memory_failed: ["What is remembered cannot be reached at the moment.", ADVICE_LATER, true],
  config: ["Something is not set up right here.", ADVICE_OPERATOR, false],
  stopped: ["The connection was lost and the answer was stopped.", "What had arrived is still here.", true],
  too_large: ["This is more than the server takes in one piece.", "Ask with fewer words, or start a new conversation.", false],
  misdirected: ["This site does not answer under this address.", ADVICE_OPERATOR, false],
  load_failed: ["Something could not be loaded.", ADVICE_OPERATOR, false],
  internal: ["Something went wrong on the server.", ADVICE_LATER, true],
};
const SERVER_KNOWS_BETTER = new Set(["bad_request", "site_unknown"]); // its message names the cause

/** {what, todo, retry, code} for an `error` frame, a refused request, a lost connection, or anything else thrown. */
export function explain(failure) {
  if (failure instanceof Lost) return lost(failure);
  if (failure instanceof Refused && failure.code === "foreign_reply") return foreign(failure);
  const code = typeof failure.code === "string" ? failure.code : "internal";
  const [what, todo, retry] = FAILURES[code] ?? [failure.message || FAILURES.internal[0], ADVICE_LATER, true];
  const told = {
    code,
    what: SERVER_KNOWS_BETTER.has(code) && failure.message ? failure.message : what,
    todo,
    retry: typeof failure.retryable === "boolean" ? failure.retryable : retry,
  };
  if (failure.retryAfter) told.todo = `Try again in ${failure.retryAfter} s.`;
  return told;
}

function lost({ begun }) {
  if (!navigator.onLine) return { code: "offline", what: "You are offline.", todo: "Connect to the network, then try again.", retry: true };
  if (begun) return { code: "connection_lost", what: "The connection was lost.", todo: "What had arrived is still here.", retry: true };
  return { code: "unreachable", what: "The server cannot be reached.", todo: "Check that you are connected, then try again.", retry: true };
}

function foreign({ status }) {
  return {
    code: "foreign_reply",
    what: `Something on the way answered in this site's place (HTTP ${status}).`,
    todo: ADVICE_LATER,
    retry: true,
  };
}

/** What the page says for each reason of `no_results`. */
export const NOTHING = {
  site_empty: "There is nothing here to search yet.",
  below_min_score: "Nothing here matches closely enough. Other words, or fewer of them, may find more.",
  filters: "Nothing is left after the filters of this question.",
  retrieval_failed: "The search itself failed, so nothing can be shown.",
};

export const LOAD_COMMAND = "askable load FILE --site NAME";

export function count(number) {
  return `${new Intl.NumberFormat().format(number)} ${number === 1 ? "result" : "results"}`;
}

/* Talks to the server: sites, questions with resumption, what is remembered. */

import { readEvents } from "./sse.js";

const BASE = new URL("../", import.meta.url); // this file is served from <base>/static/
const MAX_RESUMES = 3;
const SILENCE_MS = 45_000; // three heartbeats of the server
const FIRST_PAUSE_MS = 250; // a server stops answers that nobody reads, so the first try comes soon
const MAX_PAUSE_MS = 10_000;
const LONGEST = "36500d"; // what the server takes for a fact that has no end
const KEPT_FIELDS = ["text", "kind", "scope", "site", "agent", "conversation_id", "expires_in", "metadata", "subject", "attribute"];

/** The server, or something before it, answered with an error status or not in its own language. */
export class Refused extends Error {
  constructor(status, code, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter; // seconds
  }
}

/** The connection failed; `begun` says whether the server had started to answer. */
export class Lost extends Error {
  constructor(begun) {
    super("connection lost");
    this.begun = begun;
  }
}

/** What can be asked: [{name, description, documents, examples}]. */
export async function fetchSites() {
  const reply = await json(await send("sites", { headers: { Accept: "application/json" } }));
  const details = new Map();
  for (const detail of asList(reply.details)) if (detail?.name) details.set(String(detail.name), detail);
  return asList(reply.sites).map(String).map((name) => {
    const detail = details.get(name) ?? {};
    return {
      name,
      description: typeof detail.description === "string" ? detail.description : "",
      documents: typeof detail.documents === "number" ? detail.documents : null,
      examples: asList(detail.examples).filter((example) => typeof example === "string" && example.trim()),
    };
  });
}

/**
 * How the server is, as its operator sees it: {ready: {status, checks}, sites: [details]}. The token goes into a header,
 * and nowhere but to this origin, not by a redirect either. Throws Refused (401, 403) for a token that is not good.
 */
export async function fetchStatus(token) {
  if (!/^[!-~]+$/.test(token)) throw new Refused(401, "unauthorized", ""); // no header could carry it
  const options = { mode: "same-origin", headers: { Accept: "application/json", Authorization: `Bearer ${token}` } };
  const sites = await json(await send("sites", options));
  const ready = await json(await reach("ready", options)); // 503 is an answer, too
  return { ready, sites: asList(sites.details).filter((site) => site && typeof site === "object") };
}

/** The person agreed: keep the fact that `token` stands for. */
export async function confirmMemory(token) {
  return json(await send("memory/confirm", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify({ token }),
  }));
}

/** Takes a fact back that was just kept; what it had replaced holds again. */
export async function undoMemory(id) {
  return json(await send(`${memoryPath(id)}?undo=true`, { method: "DELETE", headers: { Accept: "application/json" } }));
}

/** A fact as it is kept, with the time it still has as `expires_in`. */
export async function readMemory(id) {
  const response = await send(memoryPath(id), { headers: { Accept: "application/json" } });
  const fact = await json(response);
  if (fact.expires_at === null) return { ...fact, expires_in: LONGEST };
  const now = Date.parse(response.headers.get("Date") ?? "") / 1000; // by the server's clock: this device's may be wrong
  const left = Math.floor(fact.expires_at - now);
  return left > 0 ? { ...fact, expires_in: `${left}s` } : fact;
}

/** Forgets a fact. */
export async function forgetMemory(id) {
  return json(await send(memoryPath(id), { method: "DELETE", headers: { Accept: "application/json" } }));
}

/** Keeps a fact that was forgotten, under a new id: {memory_id, text}. The id is null where it can't be forgotten again. */
export async function keepMemory(fact) {
  const told = KEPT_FIELDS.map((name) => [name, name === "site" ? siteOf(fact) : fact[name]]).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return json(await send("memory", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(Object.fromEntries(told)),
  }));
}

/** Where a fact was told; several sites are no place that one could be bound to. */
function siteOf({ site, scope }) {
  return scope !== "application" && site?.includes(",") ? "" : site;
}

function memoryPath(id) {
  return `memory/${encodeURIComponent(id)}`;
}

/**
 * Asks once and yields the answer's messages up to `complete`. A broken connection is taken up again where it broke
 * (the server replays from `Last-Event-ID` and does not ask the model again); `onBreak(n, of)` is told before each
 * try and `onBreak(0)` when it goes on. Before the first event nothing can be resumed, and so nothing is repeated.
 */
export async function* ask(body, { signal, onBreak }) {
  const seen = new Set();
  let lastId = "";
  let pause = FIRST_PAUSE_MS;
  let broken = false;
  for (let tries = 0; ; tries += 1) {
    const line = watched(signal);
    try {
      const response = await post(body, lastId, line.signal);
      line.alive();
      const events = readEvents(response, (parser) => {
        line.alive();
        if (parser.retry !== null) pause = parser.retry;
      });
      for await (const event of events) {
        if (event.id && seen.has(event.id)) continue;
        if (event.id) {
          seen.add(event.id);
          lastId = event.id;
        }
        if (broken) onBreak(0, MAX_RESUMES);
        broken = false;
        const message = parsed(event.data);
        if (!message) continue;
        yield message;
        if (message.message_type === "complete") return;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Refused && (tries === 0 || error.status < 500)) {
        if (tries === 0) throw error;
        throw new Lost(true); // the server no longer has this answer to replay
      }
    } finally {
      line.end();
    }
    if (!lastId || tries >= MAX_RESUMES) throw new Lost(lastId !== "");
    broken = true;
    onBreak(tries + 1, MAX_RESUMES);
    await rest(Math.min(pause * 2 ** tries, MAX_PAUSE_MS), signal);
  }
}

function post(body, lastId, signal) {
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  if (lastId) headers["Last-Event-ID"] = lastId;
  return send("ask", { method: "POST", headers, body: JSON.stringify(body), signal }, "text/event-stream");
}

async function send(path, options, expected = "application/json") {
  const response = await reach(path, options);
  if (!response.ok) throw await refusal(response);
  if (!(response.headers.get("Content-Type") ?? "").startsWith(expected)) {
    throw new Refused(response.status, "foreign_reply", "");
  }
  return response;
}

/** The response, whatever its status. */
async function reach(path, options) {
  try {
    return await fetch(new URL(path, BASE), { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Lost(false);
  }
}

async function json(response) {
  try {
    return (await response.json()) ?? {};
  } catch {
    throw new Refused(response.status, "foreign_reply", "");
  }
}

async function refusal(response) {
  const wait = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const retryAfter = Number.isNaN(wait) ? null : wait;
  try {
    const { error } = await response.json();
    return new Refused(response.status, String(error.code), String(error.message ?? ""), retryAfter);
  } catch {
    return new Refused(response.status, response.status === 429 ? "rate_limited" : "foreign_reply", "", retryAfter);
  }
}

/** A signal that follows `outer` and also fires when `alive` was not called for too long. */
function watched(outer) {
  const inner = new AbortController();
  const follow = () => inner.abort(outer.reason);
  let timer = 0;
  if (outer.aborted) follow();
  outer.addEventListener("abort", follow);
  const end = () => {
    clearTimeout(timer);
    outer.removeEventListener("abort", follow);
  };
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => inner.abort(), SILENCE_MS);
  };
  alive();
  return { signal: inner.signal, alive, end };
}

function rest(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

function parsed(data) {
  try {
    const message = JSON.parse(data);
    return message && typeof message === "object" ? message : null;
  } catch {
    return null;
  }
}

function asList(value) {
  return Array.isArray(value) ? value : [];
}

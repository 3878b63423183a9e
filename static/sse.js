/* Reads server-sent events from a fetch response, however the network cut its bytes. */

/**
 * The event stream grammar of the HTML standard, fed with text in pieces of any size.
 * `feed` returns the events that became whole: {event, data, id}; `retry` is the last pause asked for, in ms.
 */
export class SseParser {
  constructor() {
    this.lastId = "";
    this.retry = null;
    this.rest = "";
    this.skipLineFeed = false; // a CR ended the last piece: an LF that follows belongs to it
    this.reset();
  }

  feed(text) {
    const events = [];
    if (this.skipLineFeed && text !== "") {
      if (text[0] === "\n") text = text.slice(1);
      this.skipLineFeed = false;
    }
    let start = 0;
    for (let at = 0; at < text.length; at += 1) {
      const sign = text[at];
      if (sign !== "\n" && sign !== "\r") continue;
      const event = this.line(this.rest + text.slice(start, at));
      if (event) events.push(event);
      this.rest = "";
      if (sign === "\r") {
        if (text[at + 1] === "\n") at += 1;
        else if (at + 1 === text.length) this.skipLineFeed = true;
      }
      start = at + 1;
    }
    this.rest += text.slice(start);
    return events;
  }

  line(line) {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null; // a comment: the server's heartbeat
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "data") this.data.push(value);
    else if (name === "event") this.event = value;
    else if (name === "id" && !value.includes("\0")) this.lastId = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
    return null;
  }

  dispatch() {
    const whole = this.data.length ? { event: this.event || "message", data: this.data.join("\n"), id: this.lastId } : null;
    this.reset();
    return whole;
  }

  reset() {
    this.data = [];
    this.event = "";
  }
}

/**
 * Yields the events of `response`; `onBytes` is called with the parser for every piece, heartbeats too.
 * Whoever leaves the loop early closes the connection.
 */
export async function* readEvents(response, onBytes = () => {}) {
  const parser = new SseParser();
  const decoder = new TextDecoder("utf-8");
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return; // an event without its closing blank line is not one
      const events = parser.feed(decoder.decode(value, { stream: true }));
      onBytes(parser);
      yield* events;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

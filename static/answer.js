/* A written answer: it grows while the model writes, and its `[n]` become links to its sources. */

import { el, webAddress } from "./dom.js";

const CITATION = /\[(\d{1,3})\]/g;

/** Text that is added to at most once a frame. Each line is a node of its own: what is written stays as it is. */
export class AnswerText {
  constructor() {
    this.element = el("div", { class: "answer", dir: "auto", "data-testid": "answer" });
    this.clear();
  }

  clear() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.waiting = "";
    this.line = null;
    this.element.replaceChildren();
    this.element.hidden = true;
  }

  get empty() {
    return this.element.textContent === "" && this.waiting.trim() === "";
  }

  add(text) {
    if (typeof text !== "string") return;
    this.waiting += text;
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  /** Writes what waits, without the frame: a tab in the background gets none. */
  flush() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.element.firstChild) this.waiting = this.waiting.trimStart();
    for (const piece of this.waiting.split(/(?<=\n)/)) {
      if (this.line) this.line.appendData(piece);
      else if (piece) this.element.append(this.line = document.createTextNode(piece));
      if (piece.endsWith("\n")) this.line = null;
    }
    this.waiting = "";
    this.element.hidden = !this.element.firstChild;
  }

  /** The answer is whole: `answer` holds if what was streamed is another text (or nothing); citations become links. */
  settle(answer, sources) {
    this.flush();
    if (typeof answer === "string" && answer.trim() !== this.element.textContent.trim()) {
      this.clear();
      this.add(answer);
      this.flush();
    }
    const known = new Map(sources.map((source) => [source.n, source]));
    for (const node of [...this.element.childNodes]) if (node.nodeType === Node.TEXT_NODE) cite(node, known);
  }
}

function cite(node, sources) {
  CITATION.lastIndex = 0;
  for (let found = CITATION.exec(node.data); found; found = CITATION.exec(node.data)) {
    const source = sources.get(Number(found[1]));
    const address = webAddress(source?.url);
    if (!address) continue; // it stays a text
    const number = node.splitText(found.index);
    node = number.splitText(found[0].length);
    const told = [source.name, source.description].filter((one) => typeof one === "string" && one).join(": ");
    number.replaceWith(el("a", { class: "cite", href: address.href, target: "_blank", rel: "noopener noreferrer", title: told || null }, found[0]));
    CITATION.lastIndex = 0;
  }
}

/** What was read for the answer and is not cited in it, to be opened; null for nothing. */
export function consideredList(items) {
  if (!items.length) return null;
  const lines = items.map((item) => {
    const address = webAddress(item.url);
    const name = String(item.name || item.url || "Untitled");
    return el("li", { dir: "auto" }, address ? el("a", { href: address.href, target: "_blank", rel: "noopener noreferrer" }, name) : name);
  });
  return el("details", { class: "more considered" }, el("summary", {}, `Also considered (${lines.length})`), el("ul", {}, ...lines));
}

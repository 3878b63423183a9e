/* One result as a card, made once and then only updated; and the list that keeps its cards in order. */

import { arrange, el, setText, webAddress } from "./dom.js";
import { readItem } from "./schema.js";

const REORDER_MS = 250; // at most four times a second
const WORDS = { __proto__: null, TVSeries: "TV series", Thing: "", Item: "", WebPage: "Page" };

/** What an item is known by: a document id is unique within its site only. */
export function itemKey(item) {
  return `${item.site ?? ""}\n${item.document_id ?? item.url ?? item.name}`;
}

class Card {
  constructor(item, arrival, options) {
    this.arrival = arrival;
    this.options = options;
    this.title = el("h3", { class: "card-title", dir: "auto" });
    this.number = el("p", { class: "card-number", hidden: true });
    this.origin = el("p", { class: "card-origin" });
    this.facts = el("ul", { class: "facts" });
    this.description = el("p", { class: "card-text", dir: "auto" });
    this.score = el("p", { class: "score" });
    this.body = el("div", { class: "card-body" }, this.number, this.origin, this.title, this.facts, this.description);
    this.element = el("article", { class: "card is-new", "data-testid": "card" }, this.body, this.score);
    this.element.addEventListener("animationend", () => this.element.classList.remove("is-new"), { once: true });
    this.update(item);
  }

  /** The item came again, with a better score or description: the nodes stay, their content follows. */
  update(item) {
    this.item = { ...this.item, ...withoutGaps(item) };
    const { name, url, site, document_id: id, description } = this.item;
    const read = readItem(this.item.schema_object, name);
    const link = webAddress(url);
    this.element.setAttribute("data-item-id", id ?? url ?? "");
    this.element.setAttribute("data-type", read.type);
    this.element.setAttribute("data-letter", Array.from(name || "·")[0]);
    this.showNumber();
    this.showTitle(name || url || "Untitled", link);
    this.showOrigin(read.type, site, link);
    this.showFacts(read.facts);
    this.showImage(webAddress(read.image, link ?? document.baseURI), link);
    setText(this.description, description ?? "");
    this.description.hidden = !description;
    this.showScore();
  }

  /** A source has the number that the answer cites it by. */
  showNumber() {
    const { n } = this.item;
    this.number.hidden = typeof n !== "number";
    if (!this.number.hidden) this.number.replaceChildren(el("span", { class: "unseen" }, "Source "), String(n));
  }

  showTitle(name, link) {
    const shown = this.title.firstElementChild;
    if (!link) return setText(this.title, name);
    if (shown?.tagName === "A") {
      shown.href = link.href;
      return setText(shown, name);
    }
    return this.title.replaceChildren(el("a", { href: link.href, target: "_blank", rel: "noopener noreferrer", dir: "auto" }, name));
  }

  showOrigin(type, site, link) {
    const kind = WORDS[type] ?? type.replace(/([a-z])([A-Z])(?=[a-z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);
    const from = this.options.nameSites ? site : link?.host;
    setText(this.origin, [kind, from].filter(Boolean).join(" · "));
  }

  showFacts(facts) {
    this.facts.hidden = facts.length === 0;
    if (facts.join("\n") === this.shownFacts) return;
    this.shownFacts = facts.join("\n");
    this.facts.replaceChildren(...facts.map((fact) => el("li", { dir: "auto" }, fact)));
  }

  /**
   * The box has its size before the picture comes and keeps it when none does: nothing on the page jumps. The page's
   * policy lets pictures come from hosts of loaded items only, so one from elsewhere is not even tried.
   */
  showImage(address, link) {
    if (!address || address.href === this.shownImage) return;
    if (address.origin !== location.origin && address.host !== link?.host) return;
    this.shownImage = address.href;
    this.picture?.remove();
    const image = el("img", { alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer", width: 112, height: 112 });
    this.picture = el("div", { class: "picture", "aria-hidden": "true", "data-letter": this.element.dataset.letter }, image);
    image.addEventListener("error", () => image.remove(), { once: true });
    image.src = address.href;
    this.element.prepend(this.picture);
  }

  /** A model's score says how well an item fits; one of the search alone only orders it among these, so is no number. */
  showScore() {
    const { points } = this;
    const placed = this.item.ranking_type === "RETRIEVAL";
    const shown = points === null ? "" : placed ? "placed by search" : `${points} of 100`;
    if (shown === this.shownScore) return;
    this.shownScore = shown;
    this.score.hidden = !shown;
    this.score.classList.toggle("unseen", placed);
    this.score.title = placed || !shown ? "" : `Match: ${shown}`;
    if (placed || !shown) {
      this.score.textContent = shown;
      return;
    }
    this.meter ??= el("meter", { min: 0, max: 100, "aria-hidden": "true" });
    this.meter.value = points;
    this.score.replaceChildren(this.meter, el("span", { class: "points" }, String(points), el("span", { class: "unseen" }, " of 100")));
  }

  get points() {
    const { score } = this.item;
    return typeof score === "number" && Number.isFinite(score) ? Math.round(Math.min(100, Math.max(0, score))) : null;
  }
}

/** Cards in score order. While the pointer or the focus is inside, cards do not change places under it. */
export class CardList {
  constructor(options) {
    this.options = options;
    this.cards = new Map();
    this.element = el("div", { class: "cards", role: "group", "aria-label": "Results" });
    this.pointerInside = false;
    this.pending = false;
    this.timer = 0;
    this.element.addEventListener("pointerenter", () => { this.pointerInside = true; });
    this.element.addEventListener("pointerleave", () => { this.pointerInside = false; this.release(); });
    this.element.addEventListener("focusout", () => queueMicrotask(() => this.release()));
  }

  get size() {
    return this.cards.size;
  }

  /** What is shown, best first: [{title, url}]. */
  get shown() {
    return this.ranked().map(({ item }) => ({ title: item.name ?? "", url: item.url ?? "" }));
  }

  take(items) {
    for (const item of items) {
      const key = itemKey(item);
      const known = this.cards.get(key);
      try {
        if (known) known.update(item);
        else this.add(key, item);
      } catch (error) {
        // One item that cannot be shown must not end the answer.
        console.warn("an item could not be shown", key, error);
      }
    }
    this.reorder();
  }

  /** The sources of a written answer, in the order of their numbers, and nothing else. */
  showSources(sources) {
    const keys = new Set(sources.map(itemKey));
    for (const [key, card] of this.cards) {
      if (keys.has(key)) continue;
      this.cards.delete(key);
      card.element.remove();
    }
    this.numbered = true;
    this.element.setAttribute("aria-label", "Sources");
    this.take(sources);
  }

  add(key, item) {
    const card = new Card(item, this.cards.size, this.options);
    this.cards.set(key, card);
    const after = this.held ? null : this.ranked().find((other) => other !== card && better(card, other) < 0 && other.element.parentNode);
    this.element.insertBefore(card.element, after?.element ?? null);
  }

  /** The answer is whole: `order` names the final items by document id, best first; the others go. */
  settle(order) {
    clearTimeout(this.timer);
    this.timer = 0;
    this.pending = false;
    if (!Array.isArray(order) || this.numbered) return this.apply();
    const left = this.ranked();
    const final = order.map((id) => {
      const at = left.findIndex(({ item }) => item.document_id === id);
      return at < 0 ? null : left.splice(at, 1)[0];
    }).filter(Boolean);
    for (const card of left) {
      this.cards.delete(itemKey(card.item));
      card.element.remove();
    }
    final.forEach((card, place) => { card.place = place; });
    return this.apply();
  }

  /** A new run of the same question follows: places of the last one no longer count. */
  unsettle() {
    for (const card of this.cards.values()) delete card.place;
  }

  get held() {
    return this.pointerInside || this.element.contains(document.activeElement);
  }

  reorder() {
    this.pending = true;
    if (this.timer) return;
    this.release();
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.release();
    }, REORDER_MS);
  }

  release() {
    if (this.pending && !this.held) this.apply();
  }

  apply() {
    this.pending = false;
    arrange(this.element, this.ranked().map((card) => card.element));
  }

  ranked() {
    return [...this.cards.values()].sort(better);
  }
}

function better(one, other) {
  if (one.item.n !== undefined && other.item.n !== undefined) return one.item.n - other.item.n;
  if (one.place !== undefined && other.place !== undefined) return one.place - other.place;
  return (other.points ?? -1) - (one.points ?? -1) || one.arrival - other.arrival;
}

function withoutGaps(item) {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null && value !== undefined && value !== ""));
}

/* The page's one status line for screen readers: the latest text, and never more than one every two seconds. */

const PAUSE_MS = 2000;

export class Announcer {
  constructor(element) {
    this.element = element;
    this.next = null;
    this.timer = 0;
  }

  say(text) {
    this.next = text;
    if (!this.timer) this.speak();
  }

  speak() {
    this.timer = 0;
    if (this.next === null) return;
    this.element.textContent = this.next;
    this.next = null;
    this.timer = setTimeout(() => this.speak(), PAUSE_MS);
  }
}

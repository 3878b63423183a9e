/* The question box: grows with its text, sends on Enter, and never while an input method is composing. */

const MAX_CHARACTERS = 8000; // the server's limit; said here, and nothing is cut

export class Composer {
  /** `parts` = {form, box, send, label, problem, exactNote, exactCancel}; `deeds` = {send(text, exact), stop(), busy()}. */
  constructor(parts, deeds) {
    this.parts = parts;
    this.deeds = deeds;
    this.replacing = null;
    this.sentAt = 0;
    parts.box.addEventListener("keydown", (event) => this.key(event));
    parts.box.addEventListener("input", () => this.changed());
    parts.form.addEventListener("submit", (event) => event.preventDefault());
    parts.send.addEventListener("click", (event) => this.pressed(event));
    parts.exactCancel.addEventListener("click", () => {
      this.exact(null);
      parts.box.focus();
    });
    this.changed();
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    if (!this.deeds.busy()) this.submit();
  }

  /** One button: it sends, and from that moment on it stops. */
  pressed(event) {
    event.preventDefault();
    if (!this.deeds.busy()) return this.submit();
    const secondHalfOfDoubleClick = event.detail === 2 && performance.now() - this.sentAt < 400;
    if (!secondHalfOfDoubleClick) this.deeds.stop();
    return undefined;
  }

  submit() {
    const text = this.parts.box.value.trim();
    if (!text) return this.parts.box.focus();
    const length = Array.from(text).length;
    if (length > MAX_CHARACTERS) {
      return this.complain(`A question can have ${MAX_CHARACTERS.toLocaleString()} characters; this one has ${length.toLocaleString()}.`);
    }
    const replacing = this.replacing;
    this.sentAt = performance.now();
    if (!this.deeds.send(text, replacing)) return undefined;
    this.fill("");
    this.exact(null);
    if (matchMedia("(pointer: coarse)").matches) this.parts.box.blur(); // the keyboard would cover the answer
    return undefined;
  }

  complain(text) {
    this.parts.problem.textContent = text;
    this.parts.problem.hidden = false;
    this.parts.box.setAttribute("aria-invalid", "true");
    this.parts.box.focus();
  }

  fill(text) {
    this.parts.box.value = text;
    this.changed();
  }

  /** Puts `text` into the box for changing; with `turn` it will replace that turn and be searched as written. */
  edit(text, turn) {
    this.fill(text);
    this.exact(turn);
    this.parts.box.focus();
    this.parts.box.setSelectionRange(text.length, text.length);
  }

  exact(turn) {
    this.replacing = turn;
    this.parts.exactNote.hidden = turn === null;
  }

  running(on) {
    const { send, label, form } = this.parts;
    label.textContent = on ? "Stop" : "Send";
    send.classList.toggle("is-stop", on);
    form.classList.toggle("is-busy", on);
  }

  changed() {
    const { box, problem } = this.parts;
    problem.hidden = true;
    box.removeAttribute("aria-invalid");
    box.rows = 1;
    const line = Number.parseFloat(getComputedStyle(box).lineHeight) || 24;
    box.rows = Math.min(8, Math.max(1, Math.round(box.scrollHeight / line)));
  }
}

/** Enter that confirms a candidate is the input method's; 229 is what older browsers say for it. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

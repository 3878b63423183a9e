/* Builds elements from data: text only ever becomes text, and addresses are checked before they become links. */

/** An element with attributes (a function is a listener) and children (strings are text). */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A button that does `action`. */
export function button(label, action, kind = "soft") {
  return el("button", { type: "button", class: kind, click: action }, label);
}

/** `text` as an absolute http(s) address, or null for everything else. */
export function webAddress(text, base) {
  if (typeof text !== "string" || text.trim() === "") return null;
  try {
    const url = new URL(text.trim(), base);
    return url.protocol === "https:" || url.protocol === "http:" ? url : null;
  } catch {
    return null;
  }
}

/** Sets text only where it changed, so that a selection in it survives. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The children of `parent` become `wanted`, in that order; the one that has the focus is never taken out. */
export function arrange(parent, wanted) {
  const kept = wanted.find((node) => node.contains(document.activeElement));
  const at = kept ? wanted.indexOf(kept) : wanted.length;
  let next = null;
  const place = (node) => {
    if (node.parentNode !== parent || node.nextSibling !== next) parent.insertBefore(node, next);
    next = node;
  };
  for (let i = wanted.length - 1; i > at; i -= 1) place(wanted[i]);
  if (kept) next = kept;
  for (let i = at - 1; i >= 0; i -= 1) place(wanted[i]);
}

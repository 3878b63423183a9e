/* How a question is answered: a list, a list with a summary, or a written answer. */

const KEY = "askable.mode";
const MODES = new Set(["list", "summarize", "generate"]);

export class Modes {
  /** `group` holds a radio for each mode, and for each the note that explains it; `changed` is called after a choice. */
  constructor(group, changed) {
    this.radios = [...group.querySelectorAll("input[type=radio]")];
    this.value = fromAddress() ?? remembered() ?? "list";
    group.addEventListener("change", (event) => {
      this.choose(event.target.value);
      changed();
    });
    this.show();
  }

  choose(value) {
    this.value = value;
    const address = new URL(location.href);
    if (value === "list") address.searchParams.delete("mode");
    else address.searchParams.set("mode", value);
    history.replaceState(history.state, "", address);
    remember(value);
    this.show();
  }

  show() {
    for (const radio of this.radios) {
      radio.checked = radio.value === this.value;
      document.getElementById(radio.getAttribute("aria-describedby")).hidden = !radio.checked;
    }
  }
}

function fromAddress() {
  const wanted = new URLSearchParams(location.search).get("mode")?.trim().toLowerCase();
  if (wanted === "none") return "list"; // NLWeb's name for it
  return MODES.has(wanted) ? wanted : null;
}

function remembered() {
  try {
    const value = localStorage.getItem(KEY);
    return MODES.has(value) ? value : null;
  } catch {
    return null; // storage is switched off
  }
}

function remember(value) {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Then it holds as long as the page.
  }
}

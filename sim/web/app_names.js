// SPDX-License-Identifier: Apache-2.0
// Offers names under an input as a list that keyboard and pointer walk: all of them, those that match first.
import { element } from "/assets/app_dom.js";

const most = 60;

// Words of the text that all lie in an entry's name, title or other names.
function matching(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const told = (entry) => [entry.name, entry.title ?? "", ...(entry.aliases ?? [])].join(" ").toLowerCase();
  return entries.filter((entry) => words.every((word) => told(entry).includes(word)));
}

class Names {
  constructor(input, entries, several) {
    Object.assign(this, { input, entries, several, at: -1, options: [] });
    this.list = element("ul", { role: "listbox", class: "names", id: `n-${input.name}`, hidden: true,
      "aria-label": `Names for ${input.name.replaceAll("_", " ")}` });
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "false",
      "aria-controls": this.list.id, "aria-autocomplete": "list" })) input.setAttribute(name, value);
    input.addEventListener("click", () => this.open(""));
    input.addEventListener("input", (event) => { if (event.isTrusted) this.open(this.word()); });
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => this.close());
    // Keeps the focus in the input, so that a click is not a blur.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  // What is typed now: the last of several names.
  word() {
    const text = this.input.value;
    return (this.several ? text.slice(text.lastIndexOf(",") + 1) : text).trim();
  }

  open(text) {
    const found = matching(this.entries, text).slice(0, text ? most : this.entries.length);
    const now = this.word().toLowerCase();
    this.at = -1;
    this.options = found.map((entry, index) => {
      const chosen = entry.name.toLowerCase() === now;
      if (chosen) this.at = index;
      return element("li", { role: "option", id: `${this.list.id}-${index}`, "aria-selected": "false",
        onclick: () => this.take(entry.name) },
        element("b", {}, entry.name), entry.title ? element("span", { class: "quiet" }, entry.title) : null);
    });
    this.list.replaceChildren(...this.options);
    this.list.hidden = !found.length;
    this.input.setAttribute("aria-expanded", String(found.length > 0));
    this.mark();
  }

  mark() {
    this.options.forEach((item, index) => item.setAttribute("aria-selected", String(index === this.at)));
    const item = this.options[this.at];
    if (item) {
      this.input.setAttribute("aria-activedescendant", item.id);
      this.list.scrollTop = item.offsetTop - this.list.clientHeight / 2;
    } else {
      this.input.removeAttribute("aria-activedescendant");
    }
  }

  take(name) {
    const before = this.several ? this.input.value.slice(0, this.input.value.lastIndexOf(",") + 1) : "";
    this.input.value = before + name;
    this.close();
    this.input.dispatchEvent(new Event("input"));
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const closed = this.list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (closed) return this.open("");
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.at = Math.min(this.options.length - 1, Math.max(0, this.at + step));
      this.mark();
    } else if (event.key === "Enter" && !closed && this.at >= 0) {
      event.preventDefault();
      this.take(this.options[this.at].querySelector("b").textContent);
    } else if (event.key === "Escape" && !closed) {
      event.preventDefault();
      this.close();
    }
  }
}

export function offerNames(input, holder, entries, several = false) {
  holder.append(new Names(input, entries, several).list);
}

// SPDX-License-Identifier: Apache-2.0
// Takes an answer along: as a page of its own, as the bytes of --json, as a command line.
import { save } from "/assets/page.js";
import { ask, bytes } from "/assets/app_ask.js";
import { byId, copy, element, tell } from "/assets/app_dom.js";

function nameOf({ command, question }) {
  const words = [command, question.model, question.cluster, question.gpus].filter((word) => typeof word !== "object");
  return `orrery-${words.filter(Boolean).join("-")}`.replace(/[^\w.-]+/g, "_");
}

// Says on the button that work is going on, and on the page what went wrong.
async function busy(button, work) {
  if (button.hasAttribute("aria-busy")) return;
  button.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (problem) {
    tell(`Nothing was saved: ${problem.message}`);
    byId("took").textContent = `Nothing was saved: ${problem.message}`;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

async function saveJson(shown) {
  const text = shown.text ?? await bytes(shown.command, shown.question);
  save(`${nameOf(shown)}.json`, text, "application/json");
}

async function saveHtml(shown) {
  const page = shown.page ?? (await ask(shown.command, shown.question, ["page"])).page;
  save(`${nameOf(shown)}.html`, page, "text/html");
}

function lineBox(shown) {
  const button = element("button", { type: "button", class: "plain", onclick: () => copy(shown.line, button) }, "Copy");
  return [element("pre", { tabindex: "0", "aria-label": "Command line" }, shown.line), button];
}

// `shown()` is the present answer.
export class Saving {
  constructor(shown) {
    this.shown = shown;
    byId("save-html").addEventListener("click", (event) => busy(event.target, () => saveHtml(shown())));
    byId("save-json").addEventListener("click", (event) => busy(event.target, () => saveJson(shown())));
    byId("show-line").addEventListener("click", () => this.toggle());
  }

  toggle() {
    const open = byId("line").hidden;
    byId("line").hidden = !open;
    byId("show-line").setAttribute("aria-expanded", String(open));
    this.update();
  }

  update() {
    const shown = this.shown();
    if (byId("line").hidden || !shown) return;
    byId("line").replaceChildren(...(shown.line ? lineBox(shown) : []));
  }
}

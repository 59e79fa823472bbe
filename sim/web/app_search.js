// SPDX-License-Identifier: Apache-2.0
// Runs one search at a time: its button, its progress, and the button that stops it early.
import { search, stop } from "/assets/app_ask.js";
import { byId, tell } from "/assets/app_dom.js";
import { commands } from "/assets/app_fields.js";
import { whole } from "/assets/app_words.js";

const listenEvery = 5000;  // milliseconds between sentences to those who listen

export class Search {
  constructor() {
    this.running = null;
    byId("stop").addEventListener("click", () => this.stop());
  }

  // Shows the button of a question that is searched; simulate has none.
  show(command) {
    const about = commands[command];
    byId("action").hidden = !about.action;
    byId("search").textContent = about.action ?? "";
    this.shape();
  }

  shape() {
    const runs = this.running !== null;
    byId("search").setAttribute("aria-disabled", String(runs));
    if (!runs && document.activeElement === byId("stop")) byId("search").focus();
    byId("stop").hidden = !runs;
    byId("stop").removeAttribute("aria-disabled");
    byId("progress").hidden = !runs;
  }

  progress(command, { share, count }) {
    byId("share").value = share;
    const words = `${Math.floor(100 * share)}%, ${whole(count)} ${commands[command].counted}`;
    byId("count").textContent = words;
    if (performance.now() - this.toldAt < listenEvery) return;
    this.toldAt = performance.now();
    tell(words);
  }

  // The answer with its parts; null where it was aborted.
  async run(command, question, parts) {
    this.abort();
    const running = new AbortController();
    this.running = running;
    this.toldAt = performance.now();
    byId("share").value = 0;
    byId("count").textContent = "begins";
    this.shape();
    try {
      return await search(command, question, parts, running.signal, (event) => this.progress(command, event));
    } catch (problem) {
      if (problem.name === "AbortError") return null;
      throw problem;
    } finally {
      if (this.running === running) {
        this.running = null;
        this.shape();
      }
    }
  }

  async stop() {
    byId("stop").setAttribute("aria-disabled", "true");
    byId("count").textContent = "stops";
    await stop().catch(() => this.abort());
  }

  abort() {
    this.running?.abort();
    this.running = null;
    this.shape();
  }
}

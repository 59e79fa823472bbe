// SPDX-License-Identifier: Apache-2.0
// Joins the parts of the page: what is chosen becomes a question, the question an answer.
import { Answers } from "/assets/app_answer.js";
import { ask, get, Refused } from "/assets/app_ask.js";
import { Compare } from "/assets/app_compare.js";
import { byId, copy, element, mediaMatches } from "/assets/app_dom.js";
import { hideError, showError } from "/assets/app_error.js";
import { carried, commands, sliders } from "/assets/app_fields.js";
import { Form, kindOfNames } from "/assets/app_form.js";
import { keyNumbers, verdict } from "/assets/app_numbers.js";
import { fragmentOf, keyOf, parsed, questionOf, textOf } from "/assets/app_question.js";
import { Saving } from "/assets/app_save.js";
import { Search } from "/assets/app_search.js";
import { WhatIf } from "/assets/app_whatif.js";
import { milliseconds } from "/assets/app_words.js";

const pause = 120;  // milliseconds after the last change
const parts = ["charts", "report", "line"];
// A search brings along what would else need another one.
const searched = [...parts, "text", "page"];
const remembered = 40;  // answers that effects of sliders may be told against
// At the foot of a phone.
const glanced = ["gpus", "days", "cost", "step", "mfu", "ttft", "tpot", "wait", "completion", "useful"];
const factors = new Set(sliders.filter((slider) => !slider.unit).map((slider) => slider.key));

class Bench {
  constructor() {
    this.command = "simulate";
    this.values = Object.fromEntries(Object.entries(commands).map(([name, about]) => [name, { ...about.first }]));
    this.shown = {};  // by command: the last good answer
    this.seen = new Map();  // answers by question
    this.form = new Form((key, text) => this.change(key, text));
    this.form.holds = (key) => key in this.values[this.command];
    this.whatif = new WhatIf((key, text) => { this.form.unmark(key); this.change(key, text); });
    this.search = new Search();
    this.answers = new Answers({ predict: (settings) => this.predict(settings), useGpus: (count) =>
      this.take("gpus", String(count)) });
    this.compare = new Compare(() => { this.render(); byId("keep").focus(); });
    this.saving = new Saving(() => this.shown[this.command]);
  }

  question() {
    const kinds = this.form.kinds(this.command);
    return questionOf(this.command, this.values[this.command], kinds, factors);
  }

  // Shows another question; values that it shares come along.
  choose(command, values) {
    this.search.abort();
    this.stopAsking();
    if (values) this.values[command] = values;
    else if (command !== this.command)
      this.values[command] = carried(this.command, this.values[this.command], command, this.values[command]);
    this.command = command;
    this.build();
    this.render();
    this.changed();
  }

  // One entry more for the browser's way back, then another question.
  turn(command, values) {
    history.pushState(null, "", location.href);
    this.choose(command, values);
  }

  build() {
    for (const button of byId("commands").children) {
      if (button.dataset.command === this.command) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    this.form.show(this.command, this.values[this.command]);
    this.whatif.show(this.command, this.values[this.command]);
    this.search.show(this.command);
    document.title = `${commands[this.command].title} - Orrery`;
  }

  change(key, text) {
    if (text.trim()) this.values[this.command][key] = text;
    else delete this.values[this.command][key];
    this.whatif.count(this.values[this.command]);
    this.changed();
  }

  // Sets a field as if it had been typed.
  take(key, text) {
    this.form.set(key, text);
    this.whatif.set(key, text);
    this.form.unmark(key);
    this.change(key, text);
  }

  changed() {
    history.replaceState(null, "", fragmentOf(this.command, this.values[this.command]));
    if (this.command === "simulate") {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.answerNow(), pause);
    } else {
      this.age();
    }
  }

  stopAsking() {
    clearTimeout(this.timer);
    clearTimeout(this.slow);
    this.asking?.abort();
  }

  async answerNow() {
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    byId("shown").setAttribute("aria-busy", "true");
    clearTimeout(this.slow);
    this.slow = setTimeout(() => { byId("took").textContent = "at work"; }, 400);
    await this.answered("simulate", this.question(), (command, question) => ask(command, question, parts, signal));
  }

  async searchNow() {
    hideError(this.form);
    await this.answered(this.command, this.question(), (command, question) =>
      this.search.run(command, question, searched));
    if (mediaMatches("(max-width: 820px)")) byId("answer").scrollIntoView();
  }

  // Awaits an answer and shows it, or what is wrong.
  async answered(command, question, asks) {
    const begun = performance.now();
    try {
      const found = await asks(command, question);
      if (!found) return;
      this.shown[command] = { command, question, ...found, took: performance.now() - begun };
      this.remember(command, question, found.answer);
      if (command !== this.command) return;
      hideError(this.form);
      this.render();
      await this.effects(this.shown[command]);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Refused)) throw problem;
      if (command !== this.command) return;
      clearTimeout(this.slow);
      byId("took").textContent = "";
      hideError(this.form);
      showError(problem.error, this.form, (key, text) => this.take(key, text));
      this.age(true);
    }
  }

  remember(command, question, answer) {
    if (answer.stopped_early || answer.stopped) return;
    this.seen.set(keyOf(command, question), answer);
    if (this.seen.size > remembered) this.seen.delete(this.seen.keys().next().value);
  }

  // What each moved slider does: the same question without it, asked anew where that is quick.
  async effects({ command, question, answer }) {
    this.whatif.clearEffects();
    for (const key of this.whatif.moved(question)) {
      const { [key]: _, ...rest } = question;
      let at = this.seen.get(keyOf(command, rest));
      if (!at && command === "simulate") {
        at = await ask(command, { ...rest, ranges: false, reasons: false }, [], this.asking?.signal).catch(() => null);
        if (at) this.remember(command, rest, at);
      }
      if (this.shown[command]?.answer !== answer || command !== this.command) return;
      this.whatif.compare(key, command, at, answer);
    }
  }

  // Marks an answer that is not of the present question.
  age(wrong = false) {
    const shown = this.shown[this.command];
    const same = shown && keyOf(this.command, shown.question) === keyOf(this.command, this.question());
    const old = Boolean(shown) && (wrong || (!same && this.command !== "simulate"));
    byId("answer").classList.toggle("old", old);
    byId("old-note").hidden = !old;
    byId("old-note").textContent = wrong ? "Below is the last answer, to settings that worked."
      : `Below is the answer to earlier settings. The button \u201c${commands[this.command].action}\u201d asks anew.`;
    byId("shown").removeAttribute("aria-busy");
    if (wrong) byId("glance").textContent = byId("error").textContent.replace(/ Go to .*/, "");
  }

  render() {
    const shown = this.shown[this.command];
    clearTimeout(this.slow);
    byId("actions").hidden = !shown;
    byId("said").replaceChildren();
    hideError(this.form);
    this.age();
    this.glance(shown);
    if (!shown) return this.empty();
    byId("took").textContent = `answered in ${milliseconds(shown.took)}`;
    byId("version").textContent = `Orrery ${shown.answer.orrery?.version ?? ""}.`;
    this.saving.update();
    this.standIns(shown.answer);
    byId("answer").classList.toggle("comparing", Boolean(this.compare.kept));
    if (!this.compare.kept) return this.answers.show(shown);
    this.answers.say(this.command, shown.answer);
    return this.compare.show(shown);
  }

  // What empty fields stand for, as the answer took them.
  standIns(answer) {
    const price = (answer.prediction ?? {}).rental_per_gpu_hour_usd;
    if (price && !this.values[this.command].gpu_hour_price) this.whatif.restPrice(price);
    const { layout } = answer;
    const defaults = answer.stack ? { stack: answer.stack } : {};
    if (this.command === "simulate" && layout)
      for (const [key, value] of Object.entries(layout)) if (value || key === "zero") defaults[key] = textOf(value);
    this.form.defaults(defaults);
  }

  empty() {
    const { action } = commands[this.command];
    byId("took").textContent = "";
    byId("line").replaceChildren();
    byId("shown").replaceChildren(element("p", { class: "empty quiet" },
      action ? `No answer yet. The button \u201c${action}\u201d asks.` : "The answer follows."));
  }

  glance(shown) {
    byId("glance").hidden = !shown;
    if (!shown) return;
    const first = keyNumbers(this.command, shown.answer).filter((one) => glanced.includes(one.id)).slice(0, 3)
      .map((one) => `${one.label} ${one.text}`);
    const { good, headline } = verdict(this.command, shown.answer);
    byId("glance").replaceChildren(element("b", {}, good ? "" : headline), ` ${first.join(" \u00b7 ")}`);
  }

  // One of the layouts that were found, as a question of its own.
  predict(settings) {
    const own = { ...carried("advise", this.values.advise, "simulate", {}), ...settings };
    const { advise } = this.values;
    for (const key of Object.keys(advise))
      if (!["objective", "top", "memory_reserve", "variants", "like", "changes", "pareto", "time_limit"].includes(key)
        && !(key in own)) own[key] = advise[key];
    this.turn("simulate", own);
    byId("answer").focus();
    window.scrollTo({ top: 0, behavior: mediaMatches("(prefers-reduced-motion: reduce)") ? "auto" : "smooth" });
  }

  open(fragment) {
    const found = parsed(fragment, Object.keys(commands));
    this.choose(found?.command ?? this.command, found?.values ?? null);
  }

  listen() {
    byId("commands").append(...Object.entries(commands).map(([name, about]) =>
      element("button", { type: "button", "data-command": name,
        onclick: () => name !== this.command && this.turn(name, null) }, about.short ?? about.title)));
    byId("question").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.command === "simulate") this.changed();
      else if (!this.search.running) this.searchNow();
    });
    byId("copy-link").addEventListener("click", (event) => copy(location.href, event.target));
    byId("keep").addEventListener("click", () => { this.compare.keep(this.shown[this.command]); this.render(); });
    byId("glance").addEventListener("click", () => byId("answer").scrollIntoView());
    byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("answer").focus(); });
    // The line at the foot of a phone says what cannot be seen: it leaves where the answer is in sight.
    new IntersectionObserver(([seen]) => byId("glance").classList.toggle("seen", seen.isIntersecting),
      { rootMargin: "0px 0px -35% 0px" }).observe(byId("answer"));
    window.addEventListener("hashchange", () => this.open(location.hash));
  }
}

async function start() {
  const bench = new Bench();
  byId("whatif").open = !mediaMatches("(max-width: 700px)");
  bench.listen();
  try {
    bench.form.settings = await get("settings");
    const named = Object.values(bench.form.settings).flat().map(kindOfNames).filter(Boolean);
    const kinds = [...new Set(["model", "cluster", "stack", ...named])];
    const lists = await Promise.all(kinds.map((kind) => get(`catalog/${kind}`).catch(() => ({}))));
    kinds.forEach((kind, index) => { bench.form.catalogue[kind] = lists[index].entries ?? []; });
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    showError(problem.error, bench.form, () => {});
  }
  bench.open(location.hash);
}

start();

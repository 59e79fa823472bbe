// SPDX-License-Identifier: Apache-2.0
// Shows an answer: verdict, key numbers, layouts that were found, charts, report.
import { makeSortable } from "/assets/page.js";
import { byId, element } from "/assets/app_dom.js";
import { showCharts } from "/assets/app_charts.js";
import { layoutTable } from "/assets/app_layouts.js";
import { keyNumbers, verdict } from "/assets/app_numbers.js";
import { sentence, whole } from "/assets/app_words.js";

export function verdictLine(command, answer) {
  const { good, headline, why } = verdict(command, answer);
  const kind = good === null ? "" : good ? "good" : "bad";
  const sign = good === null ? "" : good ? "\u2713 " : "\u2717 ";
  return element("p", { class: "verdict" }, element("strong", { class: kind },
    element("span", { "aria-hidden": "true" }, sign), headline), " ", why);
}

// Tiles of key numbers. `differences`: by id, what stands under the value.
export function tiles(numbers, differences = {}) {
  return element("ul", { class: "numbers" }, numbers.map((one) => {
    const differs = differences[one.id];
    const good = differs?.good === null || !differs ? "" : differs.good ? " good" : " bad";
    return element("li", { "data-number": one.id }, element("span", { class: "label" }, one.label),
      element("span", { class: "value" }, one.text),
      differs ? element("span", { class: `differs${good}` }, differs.text) : null,
      one.detail ? element("span", { class: "detail" }, one.detail) : null);
  }));
}

function notesOf(answer) {
  const notes = [...(answer.notes ?? [])];
  if (answer.stopped_early || answer.stopped) notes.unshift("Stopped early: this is what was known by then.");
  if (!notes.length) return null;
  return element("ul", { class: "notes" }, notes.map((note) => element("li", {}, sentence(note))));
}

// Headings lie under the page's own, one level after the other.
function lower(report) {
  let level = 3;
  for (const heading of report.querySelectorAll("h2, h3, h4, h5")) {
    level = Math.min(Number(heading.tagName[1]) + 2, level + 1, 6);
    const made = element(`h${level}`, { class: `was-${heading.tagName.toLowerCase()}` });
    made.append(...heading.childNodes);
    heading.replaceWith(made);
  }
}

// The server writes and escapes the report; nothing else is taken as markup.
function reportOf(html) {
  const report = element("div", { class: "report" });
  report.innerHTML = html;
  lower(report);
  makeSortable(report);
  focusable(report);
  return report;
}

// Boxes that scroll can be reached with the keyboard.
function focusable(root) {
  let count = 0;
  for (const box of root.querySelectorAll(".wide")) {
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `Table ${++count} of the report`);
  }
}

export class Answers {
  // actions: { predict(settings), useGpus(count) }
  constructor(actions) {
    this.actions = actions;
    this.charts = element("div", { class: "charts" });
  }

  say(command, answer) {
    byId("said").replaceChildren(verdictLine(command, answer));
    const from = answer.fits_from_gpus;
    if (from) byId("said").append(element("button", { type: "button", class: "plain",
      onclick: () => this.actions.useGpus(from) }, `Use ${whole(from)} GPUs, where something fits`));
  }

  // One answer in full.
  show({ command, answer, charts, report }) {
    this.say(command, answer);
    const best = command === "advise" && answer.best?.length ? layoutTable(answer.best, this.actions.predict) : null;
    const title = element("h3", { class: "unseen" }, "Charts");
    byId("shown").replaceChildren(...[notesOf(answer), tiles(keyNumbers(command, answer)), best,
      charts?.length ? title : null, this.charts, this.reportBox(report)].filter(Boolean));
    return showCharts(this.charts, charts ?? []);
  }

  // The report stays folded or open as it was left, from one answer to the next.
  reportBox(html) {
    if (!html) return null;
    const open = byId("report")?.open ?? true;
    const title = element("summary", {}, element("h3", {}, "Report"));
    return element("details", { id: "report", open }, title, reportOf(html));
  }
}

// SPDX-License-Identifier: Apache-2.0
// Shows two answers side by side: the one that was kept, and the present one with its differences.
import { byId, element } from "/assets/app_dom.js";
import { showCharts } from "/assets/app_charts.js";
import { commands, labelOf } from "/assets/app_fields.js";
import { tiles, verdictLine } from "/assets/app_answer.js";
import { difference, keyNumbers } from "/assets/app_numbers.js";
import { textOf } from "/assets/app_question.js";

// Settings that differ: [key, kept, present].
function changes(kept, now) {
  const keys = [...new Set([...Object.keys(kept.question), ...Object.keys(now.question)])];
  return keys.map((key) => [key, textOf(kept.question[key]), textOf(now.question[key])])
    .filter(([, a, b]) => a !== b);
}

function questionWords(shown) {
  const { model, cluster, gpus } = shown.question;
  return [commands[shown.command].title, [model, cluster].map(textOf).filter(Boolean).join(" on "),
    gpus === undefined ? "" : `${textOf(gpus)} GPUs`].filter(Boolean).join(", ");
}

function changeTable(list) {
  if (!list.length) return element("p", { class: "quiet" }, "Both answers are to the same question. Change a setting.");
  const head = ["setting", "kept", "now"].map((name) => element("th", { scope: "col", class: "left" }, name));
  const rows = list.map(([key, a, b]) => element("tr", {}, element("th", { scope: "row", class: "left" },
    labelOf(key)), element("td", { class: "left" }, a || "default"),
    element("td", { class: "left" }, b || "default")));
  return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Settings that differ" },
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows)));
}

export class Compare {
  constructor(onend) {
    this.onend = onend;
    this.kept = null;
    this.left = element("div", { class: "charts" });
    this.right = element("div", { class: "charts" });
  }

  keep(shown) {
    this.kept = shown;
  }

  end() {
    this.kept = null;
    this.onend();
  }

  column(id, title, shown, numbers, charts, differences) {
    return element("section", { class: "side", id, "aria-labelledby": `${id}-title` },
      element("h3", { id: `${id}-title` }, title), element("p", { class: "quiet" }, questionWords(shown)),
      verdictLine(shown.command, shown.answer), tiles(numbers, differences), charts);
  }

  show(now) {
    const { kept } = this;
    const before = keyNumbers(kept.command, kept.answer), after = keyNumbers(now.command, now.answer);
    const differences = Object.fromEntries(after.map((one) =>
      [one.id, difference(before.find((other) => other.id === one.id), one)]));
    // The kept number leaves the room that the difference takes beside it.
    const blanks = Object.fromEntries(before.map((one) => [one.id, { text: "\u00a0", good: null }]));
    const end = element("button", { type: "button", class: "plain", id: "end-compare", onclick: () => this.end() },
      "End the comparison");
    byId("shown").replaceChildren(
      element("div", { class: "compare-head" }, element("p", {}, "Two answers side by side."), end),
      changeTable(changes(kept, now)),
      element("div", { class: "sides" },
        this.column("kept", "Kept", kept, before, this.left, blanks),
        this.column("now", "Now", now, after, this.right, differences)));
    return Promise.all([showCharts(this.left, kept.charts ?? []), showCharts(this.right, now.charts ?? [])]);
  }
}

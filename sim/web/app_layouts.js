// SPDX-License-Identifier: Apache-2.0
// Lists the best layouts of an advise answer, each with a button that predicts it.
import { element } from "/assets/app_dom.js";
import { textOf } from "/assets/app_question.js";
import { figures, gibibytes } from "/assets/app_words.js";

const columns = [["tp", "TP"], ["pp", "PP"], ["dp", "DP"], ["cp", "CP"], ["ep", "EP"], ["vpp", "VPP"],
  ["micro_batch", "MB"], ["zero", "ZeRO"], ["schedule", "schedule"], ["recompute", "recompute"]];

// Settings of simulate that say the layout: what is unset or zero is left to the defaults, and DP follows.
export function settingsOf(layout) {
  const settings = {};
  for (const [key, value] of Object.entries(layout)) {
    const nothing = value === null || value === 0 || value === "" || (Array.isArray(value) && !value.length);
    if (key !== "dp" && (!nothing || key === "zero")) settings[key] = textOf(value);
  }
  // Settings that a program must not be told where they change nothing.
  if (layout.cp === 1) delete settings.context_parallel;
  if (!layout.offload?.length) delete settings.optimizer_offload_fraction;
  if (layout.rank_order === "tp-cp-dp-pp") delete settings.rank_order;
  return settings;
}

function row(candidate, index, shown, predict) {
  const { layout } = candidate;
  const name = `Predict this one, layout ${index + 1}`;
  return element("tr", {},
    element("td", {}, String(index + 1)),
    shown.map(([key]) => element("td", { class: typeof layout[key] === "string" ? "left" : "" }, String(layout[key]))),
    element("td", {}, figures(candidate.step_time_s)),
    element("td", {}, figures(candidate.tokens_per_s_per_gpu)),
    element("td", {}, gibibytes(candidate.peak_memory_bytes)),
    element("td", { class: "last" }, element("button", { type: "button", class: "plain small", "aria-label": name,
      onclick: () => predict(settingsOf(layout)) }, "Predict this one")));
}

export function layoutTable(best, predict) {
  const differs = ([key]) => ["tp", "pp", "dp", "micro_batch"].includes(key)
    || best.some(({ layout }) => layout[key] !== best[0].layout[key] || (layout[key] > 1 && key !== "zero"));
  const shown = columns.filter(differs);
  const heads = ["#", ...shown.map(([, name]) => name), "step s", "tok/s/GPU", "GiB"];
  const text = (name) => element("th", { scope: "col", class: /schedule|recompute/.test(name) ? "left" : "" }, name);
  return element("div", { class: "layouts" },
    element("h3", { id: "layouts-title" }, "Best layouts"),
    element("div", { class: "wide", tabindex: "0", role: "region", "aria-labelledby": "layouts-title" },
      element("table", {}, element("thead", {}, element("tr", {}, heads.map(text), element("td", { class: "last" }))),
        element("tbody", {}, best.map((candidate, index) => row(candidate, index, shown, predict))))));
}

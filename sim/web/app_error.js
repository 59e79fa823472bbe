// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with a question: what stands there, what is expected, and the nearest name as a button.
import { byId, element } from "/assets/app_dom.js";
import { labelOf } from "/assets/app_fields.js";
import { sentence } from "/assets/app_words.js";

// The setting that an error names: its path's first word, or its file where that is a flag.
export function settingOf(error) {
  const file = error.file ?? "";
  if (file.startsWith("--")) return file.slice(2).replaceAll("-", "_");
  const path = error.path || (/^[a-z_]+$/.test(file) ? file : "");
  return path.split(/[.[/]/)[0];
}

function wordsOf(error) {
  const found = error.found ? `Found ${error.found}` : "";
  const expected = error.expected ? `expected ${error.expected}` : "";
  if (error.kind === "machine_failed") return sentence(`The machine failed: ${found || expected}`);
  return sentence([found, expected].filter(Boolean).join("; ")) || "The question cannot be answered.";
}

// `take(key, text)` sets a field, or clears it with "".
export function showError(error, form, take) {
  const key = settingOf(error);
  const nearest = error.nearest
    ? element("button", { type: "button", class: "plain use", onclick: () => { take(key, error.nearest);
      byId(`f-${key}`)?.focus(); } },
      `Use ${error.nearest}`) : null;
  const text = wordsOf(error);
  const box = byId("error");
  const where = key ? `${labelOf(key)}: ` : "";
  if (key && form.mark(key, element("span", {}, element("span", {}, text), nearest))) {
    const label = document.querySelector(`label[for="f-${key}"]`)?.textContent ?? key;
    const go = element("button", { type: "button", class: "plain small", onclick: () => byId(`f-${key}`).focus() },
      `Go to ${label}`);
    box.replaceChildren(element("p", {}, element("strong", {}, "No answer. "), `${label} is not right. `, go));
    return;
  }
  const drop = key && form.holds(key)
    ? element("button", { type: "button", class: "plain", onclick: () => take(key, "") }, `Leave ${key} out`) : null;
  box.replaceChildren(element("p", {}, element("strong", {}, "No answer. "), where + text, " ", nearest, drop));
}

export function hideError(form) {
  byId("error").replaceChildren();
  form.unmarkAll();
}

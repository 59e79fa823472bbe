// SPDX-License-Identifier: Apache-2.0
// Makes one field of the form: its label, its input or choice, what its name stands for, and its error.
import { element, option } from "/assets/app_dom.js";
import { offerNames } from "/assets/app_names.js";

function choiceOf(field, id, value) {
  const select = element("select", { id, name: field.key }, option("", field.choice));
  for (const word of field.words) select.append(option(word));
  if (value && !field.words.includes(value)) select.append(option(value));
  select.value = value;
  return select;
}

function inputOf(field, id, value) {
  const input = element("input", { id, name: field.key, type: "text", spellcheck: "false", autocomplete: "off",
    autocapitalize: "none", inputmode: field.kind === "integer" ? "numeric" : null });
  input.value = value;
  return input;
}

// For values of several lines.
function areaOf(field, id, value) {
  const area = element("textarea", { id, name: field.key, rows: "4", spellcheck: "false", autocomplete: "off",
    autocapitalize: "none" });
  area.value = value;
  return area;
}

// `catalogue`: entries by kind, for fields that take names of it. `onchange(key, text)` at every change.
export function makeField(field, value, catalogue, onchange) {
  const id = `f-${field.key}`;
  const says = element("span", { class: "says quiet", id: `s-${field.key}` }, field.help ?? "");
  const made = field.choice ? choiceOf : field.area ? areaOf : inputOf;
  const input = made(field, id, value);
  input.setAttribute("aria-describedby", `s-${field.key} e-${field.key}`);
  const entries = field.names ? catalogue[field.names] ?? [] : (field.words ?? []).map((name) => ({ name }));
  const holder = element("span", { class: "holder" }, input);
  const told = () => { if (field.names && !field.help) says.textContent = titleOf(entries, input.value); };
  if (!field.choice && entries.length) offerNames(input, holder, entries, field.several);
  input.addEventListener("input", () => { told(); onchange(field.key, input.value); });
  if (!field.choice) input.placeholder = field.example ?? (field.optional ? "default" : "");
  told();
  const error = element("span", { class: "error-text", id: `e-${field.key}` });
  const classes = `field${field.wide || field.area ? " wide-field" : ""}`;
  return element("div", { class: classes }, element("label", { for: id }, field.label), holder, says, error);
}

export function titleOf(entries, text) {
  const wanted = text.trim().toLowerCase();
  const found = entries.find((entry) => entry.name.toLowerCase() === wanted
    || (entry.aliases ?? []).some((alias) => alias.toLowerCase() === wanted));
  return found?.title ?? "";
}

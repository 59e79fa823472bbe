// SPDX-License-Identifier: Apache-2.0
// Shows the fields of a question, the usual ones and all others; marks the field that an error names.
import { byId, element } from "/assets/app_dom.js";
import { makeField } from "/assets/app_field.js";
import { commands, labelOf, slidersOf, usualKeys } from "/assets/app_fields.js";

// Settings that are no part of a question asked here: files that would be written on the server's machine.
const left = new Set(["trace_out", "chakra_out", "requests_out", "csv", "jsonl", "json", "markdown", "quiet", "threads", "trace_in"]);

// What may complete a setting: "catalog model", or words.
export function kindOfNames(setting) {
  return setting.completes?.match(/^catalog (\S+)$/)?.[1] ?? "";
}

function settingField(setting) {
  const { key, kind, help, completes = "" } = setting;
  const field = { key, kind, help, label: labelOf(key), names: kindOfNames(setting) };
  if (kind === "on_off") return { ...field, choice: "default", words: ["true", "false"] };
  if (!field.names && completes !== "file") field.words = completes.split(" ").filter(Boolean);
  return field;
}

export class Form {
  constructor(onchange) {
    this.onchange = (key, text) => { this.unmark(key); this.count(); onchange(key, text); };
    this.catalogue = {};
    this.settings = {};
    this.command = "";
  }

  // Rebuilds the form for a question. Keys that sliders show are theirs.
  show(command, values) {
    this.command = command;
    const about = commands[command];
    byId("lead").textContent = about.lead;
    byId("fields").replaceChildren(...about.groups.map((group) => this.group(group, values)));
    this.showMore(command, values);
  }

  group(group, values) {
    const make = (field) => makeField(field, values[field.key] ?? "", this.catalogue, this.onchange);
    const fields = group.fields.map(make);
    return element("fieldset", { class: group.narrow ? "narrow" : "" }, element("legend", {}, group.title),
      group.note ? element("p", { class: "quiet note" }, group.note) : null, element("div", { class: "grid" }, fields));
  }

  showMore(command, values) {
    const usual = new Set([...usualKeys(command), ...slidersOf(command).map((slider) => slider.key)]);
    const rest = (this.settings[command] ?? []).filter((one) => !usual.has(one.key) && !left.has(one.key));
    this.rest = rest.map((one) => one.key);
    const groups = Map.groupBy(rest, (one) => one.group);
    const find = element("input", { type: "search", id: "find-setting", placeholder: "network, imbalance ..." });
    find.addEventListener("input", () => this.find(find.value));
    byId("settings").replaceChildren(
      element("div", { class: "field" }, element("label", { for: "find-setting" }, "Find a setting"), find),
      ...[...groups].map(([title, settings]) => this.group({ title, fields: settings.map(settingField) }, values)));
    this.count();
  }

  // Shows settings whose name or help holds all words.
  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const set of byId("settings").querySelectorAll("fieldset")) {
      for (const field of set.querySelectorAll(".field"))
        field.hidden = !words.every((word) => field.textContent.toLowerCase().includes(word));
      set.hidden = !set.querySelector(".field:not([hidden])");
    }
  }

  count() {
    const set = (this.rest ?? []).filter((key) => byId(`f-${key}`)?.value.trim()).length;
    byId("more-count").textContent = set ? `${set} set` : "";
  }

  kinds(command) {
    const known = Object.fromEntries((this.settings[command] ?? []).map((one) => [one.key, one.kind]));
    const fields = commands[command].groups.flatMap((group) => group.fields);
    return { ...Object.fromEntries(fields.map((field) => [field.key, field.kind ?? "text"])), ...known };
  }

  set(key, text) {
    const input = byId(`f-${key}`);
    if (input) input.value = text;
  }

  // What an empty field stands for, in grey.
  defaults(values) {
    for (const [key, text] of Object.entries(values)) {
      const input = byId(`f-${key}`);
      if (input?.tagName === "INPUT") input.placeholder = text;
    }
  }

  unmark(key) {
    const input = byId(`f-${key}`);
    if (!input?.hasAttribute("aria-invalid")) return;
    input.removeAttribute("aria-invalid");
    byId(`e-${key}`).replaceChildren();
  }

  unmarkAll() {
    for (const input of document.querySelectorAll("#question [aria-invalid]"))
      this.unmark(input.name);
  }

  // Puts what is wrong beside its field; false where there is no such field.
  mark(key, content) {
    const input = byId(`f-${key}`);
    if (!input) return false;
    input.setAttribute("aria-invalid", "true");
    byId(`e-${key}`).replaceChildren(content);
    const hidden = input.closest("details:not([open])");
    if (hidden) hidden.open = true;
    return true;
  }
}

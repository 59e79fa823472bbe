// SPDX-License-Identifier: Apache-2.0
// Turns what fields hold into a question, and a question into the fragment of a link and back.

// Values that are names or sentences even where they look like a number.
const names = new Set(["model", "cluster", "stack", "title", "name", "note", "start", "job"]);
// Of plan, serve and schedule: one value, whatever commas it has.
const single = new Set(["title", "name", "note", "speedup", "slo", "tiers", "for", "spec", "accept", "remedies",
  "deadline", "budget", "trace", "job", "limits", "search", "like"]);

function several(command, key, kind) {
  if (kind === "list") return true;
  if (kind === "json" || single.has(key)) return false;
  return ["plan", "serve", "schedule"].includes(command) || (command === "advise" && key === "cluster");
}

function one(text, key, kind) {
  const value = text.trim();
  if (kind === "on_off" || value === "true" || value === "false") return value === "true";
  if (!names.has(key) && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(value)) return Number(value);
  return value;
}

// Text of one field as JSON has it; undefined where it says nothing.
export function typed(command, key, kind, text) {
  const value = text.trim();
  if (!value) return undefined;
  if (/^[[{]/.test(value)) {
    try {
      return JSON.parse(value);
    } catch {
      return value;  // the server says what is wrong with it
    }
  }
  if (several(command, key, kind) && (kind === "list" || value.includes(",")))
    return value.split(",").filter((item) => item.trim()).map((item) => one(item, key, kind));
  return one(value, key, kind);
}

// The question that fields ask. `kinds` says what each setting is; factors of 1 say nothing.
export function questionOf(command, values, kinds, factors) {
  const question = {};
  for (const [key, text] of Object.entries(values)) {
    const value = typed(command, key, kinds[key] ?? "text", text);
    if (value === undefined || (value === 1 && factors.has(key))) continue;
    question[key] = value;
  }
  return question;
}

// Questions that ask the same have the same key.
export function keyOf(command, question) {
  return command + JSON.stringify(Object.entries(question).sort(([a], [b]) => (a < b ? -1 : 1)));
}

// A value of a question as a field shows it.
export function textOf(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function escaped(text) {
  return encodeURIComponent(text).replace(/%(2C|3A|2F|40|20)/g, (code) =>
    ({ "%2C": ",", "%3A": ":", "%2F": "/", "%40": "@", "%20": "+" })[code]);
}

// "#simulate?model=llama3-70b&gpus=64"
export function fragmentOf(command, values) {
  const pairs = Object.entries(values).filter(([, text]) => text.trim());
  return `#${command}?${pairs.map(([key, text]) => `${escaped(key)}=${escaped(text.trim())}`).join("&")}`;
}

// {command, values} of a fragment; null where it is no question. Without values they are left open (null).
export function parsed(fragment, known) {
  const found = fragment.match(/^#([a-z]+)(\?(.*))?$/s);
  if (!found || !known.includes(found[1])) return null;
  if (found[3] === undefined) return { command: found[1], values: null };
  const values = Object.fromEntries(new URLSearchParams(found[3]));
  return { command: found[1], values };
}

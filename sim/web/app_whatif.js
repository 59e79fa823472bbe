// SPDX-License-Identifier: Apache-2.0
// Sliders for a changed machine or price, each with its number, a reset, and its effect on the answer.
import { byId, element } from "/assets/app_dom.js";
import { slidersOf } from "/assets/app_fields.js";
import { difference, keyNumbers, verdict } from "/assets/app_numbers.js";
import { sentence } from "/assets/app_words.js";

const steps = 60;  // of a slider between its ends, on a log scale

const isPrice = (slider) => Boolean(slider.unit);

function rounded(value) {
  const digits = value >= 10 ? 1 : 2;
  return Number(value.toFixed(digits));
}

// Where a value lies on the slider. A factor's 1 is a place of its own, so that it can be met.
function placeOf(slider, value) {
  const { low, high } = slider;
  return Math.round(steps * Math.log(Math.min(high, Math.max(low, value)) / low) / Math.log(high / low));
}

function valueAt(slider, place) {
  return rounded(slider.low * (slider.high / slider.low) ** (place / steps));
}

// How the answer stands to the same with the slider at rest, in one sentence.
function effectSentence(command, at, now) {
  const before = keyNumbers(command, at), after = keyNumbers(command, now);
  const was = verdict(command, at), is = verdict(command, now);
  const fit = was.good === is.good ? "" : `; ${was.headline} -> ${is.headline}`;
  if (!before.length || !after.length) return sentence(`${was.headline} -> ${is.headline}`);
  const order = command === "plan" ? ["days", "cost", "energy"] : ["step", "price", "memory", "power"];
  for (const id of order) {
    const a = before.find((one) => one.id === id), b = after.find((one) => one.id === id);
    const differs = difference(a, b);
    if (!differs || differs.text === "the same") continue;
    const words = id === "step" ? speedWords(a, b) : differs.text.replace(/, (better|worse)$/, "");
    return `${a.label.toLowerCase()} ${a.text} -> ${b.text}, ${words}${fit}`;
  }
  const room = memoryWords(at, now);
  return room + fit;
}

function speedWords(a, b) {
  const faster = a.value / b.value - 1;
  return `${Math.abs(100 * faster).toFixed(1)}% ${faster > 0 ? "faster" : "slower"}`;
}

function memoryWords(at, now) {
  const capacity = (answer) => (answer.prediction ?? answer.winner)?.memory?.capacity_bytes;
  const a = capacity(at), b = capacity(now);
  if (!a || !b || a === b) return "no effect on the answer";
  return `step unchanged; ${(a / 2 ** 30).toFixed(1)} GiB a GPU -> ${(b / 2 ** 30).toFixed(1)} GiB`;
}

export class WhatIf {
  constructor(onchange) {
    this.onchange = onchange;
    this.shown = [];
  }

  show(command, values) {
    this.shown = slidersOf(command);
    byId("whatif").hidden = !this.shown.length;
    byId("sliders").replaceChildren(element("p", { class: "quiet note" },
      "Factors on the machine; 1 is the machine as it is."), ...this.shown.map((slider) => this.row(slider, values)));
    this.count(values);
  }

  row(slider, values) {
    const { key, label } = slider;
    const range = element("input", { type: "range", id: `r-${key}`, min: "0", max: String(steps), step: "1",
      "aria-label": `${label}, slider` });
    const number = element("input", { type: "text", inputmode: "decimal", id: `f-${key}`, name: key,
      autocomplete: "off", "aria-describedby": `w-${key} e-${key}` });
    const reset = element("button", { type: "button", class: "plain small", id: `z-${key}`,
      "aria-label": `Reset ${label}` }, "Reset");
    range.addEventListener("input", () => this.take(slider, String(valueAt(slider, Number(range.value)))));
    number.addEventListener("input", () => this.take(slider, number.value, false));
    reset.addEventListener("click", () => { this.take(slider, ""); number.focus(); });
    const unit = slider.unit ?? "x";
    const row = element("div", { class: "slider" }, element("label", { for: `f-${key}` }, label),
      range, element("span", { class: "amount" }, number, element("span", { class: "quiet" }, unit)), reset,
      element("span", { class: "effect", id: `w-${key}` }), element("span", { class: "error-text", id: `e-${key}` }));
    queueMicrotask(() => this.place(slider, values[key] ?? ""));
    return row;
  }

  // Shows a value: at rest a factor is 1, and a price is the machine's own.
  place(slider, text, withNumber = true) {
    const range = byId(`r-${slider.key}`);
    if (!range) return;
    const value = Number(text);
    const moved = text.trim() !== "" && Number.isFinite(value) && value > 0;
    const rest = isPrice(slider) ? slider.rest ?? 3 : 1;
    range.value = String(placeOf(slider, moved ? value : rest));
    range.setAttribute("aria-valuetext", `${moved ? value : rest} ${isPrice(slider) ? "USD" : "times"}`);
    if (withNumber) byId(`f-${slider.key}`).value = text.trim() || (isPrice(slider) ? "" : "1");
    byId(`z-${slider.key}`).disabled = text.trim() === "" || (!isPrice(slider) && value === 1);
  }

  take(slider, text, withNumber = true) {
    const still = !isPrice(slider) && Number(text) === 1;
    this.place(slider, text, withNumber);
    this.onchange(slider.key, still ? "" : text);
  }

  set(key, text) {
    const slider = this.shown.find((one) => one.key === key);
    if (slider) this.place(slider, text);
  }

  // The price that the machine has without one given, under the price slider's number.
  restPrice(price) {
    const slider = this.shown.find(isPrice);
    if (!slider || !price) return;
    slider.rest = price;
    byId(`f-${slider.key}`).placeholder = String(price);
    if (!byId(`f-${slider.key}`).value) this.place(slider, "");
  }

  count(values) {
    const moved = this.shown.filter((slider) => (values[slider.key] ?? "").trim()).length;
    byId("whatif-count").textContent = moved ? `${moved} changed` : "";
  }

  // Sliders of this question that are moved.
  moved(question) {
    return this.shown.filter((slider) => question[slider.key] !== undefined).map((slider) => slider.key);
  }

  clearEffects() {
    for (const slider of this.shown) this.effect(slider.key, "");
  }

  effect(key, text) {
    const place = byId(`w-${key}`);
    if (place && place.textContent !== text) place.textContent = text;
  }

  compare(key, command, at, now) {
    this.effect(key, at ? effectSentence(command, at, now) : "ask once with the value 1 to see the effect");
  }
}

// SPDX-License-Identifier: Apache-2.0
// Writes numbers as the command line does: three figures, units that people say.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const whole = (value) => grouped.format(value);

// Three significant figures, thousands grouped: 57.0, 1,118.
export function figures(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return whole(value);
  return value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(size))));
}

function scaled(value, units) {
  for (const [size, unit] of units)
    if (Math.abs(value) >= size) return `${figures(value / size)} ${unit}`;
  const [size, unit] = units.at(-1);
  return `${figures(value / size)} ${unit}`;
}

export const seconds = (value) => scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"]]);

export function duration(value) {
  if (value < 120) return seconds(value);
  for (const [size, unit] of [[86400, "days"], [3600, "hours"]])
    if (value >= 2 * size) return `${figures(value / size)} ${unit}`;
  return `${figures(value / 60)} minutes`;
}

// "52.2 to 62.8 s": the unit is said once where both ends have it.
export function between(low, high, text) {
  const [first, last] = [text(low), text(high)];
  const unit = first.match(/ [a-zA-Z]+$/)?.[0] ?? "";
  return unit && last.endsWith(unit) ? `${first.slice(0, -unit.length)} to ${last}` : `${first} to ${last}`;
}

export function money(value) {
  const size = Math.abs(value);
  for (const [unit, word] of [[1e9, "billion"], [1e6, "million"]])
    if (size >= unit) return `$${figures(value / unit)} ${word}`;
  return `$${figures(value)}`;
}

export const gibibytes = (bytes) => (bytes / 2 ** 30).toFixed(1);
export const percent = (share) => `${(100 * share).toFixed(1)}%`;
export const watts = (value) => scaled(value, [[1e9, "GW"], [1e6, "MW"], [1e4, "kW"], [1, "W"]]);
export const joules = (value) => scaled(value, [[1e15, "PJ"], [1e12, "TJ"], [1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"],
  [1, "J"]]);
export const wattHours = (value) => scaled(value / 3600, [[1e9, "GWh"], [1e6, "MWh"], [1e3, "kWh"], [1, "Wh"]]);

export function milliseconds(value) {
  return value < 1 ? "less than a millisecond" : value < 1000 ? `${Math.round(value)} ms` : seconds(value / 1000);
}

// A sentence's first letter up, its end a full stop.
export function sentence(text) {
  const trimmed = text.trim();
  if (!trimmed) return "";
  const begun = trimmed[0].toUpperCase() + trimmed.slice(1);
  return /[.!?:]$/.test(begun) ? begun : `${begun}.`;
}

// The layout as the report names it: "TP8 PP2 DP4 MB1", what is 1 or unset left out.
export function layoutWords(layout) {
  const words = [`TP${layout.tp}`, `PP${layout.pp}`, `DP${layout.dp}`];
  for (const [key, name] of [["vpp", "VPP"], ["cp", "CP"], ["ep", "EP"]])
    if (layout[key] > 1) words.push(`${name}${layout[key]}`);
  words.push(`MB${layout.micro_batch}`);
  if (layout.zero) words.push(`ZeRO-${layout.zero}`);
  if (layout.recompute !== "none") words.push(`${layout.recompute} recompute`);
  if (layout.offload.length) words.push(`offloads ${layout.offload.join(", ")}`);
  return words.join(" ");
}

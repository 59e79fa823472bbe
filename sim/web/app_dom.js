// SPDX-License-Identifier: Apache-2.0
// Makes elements of the page; what a caller gives is text, never markup.

// element("p", { class: "quiet", hidden: true, onclick: f }, "text", child): properties on* are listeners,
// false and null leave an attribute out.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const byId = (id) => document.getElementById(id);

export function option(value, text = value) {
  return element("option", { value }, text);
}

// Says a short sentence to those who listen to the page.
export function tell(sentence) {
  byId("told").textContent = sentence;
}

// Copies the text and says so on the button for two seconds.
export async function copy(text, button) {
  const before = button.dataset.text ?? button.textContent;
  button.dataset.text = before;
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    said = "The browser refuses to copy";
  }
  button.textContent = said;
  tell(said);
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => { button.textContent = before; }, 2000);
}

export function mediaMatches(query) {
  return window.matchMedia(query).matches;
}

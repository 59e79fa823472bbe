// SPDX-License-Identifier: Apache-2.0
// Makes an answer's page live: charts are drawn, tables are sorted by their headings, the answer is saved.

// Number of a cell: its first figure, with a prefix or suffix of thousands; null where it has none.
function figure(text) {
  const found = text.replace(/,(?=\d{3})/g, "").match(/[-+−]?\d+(\.\d+)?([eE][-+]?\d+)?/);
  return found ? Number(found[0].replace("−", "-")) : null;
}

function sorted(rows, column, sign) {
  const key = (row) => row.cells[column]?.textContent.trim() ?? "";
  const numbers = rows.every((row) => key(row) === "" || /^[<>~$±+−-]?\s*\$?\d/.test(key(row)));
  const order = numbers
    ? (a, b) => (figure(key(a)) ?? Infinity) - (figure(key(b)) ?? Infinity)
    : (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
  return [...rows].sort((a, b) => sign * order(a, b));
}

function sortBy(table, header, column) {
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells)
    if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  body.append(...sorted([...body.rows], column, down ? -1 : 1));
}

// Headings of tables with at least two rows become buttons.
export function makeSortable(root) {
  for (const table of root.querySelectorAll("table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2 || table.tHead.dataset.sortable) continue;
    table.tHead.dataset.sortable = "yes";
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      if (!header.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      header.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sortBy(table, header, column));
    });
  }
}

// Colours that follow the page's own, on a screen and on paper.
const paint = "currentColor";
const config = {
  background: "transparent",
  axis: { labelColor: paint, titleColor: paint, domainColor: paint, tickColor: paint, gridColor: paint, gridOpacity: 0.15,
    domainOpacity: 0.5 },
  legend: { labelColor: paint, titleColor: paint },
  title: { color: paint, subtitleColor: paint },
  header: { labelColor: paint, titleColor: paint },
};

// Labels of a chart in a narrow place leave room for what is drawn.
function shorten(part, most) {
  if (part === null || typeof part !== "object") return;
  if (part.labelLimit > most) part.labelLimit = most;
  for (const [key, inner] of Object.entries(part))
    if (key !== "data" && key !== "datasets") shorten(inner, most);
}

// Draws a specification in the element, as wide as it is. What is drawn can be pointed at.
export async function draw(element, specification) {
  const spec = structuredClone(specification);
  // The page says the title, so that it is read aloud and can be found.
  delete spec.title;
  if ("width" in spec) {
    spec.width = Math.max(240, element.clientWidth);
    spec.autosize = { type: "fit-x", contains: "padding" };
  }
  const fitted = "height" in spec ? spec : { ...spec, height: 200 };
  const narrow = element.clientWidth < 640;
  if (narrow) shorten(spec, Math.round(0.52 * element.clientWidth));
  const columns = element.clientWidth < 480 ? 1 : narrow ? 2 : 4;
  const legend = { ...config.legend, columns, ...(narrow ? { orient: "bottom" } : {}) };
  return window.vegaEmbed(element, fitted,
    { actions: false, renderer: "svg", ast: true, config: { ...config, legend } });
}

async function drawAll() {
  const charts = JSON.parse(document.getElementById("charts-data")?.textContent ?? "[]");
  for (const chart of charts) {
    const element = document.querySelector(`[data-chart="${CSS.escape(chart.name)}"]`);
    if (element) await draw(element, chart.spec);
  }
}

export function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A page of its own holds its answer; in `orrery web` the program that imports this shows it.
const answer = document.getElementById("answer-data");
if (answer) {
  makeSortable(document);
  document.getElementById("save-answer")?.addEventListener("click", () =>
    save("answer.json", answer.textContent, "application/json"));
  drawAll();
}

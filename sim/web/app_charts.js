// SPDX-License-Identifier: Apache-2.0
// Draws the charts of an answer as figures whose captions say what they show.
import { draw } from "/assets/page.js";
import { element } from "/assets/app_dom.js";

const drawn = new Map();  // element that holds a chart -> { spec, text, width, view, turn }
const widths = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const chart = drawn.get(target);
    if (chart && !(Math.abs(chart.width - contentRect.width) <= 8)) redraw(target);
  }
});

// One drawing at a time in each element: the last that is asked for stays.
function redraw(holder) {
  const chart = drawn.get(holder);
  chart.turn = (chart.turn ?? Promise.resolve()).then(() => drawIn(holder));
  return chart.turn;
}

async function drawIn(holder) {
  const chart = drawn.get(holder);
  if (!chart || !holder.isConnected || !holder.clientWidth) return;
  chart.width = holder.clientWidth;
  holder.style.minHeight = `${holder.clientHeight}px`;
  const before = chart.view;
  chart.view = await draw(holder, chart.spec);
  before?.finalize();
  holder.style.minHeight = "";
}

function captionOf(chart) {
  const { text = chart.title, subtitle = "" } = chart.spec.title ?? {};
  return { title: chart.title || text, subtitle: [].concat(subtitle).join(" ") };
}

function makeFigure(chart) {
  const { title, subtitle } = captionOf(chart);
  return element("figure", { "data-name": chart.name, class: chart.spec.usermeta?.wide ? "whole" : false },
    element("figcaption", {}, element("strong", {}, title), subtitle ? element("span", {}, subtitle) : null),
    element("div", { class: "drawn" }));
}

// Shows the charts in the element. Figures of charts that were there before stay where they are; those whose
// data did not change are not drawn again.
export function showCharts(root, charts) {
  const before = new Map([...root.children].map((figure) => [figure.dataset.name, figure]));
  const figures = charts.map((chart) => {
    const figure = makeFigure(chart);
    const old = before.get(chart.name);
    if (!old) return figure;
    old.querySelector("figcaption").replaceWith(figure.querySelector("figcaption"));
    return old;
  });
  for (const figure of root.children) {
    if (figures.includes(figure)) continue;
    const holder = figure.querySelector(".drawn");
    drawn.get(holder)?.view?.finalize();
    drawn.delete(holder);
    widths.unobserve(holder);
  }
  if (figures.length !== root.children.length || figures.some((figure, index) => root.children[index] !== figure))
    root.replaceChildren(...figures);
  const draws = charts.map((chart, index) => {
    const holder = figures[index].querySelector(".drawn");
    const text = JSON.stringify(chart.spec);
    const now = drawn.get(holder);
    if (now?.text === text) return null;
    drawn.set(holder, Object.assign(now ?? {}, { text, spec: chart.spec }));
    widths.observe(holder);
    return redraw(holder);
  });
  return Promise.all(draws);
}

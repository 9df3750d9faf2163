"use strict";
// Tables sort by a click on a column's head; a second click turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].innerText.trim();
    const order = new Intl.Collator("en", { numeric: true }).compare;
    const byNumber = head.classList.contains("number");
    const value = (text) => (text === "" ? -Infinity : Number(text));
    const compare = byNumber ? (a, b) => value(key(a)) - value(key(b)) : (a, b) => order(key(a), key(b));
    const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? 1 : -1) * compare(a, b));
    table.tBodies[0].append(...rows);
  }));
}
// A link into the map opens what it points to.
const open = () => { const found = document.getElementById(location.hash.slice(1)); if (found) found.open = true; };
addEventListener("hashchange", open);
open();
// Charts take the page's ink, also when the reader changes between light and dark, and black on paper.
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = (isDark) => {
  const ink = isDark ? "#e4e8ec" : "#1c2329", line = isDark ? "#333b43" : "#d9dee3";
  for (const chart of document.querySelectorAll(".js-plotly-plot")) {
    const change = { "font.color": ink };
    for (const name of Object.keys(chart._fullLayout || {})) {
      if (/^[xy]axis\d*$/.test(name)) { change[`${name}.gridcolor`] = line; change[`${name}.zerolinecolor`] = line; }
    }
    Plotly.relayout(chart, change);
  }
};
addEventListener("load", () => paint(dark.matches));
dark.addEventListener("change", () => paint(dark.matches));
// On paper nothing can be opened: what the map's rows stand for is shown at once, and folded up again afterwards.
let opened = [];
const PAPER = { width: 660, height: 270 };  // three to a page of A4
const sizes = new Map();
addEventListener("beforeprint", () => {
  paint(false);
  for (const chart of document.querySelectorAll(".js-plotly-plot")) {
    sizes.set(chart, chart.layout.height);
    Plotly.relayout(chart, { ...PAPER, autosize: false });
  }
  opened = [...document.querySelectorAll("#map details:not([open])")];
  for (const each of opened) each.open = true;
});
addEventListener("afterprint", () => {
  paint(dark.matches);
  for (const [chart, height] of sizes) Plotly.relayout(chart, { width: null, height, autosize: true });
  for (const each of opened) each.open = false;
});

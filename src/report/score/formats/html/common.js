"use strict";
// Parts of every page. Texts of others become text nodes and attributes of known elements, never markup.
const stored = id => { const element = document.getElementById(id); return element ? JSON.parse(element.textContent) : null; };
const page = stored("data");
const categories = ["Success", "Redundant", "ExecFail", "CmplFail", "HrnsFail", "unscored"];
const meanings = {
  Success: "passes on new code; for generation it fails on old code", Redundant: "generation: passes on new and on old code",
  ExecFail: "fails on new code", CmplFail: "does not compile on new code", HrnsFail: "no test, or the edit can't be applied", unscored: "a fault of the infrastructure",
};
const byLetter = Object.fromEntries(categories.map(name => [name[0].toUpperCase(), name]));
const shown = (value, digits = 1) => value === null || value === undefined ? "–" : value.toFixed(digits);
const number = (count, one, more) => `${count} ${count === 1 ? one : more}`;
// Costs under ten cents have two digits that are no leading zeros.
const dollars = value => "$" + value.toFixed(value >= 100 ? 0 : value >= 0.1 || value <= 0 ? 2 : Math.min(12, 1 - Math.floor(Math.log10(value))));
const known = value => value !== null && value !== undefined;
const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.flat().filter(child => child !== null && child !== undefined));
  return made;
}
// A run's name stands beside its model only where several runs are in the report.
const severalRuns = new Set(page.runs.map(run => run.run)).size > 1;
const runName = place => page.runs[place].model + (severalRuns ? " · " + page.runs[place].run : "");
// A model's colour, its shape of marks and its dashes: no two of twenty models have colour and dashes alike. Samples of a model share
// its colour.
const colours = page.runs.map(({ gold, rank, sample }) => gold ? "cgold" : `c${rank % 10} k${(rank + sample) % 5} d${(rank + sample) % 4}`);
const swatch = place => make("span", { class: "swatch " + colours[place], "aria-hidden": "true" });
const named = place => make("span", { class: "name" }, swatch(place), page.runs[place].model, severalRuns ? make("small", {}, page.runs[place].run) : null);
// A row of the ranking is a model's, or that of a model with several samples, which stands under the place of the first.
const rowName = row => row.samples ? row.model + (severalRuns && row.of_run ? " · " + row.of_run : "") : runName(row.run);
const pill = category => make("span", { class: "pill " + category, title: meanings[category] }, category);
const letters = (text, names) => make("span", { class: "cells" }, [...text].map((letter, index) => {
  const category = byLetter[letter];
  const said = (names ? names[index] + ": " : "") + category;
  return make("i", { class: category, title: said, role: "img", "aria-label": said }, letter);
}));

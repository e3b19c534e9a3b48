// What stands for itself in charts and lists: a model, or all samples of a model, under the place of the first.
const groups = page.groups.map(({ runs, model, of_run }) => ({ place: runs[0], runs, samples: known(model), gold: page.runs[runs[0]].gold, name: rowName({ run: runs[0], samples: known(model), model, of_run }) }));
// Charts as inline SVG, drawn in the width that there is, and again when it changes.
const space = document.getElementById("empty").namespaceURI;
const svg = (name, attributes, ...children) => fill(document.createElementNS(space, name), attributes, children);
const hover = text => svg("title", {}, text);
// `draw` gets the width and returns the chart's parts.
function chart(place, height, label, draw) {
  let drawn = 0;
  const redraw = () => {
    const width = Math.max(260, Math.floor(place.clientWidth));
    if (width === drawn) return;
    drawn = width;
    place.replaceChildren(svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label }, draw(width)));
  };
  redraw();
  new ResizeObserver(redraw).observe(place);
}
// A mark in the shape of its model: a circle, a square, a triangle, a diamond, or a triangle upside down.
const shapes = [r => `m${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`, r => `m${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  r => `m0,${-1.2 * r}l${1.2 * r},${2.2 * r}h${-2.4 * r}z`, r => `m0,${-1.4 * r}l${1.4 * r},${1.4 * r}l${-1.4 * r},${1.4 * r}l${-1.4 * r},${-1.4 * r}z`, r => `m0,${1.2 * r}l${1.2 * r},${-2.2 * r}h${-2.4 * r}z`];
const mark = (place, x, y, radius, kind, said) => svg("path", { class: "mark" + kind, d: `M${x},${y}` + shapes[Number((/k(\d)/.exec(colours[place]) || [0, 0])[1])](radius) }, hover(said));
// Round steps, at most `most` of them, up to `top`.
function ticks(top, most) {
  const raw = top / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(part => part * power).find(step => step >= raw * 0.999);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, index) => index * step);
}
// The address of a task's page.
// The address of the index that the explorer's filters stand for; a task's own page leads back to it.
let listed = "";
const addressOf = task => page.inline ? "#task=" + encodeURIComponent(task) : "tasks/" + encodeURIComponent(task) + ".html" + (listed ? "#from=" + listed : "");

// Cost against success: the front is made of the models that no other beats in both.
function costChart(place, standing, reading) {
  const points = standing.rows.filter(row => !page.runs[row.run].gold && known(row.cost) && row.readings[reading]);
  if (!points.length) { place.append(make("p", { class: "muted" }, "No submission of this track has a cost.")); return; }
  const front = points.filter(one => !points.some(other => other.cost <= one.cost && other.readings[reading].percent >= one.readings[reading].percent && (other.cost < one.cost || other.readings[reading].percent > one.readings[reading].percent)))
    .sort((one, other) => one.cost - other.cost);
  const gold = standing.rows.find(row => page.runs[row.run].gold && row.readings[reading]);
  const top = Math.max(...points.map(row => row.cost)) * 1.15 || 1;
  // Gold has no cost, so it is no point, but its line is part of the chart.
  const values = [...points, ...(gold ? [gold] : [])].map(row => row.readings[reading]);
  const highest = Math.min(100, 10 * Math.ceil((Math.max(...values.map(value => value.high ?? value.percent)) + 5) / 10));
  const height = 300;
  chart(place, height, "cost against success, " + standing.track, width => {
    const x = cost => 44 + cost / top * (width - 60);
    const y = percent => height - 44 - percent / highest * (height - 66);
    const parts = [];
    for (const value of ticks(highest, 5)) parts.push(svg("line", { class: "grid", x1: 44, x2: width - 10, y1: y(value), y2: y(value) }), svg("text", { x: 38, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    for (const value of ticks(top, width < 420 ? 3 : 6)) parts.push(svg("text", { x: x(value), y: height - 26, "text-anchor": "middle" }, dollars(value)));
    parts.push(svg("text", { x: width - 10, y: height - 6, "text-anchor": "end" }, "mean cost of a task"), svg("text", { x: 4, y: 12 }, "Success, %"));
    if (gold) {
      const at = y(gold.readings[reading].percent);
      parts.push(svg("line", { class: "goldline", x1: 44, x2: width - 10, y1: at, y2: at }), svg("text", { class: "goldtext", x: width - 12, y: at - 5, "text-anchor": "end" }, "gold " + shown(gold.readings[reading].percent)));
    }
    parts.push(svg("path", { class: "front", d: front.map((row, index) => (index ? "H" + x(row.cost) + "V" : "M" + x(row.cost) + "," ) + y(row.readings[reading].percent)).join("") + "H" + (width - 10) }));
    const taken = [];
    for (const row of [...points].sort((one, other) => one.readings[reading].percent - other.readings[reading].percent)) {
      const { percent, low, high } = row.readings[reading];
      const [left, at] = [x(row.cost), y(percent)];
      const name = rowName(row);
      const short = name.length > 22 ? name.slice(0, 21) + "…" : name;
      const end = left + short.length * 7 + 12 > width;
      const box = [end ? left - short.length * 7 - 10 : left + 10, at - 8, short.length * 7, 14];
      const free = offset => taken.every(([bx, by, bw]) => bx > box[0] + box[2] || bx + bw < box[0] || Math.abs(by - box[1] - offset) > 13);
      const offset = [0, -13, 13, -26, 26, -39, 39].find(free) ?? 0;
      taken.push([box[0], box[1] + offset, box[2]]);
      const said = `${name}: ${shown(percent)} %` + (known(low) ? ` (${shown(low)} to ${shown(high)})` : "") + `, ${dollars(row.cost)} a task`;
      parts.push(svg("g", { class: colours[row.run] },
        known(low) ? svg("line", { class: "whisker", x1: left, x2: left, y1: y(low), y2: y(Math.min(high, highest)) }) : null,
        mark(row.run, left, at, front.includes(row) ? 6.5 : 5, "", said),
        svg("text", { class: "label", x: end ? left - 10 : left + 10, y: at + 4 + offset, "text-anchor": end ? "end" : "start" }, short)));
    }
    return parts;
  });
  const names = front.map(rowName).join(", ");
  place.after(make("p", { class: "note" }, `Dotted: the Pareto front (${names}). No other model is both cheaper and better. Lines: 95 % intervals.`));
}

// Curves by half-year.
const measures = [["success", "Success"], ["clean", "Clean success"], ["coverage", "Coverage on pass"], ["mutation", "Mutation score on pass"]];
function curveChart(place, track, measure, only) {
  const points = page.segments.filter(one => one.track === track && known(one[measure]));
  if (!points.length) { place.append(make("p", { class: "muted" }, "No value of this track.")); return; }
  const rank = name => name === "Older" ? "" : name;
  const periods = [...new Set(points.map(one => one.segment))].sort((one, other) => rank(one) < rank(other) ? -1 : 1);
  const height = 280;
  chart(place, height, measure + " by half-year, " + track, width => {
    const x = name => periods.length < 2 ? width / 2 : 52 + periods.indexOf(name) / (periods.length - 1) * (width - 80);
    const y = percent => height - 40 - percent / 100 * (height - 60);
    const parts = [];
    for (const value of [0, 25, 50, 75, 100]) parts.push(svg("line", { class: "grid", x1: 40, x2: width - 10, y1: y(value), y2: y(value) }), svg("text", { x: 34, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    const every = Math.ceil(periods.length * 62 / (width - 60));
    periods.forEach((name, index) => { if (index % every === 0) parts.push(svg("text", { x: x(name), y: height - 18, "text-anchor": "middle" }, name)); });
    groups.forEach(({ place, runs, gold, name, samples }) => {
      const line = points.filter(one => one.run === place).sort((one, other) => periods.indexOf(one.segment) - periods.indexOf(other.segment));
      if (!line.length) return;
      const d = line.map((one, index) => (index ? "L" : "M") + x(one.segment) + "," + y(one[measure])).join("");
      const faint = only !== null && only !== place ? " faint" : "";
      parts.push(svg("g", { class: colours[place] + faint }, svg("path", { class: gold ? "goldline" : "line", d, fill: "none" }),
        line.map(one => mark(place, x(one.segment), y(one[measure]), 3.5, one.few ? " few" : "", `${name}, ${one.segment}: ${shown(one[measure])} % over ${one.methods} methods${samples ? `, mean of ${one.samples} of ${number(runs.length, "sample", "samples")}` : ""}`))));
    });
    return parts;
  });
}

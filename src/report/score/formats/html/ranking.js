// The ranking, the charts beside it, and the choices of what they show.
{
  const readings = [["paper", "Paper verdict"], ["clean", "Clean success"], ["strict", "Strict success"]];
  const readingNotes = {
    paper: "Success as the paper counts it.",
    clean: "Success of tests without any finding against their integrity; only where controls were launched.",
    strict: "Every repeat passes, failures on old code are attributable, and no finding is proof of tampering.",
  };
  if (page.incomplete.length) { const place = document.getElementById("incomplete"); place.hidden = false; place.textContent = "Incomplete. " + page.incomplete.join(". ") + "."; }
  const scored = page.runs.filter(run => !run.gold).length;
  // Samples of a model are one model.
  const further = new Set(page.standings.flatMap(standing => standing.rows.flatMap(row => (row.samples || []).slice(1).map(sample => sample.run))));
  document.getElementById("summary").textContent = `${number(scored - further.size, "model", "models")}, ${number(page.tasks.length, "task", "tasks")}, ${page.runs.length - scored ? "with the developers' tests (gold) as a reference" : "gold not scored as a model"}${page.period ? `. Only ${page.period}.` : ""}`;

  // Where the figures come from.
  {
    const { program, runs } = page.facts;
    const day = run => run.started.slice(0, 10);
    const one = run => [`Run ${run.run}`, day(run), ...run.engines, `seed ${run.seed}`].join(", ");
    const place = document.getElementById("facts");
    place.firstElementChild.append(runs.map(one).join("; "));
    place.append(make("div", {}, runs.map(run => facts([["Run", run.run], ["Began", run.started], ["Ended", run.finished || "not yet"], ["Engine", run.engines.join(", ") || "none: nothing was launched"],
      ["Seed", run.seed], ["Launches of a method", String(run.repeats)], ["Measured", run.measured.join(", ") || "outcomes only"],
      ["Program that executed", run.identity && mono(run.identity)], ["Protections missing", run.missing.length ? run.missing.join(", ") : null]])),
      facts([["Report by", program]])));
  }

  // The pairs hold each difference once; the other way round it has the other sign.
  const pairOf = (standing, reading, one, other) => {
    const found = standing.pairs[reading].find(pair => (pair.one === one && pair.other === other) || (pair.one === other && pair.other === one));
    if (!found) return null;
    if (found.one === one) return found;
    const repositories = found.repositories && [-found.repositories[1], -found.repositories[0]];
    return { ...found, one, other, difference: -found.difference, low: -found.high, high: -found.low, repositories };
  };
  const signed = value => (value > 0 ? "+" : value < 0 ? "−" : "±") + Math.abs(value).toFixed(1);

  // An interval does not break.
  const ends = ([low, high]) => `${signed(low)}\u00a0to\u00a0${signed(high)}`;
  const intervals = pair => [make("small", {}, ends([pair.low, pair.high])), ...(pair.repositories ? [make("small", {}, "by repositories " + ends(pair.repositories))] : [])];

  function ranked(standing, reading) {
    const rows = standing.rows.filter(row => !page.runs[row.run].gold && row.readings[reading]);
    rows.sort((one, other) => other.readings[reading].percent - one.readings[reading].percent);
    // A rank is one more than the number of significantly better models.
    return rows.map(row => ({ row, rank: 1 + rows.filter(other => { const pair = pairOf(standing, reading, other.run, row.run); return pair && pair.significant && pair.difference > 0; }).length }));
  }

  function mixBar(row) {
    const scored = row.mix.map(value => value ?? 0);
    const bar = make("div", { class: "mix", role: "img", "aria-label": categories.slice(0, -1).map((name, index) => `${name} ${shown(row.mix[index])} %`).join(", ") });
    scored.forEach((value, index) => {
      if (!value) return;
      // The initial tells outcomes apart without colours. The number wraps out of sight where there is no room.
      const part = make("i", { class: categories[index], title: `${categories[index]} ${shown(value)} %: ${meanings[categories[index]]}` }, value >= 7 ? [make("b", {}, categories[index][0]), make("span", {}, value.toFixed(0))] : "");
      part.style.width = value + "%";
      bar.append(part);
    });
    return bar;
  }

  function range(reading, reference, colour) {
    const bar = make("span", { class: "range " + colour, "aria-hidden": "true" });
    const at = (part, left, right) => { part.style.left = left + "%"; if (right !== undefined) part.style.right = 100 - right + "%"; bar.append(part); };
    if (known(reading.low)) at(make("i", {}), reading.low, reading.high);
    at(make("b", {}), reading.percent);
    if (known(reference)) at(make("u", {}), reference);
    return bar;
  }

  // Rows over other tasks can't be compared as they stand.
  const otherTasks = (standing, advice) => !standing.differ ? null : make("p", { class: "warn differ" },
    standing.differ === "apart" ? "These models share no tasks, so they can't be compared." : (standing.differ === "models" ? "These models were not scored on the same tasks" : "The developers' tests (gold) were not scored on the same tasks as the models") + "; " + advice[standing.differ] + ".");
  const counted = (standing, one) => standing.differ && one ? make("small", { class: "tasks" }, number(one.tasks, "task", "tasks")) : null;

  const cell = (label, kind, ...children) => make("td", { class: kind, "data-label": label }, make("div", {}, ...children));
  const beside = (value, reference, digits) => [shown(value, digits), known(reference) ? make("small", {}, " / " + shown(reference, digits)) : null];

  const rate = (value, reference, colour) => value
    ? [make("b", {}, shown(value.percent)), make("small", {}, known(value.low) ? `  ${shown(value.low)} – ${shown(value.high)}` : ""), range(value, reference, colour)]
    : "–";
  const certifiedOf = (row, reading) => row && row.certified ? row.certified.readings[reading] : null;

  // What a published leaderboard says of an agent. It has one reading of success, and means over methods that pass alone.
  function publishedRow(one, reading, reference, certified) {
    const value = reading === "paper" && known(one.mix[0]) ? { percent: one.mix[0] } : null;
    const onPass = (value, digits) => ["–", known(value) ? make("small", {}, " on pass " + shown(value, digits)) : null];
    return make("tr", { class: "published" },
      make("td", { class: "rank", "data-label": "Rank" }, "–"),
      cell("Model", "", make("span", { class: "name" }, one.name, make("small", {}, make("span", { class: "badge" }, "published"), " " + number(one.tasks, "task", "tasks")))),
      cell("Success %", "rate", rate(value, reference, "cpublished")),
      certified ? cell("Certified tasks", "rate certified", "–") : null,
      cell("Against the best", "number", "–"),
      cell("Outcomes", "", mixBar(one)),
      cell("Coverage / gold", "number", onPass(one.coverage, 1)),
      cell("Mutation / gold", "number", onPass(one.mutation, 3)),
      cell("Cost a task", "number", "–"));
  }

  // Samples of a model stand below it. Whose are shown stays when the reading changes.
  const unfolded = new Set();
  function unfolds(row, key, below) {
    const set = open => { for (const sample of below) sample.hidden = !open; button.setAttribute("aria-expanded", String(open)); };
    const button = make("button", { type: "button", class: "plain samples" }, number(row.samples.length, "sample", "samples"));
    button.addEventListener("click", () => { if (!unfolded.delete(key)) unfolded.add(key); set(unfolded.has(key)); });
    set(unfolded.has(key));
    return button;
  }
  const sampledName = row => make("span", { class: "name" }, swatch(row.run), row.model, severalRuns && row.of_run ? make("small", {}, row.of_run) : null);
  // One of k samples resolves the task, by the paper's verdict alone.
  const passAt = (row, reading) => row.samples && reading === "paper" && row.pass
    ? make("div", { class: "ends pass" }, make("small", {}, "resolved %: " + row.pass.map(([k, percent, tasks]) => `pass@${k}\u00a0${shown(percent)} (${number(tasks, "task", "tasks")})`).join(", "))) : null;
  const measured = row => [
    cell("Outcomes", "", mixBar(row)),
    cell("Coverage / gold", "number", beside(row.coverage, row.coverage_gold, 1)),
    cell("Mutation / gold", "number", beside(row.mutation, row.mutation_gold, 3)),
    cell("Cost a task", "number", known(row.cost) ? dollars(row.cost) : "–", known(row.cost) && row.with_cost < row.tasks ? make("small", {}, ` of ${row.with_cost} tasks`) : null)];
  const sampleRow = (standing, row, reading, at, certified, certifiedAt) => make("tr", { class: "sample", "data-sample": row.run },
    make("td", { class: "rank", "data-label": "Rank" }, "–"),
    cell("Model", "", named(row.run), counted(standing, row)),
    cell("Success %", "rate", rate(row.readings[reading], at, colours[row.run])),
    certified ? cell("Certified tasks", "rate certified", rate(certifiedOf(row, reading), certifiedAt && certifiedAt.percent, colours[row.run]), counted(standing, row.certified)) : null,
    cell("Against the best", "number", "–"), measured(row));

  function table(standing, reading) {
    const rows = ranked(standing, reading);
    const reference = standing.rows.find(row => page.runs[row.run].gold);
    const at = reference && reference.readings[reading] ? reference.readings[reading].percent : null;
    const certifiedAt = certifiedOf(reference, reading);
    const certified = page.certified !== null;
    const heads = [["Rank", "number"], ["Model", ""], ["Success %, 95 % interval", ""], ...(certified ? [["Certified tasks: success %, 95 % interval", ""]] : []), ["Against the best", "number"], ["Outcomes, % of methods, mean over tasks", ""], ["Coverage / gold", "number"], ["Mutation / gold", "number"], ["Cost a task", "number"]];
    const body = rows.map(({ row, rank }, index) => {
      const value = row.readings[reading];
      const pair = index ? pairOf(standing, reading, row.run, rows[0].row.run) : null;
      const below = (row.samples || []).map(sample => sampleRow({ differ: standing.differ || row.samples.some(one => one.tasks !== row.tasks) }, sample, reading, at, certified, certifiedAt));
      return [value.percent, [make("tr", { "data-run": row.run },
        make("td", { class: "rank", "data-label": "Rank" }, String(rank)),
        row.samples ? cell("Model", "", sampledName(row), counted(standing, row), unfolds(row, standing.track + row.run, below)) : cell("Model", "", named(row.run), counted(standing, row)),
        cell("Success %", "rate", rate(value, at, colours[row.run]), passAt(row, reading)),
        certified ? cell("Certified tasks", "rate certified", rate(certifiedOf(row, reading), certifiedAt && certifiedAt.percent, colours[row.run]), counted(standing, row.certified)) : null,
        cell("Against the best", "number", pair ? [signed(pair.difference), make("small", {}, pair.significant ? "  significant" : "  not significant"), make("div", { class: "ends" }, intervals(pair))] : "–"),
        measured(row)), ...below]];
    });
    const published = page.published.filter(one => one.track === standing.track);
    for (const one of published) body.push([reading === "paper" ? one.mix[0] ?? -1 : -1, [publishedRow(one, reading, at, certified)]]);
    // Models are in this order already, and stay before published rows that equal them.
    body.sort(([one], [other]) => other - one);
    const made = make("table", { class: "cards ranking" }, make("thead", {}, make("tr", {}, heads.map(([text, kind]) => make("th", { scope: "col", class: kind }, text)))), make("tbody", {}, body.flatMap(([, rows]) => rows)));
    const note = standing.differ !== "models" && standing.differ !== "apart" && standing.rows[0] ? `${number(standing.rows[0].tasks, "task", "tasks")}, ${number(standing.rows[0].methods, "method", "methods")}. ` : "";
    return make("div", { class: "panel" }, make("h3", {}, standing.track),
      otherTasks(standing, { models: "compare them by \"Against the best\" and \"Every pair of models\", which are over the tasks that both have", gold: "the dashed line is over its own tasks" }),
      body.length ? make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "ranking, " + standing.track }, made) : make("p", { class: "muted" }, "No model has this value."),
      make("p", { class: "note" }, note + readingNotes[reading] + (known(at) ? ` Dashed line: the developers' tests (gold), ${shown(at)} %${standing.differ ? " over " + number(reference.tasks, "task", "tasks") : ""}.` : "")),
      rows.some(({ row }) => row.samples) ? make("p", { class: "note" }, "A model with several samples has their mean over the tasks that all samples have. Gold's coverage and mutation are those beside the first sample. An unfolded row is over all tasks of its sample. pass@k: the estimated share of tasks that one of k samples resolves, with every target method a Success. It is over the tasks of which at least k samples were judged.") : null,
      published.length ? make("p", { class: "note" }, "Rows marked published: values of the published leaderboard over its own tasks, not measured here. They have no rank, interval, significance, clean or strict success, certified tasks or cost. Their coverage and mutation score are over methods that pass on new code, as CovOnPass and MutOnPass in All figures.") : null,
      certified ? leftOut(standing) : null,
      rows.length > 1 ? matrix(standing, reading, rows.map(({ row }) => row)) : null);
  }

  // Reasons against a task or a method, in the words of the validation.
  const reasons = {
    differing: "a published label does not hold", flaky: "a published label holds in some repeats only", needs_network: "a published label can't be decided without a network",
    infrastructure: "an execution could not be judged", not_validated: "the validation does not have the task", other_data: "the validation had another version of the task",
    other_image: "the validation had another image of the repository", not_discriminating: "the developers' test passes on old code as well",
  };
  const tracks = new Map(page.tasks.map(task => [task.task, task.track]));
  function leftOut(standing) {
    const excluded = page.certified.excluded.filter(one => tracks.get(one.task) === standing.track);
    const tasks = excluded.filter(one => !one.method).length;
    const counted = standing.rows.find(row => row.certified && !row.samples) || standing.rows.find(row => row.certified);
    const left = counted ? `${number(counted.certified.tasks, "certified task", "certified tasks")}, ${number(counted.certified.methods, "method", "methods")}` : "No certified task";
    const said = `${left}, by the validation ${page.certified.validation}. `;
    if (!excluded.length) return make("p", { class: "note" }, said + "Nothing is left out.");
    const groups = [...new Set(excluded.map(one => one.reason))].sort().map(reason => [
      make("dt", {}, `${reason}: ${reasons[reason]}`),
      make("dd", {}, excluded.filter(one => one.reason === reason).flatMap((one, index) => [index ? ", " : "", make("a", { href: addressOf(one.task) }, one.task), one.method ? " " + one.method : ""])),
    ]);
    return make("details", { class: "more left-out" }, make("summary", {}, `${said}Left out: ${number(tasks, "task", "tasks")} and ${number(excluded.length - tasks, "method", "methods")} of others`), make("div", {}, make("dl", {}, groups.flat())));
  }

  function matrix(standing, reading, rows) {
    const head = make("tr", {}, make("th", {}, "row minus column"), rows.map(row => make("th", { scope: "col" }, make("span", { class: "sideways" }, rowName(row)))));
    const body = rows.map(one => make("tr", {}, make("th", { scope: "row" }, rowName(one)), rows.map(other => {
      const pair = one === other ? null : pairOf(standing, reading, one.run, other.run);
      return make("td", { class: pair && pair.significant ? "sure" : null }, pair ? [signed(pair.difference), make("div", { class: "ends" }, intervals(pair), make("small", {}, number(pair.tasks, "task", "tasks")))] : "·");
    })));
    return make("details", { class: "more" }, make("summary", {}, "Every pair of models"), make("div", {},
      make("p", { class: "note" }, "Difference in percentage points over the tasks that both have, with its 95 % intervals: by resampling tasks, and by resampling repositories and their tasks, because tasks of one repository correlate. Bold: significant, as both exclude 0. A report of one repository has the first interval alone. Not corrected for the number of comparisons. A model's rank is one more than the number of models that are significantly better."),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "differences" }, make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, body)))));
  }

  const legend = () => make("ul", { class: "legend" }, categories.slice(0, -1).map(name => make("li", {}, make("span", { class: "box " + name, "aria-hidden": "true" }, name[0]), `${name}: ${meanings[name]}`)));
  const choice = (place, name, options, chosen, pick) => {
    for (const [value, label, off] of options) {
      const input = make("input", { type: "radio", name, value, disabled: off, checked: value === chosen });
      input.addEventListener("change", () => pick(value));
      document.getElementById(place).append(make("label", {}, input, label));
    }
  };

  const own = { models: "each is shown over its own", gold: "the dashed line is over its own" };
  function showReading(reading) {
    document.getElementById("standings").replaceChildren(...page.standings.map(standing => table(standing, reading)), legend());
    document.getElementById("costs").replaceChildren(...page.standings.map(standing => make("div", { class: "panel" }, make("h3", {}, standing.track), otherTasks(standing, own), make("div", {}))));
    page.standings.forEach((standing, index) => costChart(document.getElementById("costs").children[index].lastChild, standing, reading));
  }
  let measure = "success";
  let only = null;
  function showCurves() {
    document.getElementById("curves").replaceChildren(...page.standings.map(standing => make("div", { class: "panel" }, make("h3", {}, standing.track), otherTasks(standing, own), make("div", {}))));
    page.standings.forEach((standing, index) => curveChart(document.getElementById("curves").children[index].lastChild, standing.track, measure, only));
  }
  choice("reading", "reading", readings.map(([value, label]) => [value, label, !page.standings.some(standing => standing.rows.some(row => row.readings[value]))]), "paper", showReading);
  choice("measure", "measure", measures.map(([value, label]) => [value, label, !page.segments.some(one => known(one[value]))]), "success", value => { measure = value; showCurves(); });
  document.getElementById("curve-legend").append(...groups.map(({ place, name }) => {
    const button = make("button", { type: "button", class: "plain", "aria-pressed": "false" }, swatch(place), name);
    button.addEventListener("click", () => {
      only = only === place ? null : place;
      for (const other of document.querySelectorAll("#curve-legend button")) other.setAttribute("aria-pressed", String(other === button && only !== null));
      showCurves();
    });
    return make("li", {}, button);
  }), make("li", { class: "muted" }, "Hollow dots: fewer than 20 methods" + (groups.some(group => group.samples) ? ". A model with several samples has their mean over the tasks that all have" : "")));
  showReading("paper");
  showCurves();

  // Tables of figures sort by any column: numbers by their value and before words, words as they are.
  const order = (one, other) => {
    const [left, right] = [one, other].map(text => text.trim() === "" ? NaN : Number(text));
    if (Number.isNaN(left) !== Number.isNaN(right)) return Number.isNaN(left) ? 1 : -1;
    return Number.isNaN(left) ? one.localeCompare(other) : left - right;
  };
  for (const sheet of document.querySelectorAll("table.sheet")) sheet.querySelectorAll("th").forEach((heading, column) => {
    const button = make("button", { type: "button" });
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      sheet.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...sheet.tBodies[0].rows];
      rows.sort((one, other) => (up ? 1 : -1) * order(one.cells[column].textContent, other.cells[column].textContent));
      sheet.tBodies[0].append(...rows);
    });
  });
}

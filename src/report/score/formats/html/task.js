// One task: its facts, the models side by side, the covered code with its mutants, and each model's test.
function showTask(task, place) {
  const several = task.models.length > 1;
  place.append(make("h1", {}, task.task));
  place.append(make("p", {}, make("span", { class: "badge" }, task.track), " ", make("span", { class: "badge" }, "JDK " + task.jdk), " ", make("span", { class: "badge" }, task.date || task.segment)));
  place.append(facts([["Repository", task.repository], ["Test file", mono(task.file)], ["Revisions", mono(`${task.old} → ${task.new}`)]]));
  if (task.start) place.append(make("p", { class: "start" }, "The file that it starts from " + (task.start.compiles ? "compiles" : "does not compile") + " on new code."));
  if (task.start && task.start.detail) place.append(failure(task.start.detail, task));
  if (task.gold_failed) place.append(make("p", { class: "warn" }, "The developers' test of this task fails on new code, where its label says that it passes."));
  place.append(make("section", { class: "panel", "aria-label": "models side by side" }, make("h2", {}, several ? "Models side by side" : "Result"), sideBySide(task)));
  const sources = task.focal.map(focal => stored("a" + focal.source));
  if (task.focal.length) place.append(make("section", {}, make("h2", {}, "Focal methods: coverage and mutants"), task.focal.map((focal, index) => showFocal(task, focal, index, sources[index]))));
  const left = task.mutants.map((mutant, at) => ({ ...mutant, place: at })).filter(mutant => !task.focal.some((focal, index) => showsLine(focal, sources[index], mutant)));
  if (left.length) place.append(make("section", { class: "leftover" }, make("h2", {}, "Mutants whose line is not shown"), make("ul", {}, left.map(mutant => make("li", { class: "mutant" }, mono(`${mutant.path}:${mutant.line}`), " ", onMutant(task, mutant))))));
  for (const one of task.models) place.append(showModel(task, one));
}
const mono = text => make("span", { class: "mono" }, text);
const facts = pairs => make("dl", { class: "facts" }, pairs.filter(([, value]) => known(value)).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat())]));

function sideBySide(task) {
  const heads = ["Model", "Methods", "Coverage / gold", "Mutants killed", "Integrity", "Cost"];
  const rows = task.models.map(one => {
    const values = name => one.methods.map(method => method[name]).filter(known);
    const average = name => { const there = values(name); return there.length ? there.reduce((sum, value) => sum + value, 0) / there.length : null; };
    const kills = values("kills");
    const worst = ["tampered", "suspect", "not_evaluated", "clean"].find(name => one.methods.some(method => method.integrity === name));
    const link = make("a", { href: "#" }, named(one.run));
    link.addEventListener("click", event => { event.preventDefault(); const there = document.getElementById("m" + one.run); there.scrollIntoView(); there.focus({ preventScroll: true }); });
    const cell = (label, kind, ...children) => make("td", { class: kind, "data-label": label }, make("div", {}, ...children));
    return make("tr", {}, cell("Model", "", link),
      cell("Methods", "", letters(one.methods.map(method => (method.category || "Unscored")[0]).join(""), one.methods.map(method => method.method))),
      cell("Coverage / gold", "number", shown(average("coverage")), known(average("coverage_gold")) ? make("small", {}, " / " + shown(average("coverage_gold"))) : null),
      cell("Mutants killed", "number", kills.length ? kills.map(one => `${one.killed} of ${one.count}`).join(", ") : "–"),
      cell("Integrity", "", (worst || "–").replace("_", " ")), cell("Cost", "number", known(one.cost) ? dollars(one.cost) : "–"));
  });
  return make("table", { class: "cards beside" }, make("thead", {}, make("tr", {}, heads.map(name => make("th", { scope: "col", class: ["Coverage / gold", "Mutants killed", "Cost"].includes(name) ? "number" : null }, name)))), make("tbody", {}, rows));
}

// Tells whether a mutant's line stands in a focal method's source as shown.
function showsLine(focal, source, mutant) {
  return source !== null && mutant.path === focal.path && mutant.line >= focal.first && mutant.line <= focal.last && mutant.line >= focal.from && mutant.line < focal.from + source.length;
}
// A focal method with its surroundings: a gutter says which models cover a line, mutants stand below theirs.
function showFocal(task, focal, index, source) {
  const part = make("div", {}, make("h3", {}, mono(`${focal.path}:${focal.first}–${focal.last}`)));
  const measured = task.models.map(one => {
    const there = one.methods.filter(method => method.covered && method.covered[index]);
    const lines = new Set(there.flatMap(method => method.covered[index].lines));
    const covered = new Set(there.flatMap(method => method.covered[index].covered));
    const others = there.filter(method => method.own && !method.own.includes(index)).map(method => method.method);
    return { run: one.run, lines, covered, there, others };
  }).filter(one => one.there.length);
  if (!measured.length) part.append(make("p", { class: "muted" }, "Coverage of this method was not measured: no method passed, or coverage was off."));
  if (measured.length) part.append(make("p", { class: "note" }, "Covered lines of the method shown: " + measured.map(one => `${runName(one.run)} ${one.covered.size} of ${one.lines.size}`).join(", ") + "."));
  // A score counts methods that the task does not list as well.
  const more = measured.flatMap(one => one.there.filter(method => method.own_lines && method.own_lines.methods > 1).map(method => `${runName(one.run)} ${method.method} ${ownLines(method.own_lines)}`));
  if (more.length) part.append(make("p", { class: "note" }, "Scores count all own focal methods of a test method: " + more.join(", ") + "."));
  const others = [...new Set(measured.flatMap(one => one.others))];
  if (others.length) part.append(make("p", { class: "note" }, "Not an own focal method of " + others.join(", ") + ", whose score leaves it out."));
  if (!source) { part.append(make("p", { class: "muted" }, "The source is not in this page.")); return part; }
  const mutants = task.mutants.map((mutant, place) => ({ ...mutant, place })).filter(mutant => mutant.path === focal.path);
  const rows = [];
  source.forEach((text, offset) => {
    const line = focal.from + offset;
    const within = line >= focal.first && line <= focal.last;
    rows.push(make("tr", { class: !within ? "around" : focal.added.includes(line) ? "added" : null },
      measured.map(one => {
        const state = one.covered.has(line) ? "covered" : one.lines.has(line) ? "missed" : "";
        return make("td", { class: "hit " + state, title: state ? `${runName(one.run)}: ${state}` : null }, state === "covered" ? "●" : state === "missed" ? "○" : "", state ? make("span", { class: "sr" }, state) : null);
      }),
      make("td", { class: "line" }, String(line)), make("td", { class: "text" }, text)));
    for (const mutant of mutants.filter(mutant => mutant.line === line && within)) rows.push(make("tr", { class: "mutant" }, make("td", { colspan: measured.length + 2 }, make("div", {}, onMutant(task, mutant)))));
  });
  const head = make("tr", {}, measured.map(one => make("th", { scope: "col" }, make("span", { class: "sideways" }, swatch(one.run), runName(one.run)))), make("th", { scope: "col" }, make("span", { class: "sr" }, "line")), make("th", { scope: "col" }, make("span", { class: "sr" }, "source")));
  part.append(make("div", { class: "code focal", tabindex: "0", role: "region", "aria-label": "source of " + focal.path }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows))));
  part.append(make("p", { class: "note" }, "● covered, ○ missed. Tinted lines were added by the task's commit."));
  return part;
}
// How much a test method covers of its own focal methods, which its score counts.
const ownLines = own => `${own.covered} of ${number(own.lines, "line", "lines")} of ${number(own.methods, "method", "methods")}`;
function ownMethods(own) {
  const each = own.each.map(([name, covered, lines]) => `${name} ${covered} of ${lines}`);
  if (each.length && each.length < own.methods) each.push(`${own.methods - each.length} more`);
  return ownLines(own) + (each.length ? ": " + each.join(", ") : "");
}
function onMutant(task, mutant) {
  const said = { killed: [], survived: [] };
  for (const [name, methods] of [...task.models.map(one => [runName(one.run), one.methods]), ["gold", page.runs.some(run => run.gold) ? [] : task.gold]]) {
    const outcomes = methods.flatMap(method => (method.mutants || []).filter(([place]) => place === mutant.place).map(([, outcome]) => outcome));
    if (outcomes.length) said[outcomes.some(outcome => outcome !== "pass") ? "killed" : "survived"].push(name);
  }
  const parts = [make("b", {}, "Mutant "), mono(mutant.id.replace("sha256:", "").slice(0, 8)), " "];
  if (mutant.text !== null) parts.push(mutant.text ? make("code", { dir: "ltr" }, mutant.text) : "(an empty line)", " ");
  if (said.killed.length) parts.push(make("span", { class: "killed" }, "killed by " + said.killed.join(", ")));
  if (said.survived.length) parts.push(said.killed.length ? "; " : "", make("span", { class: "survived" }, "survived " + said.survived.join(", ")));
  if (!said.killed.length && !said.survived.length) parts.push("met by no test");
  return parts;
}

function showModel(task, one) {
  const part = make("section", { class: "model panel", id: "m" + one.run, tabindex: "-1" }, make("h2", {}, swatch(one.run), runName(one.run), one.methods.map(method => pill(method.category || "unscored"))));
  if (one.fault) part.append(make("p", { class: "warn" }, "Not executed: " + one.fault));
  if (one.dropped && one.dropped.length) part.append(make("p", { class: "note" }, "Changes to other files, dropped: " + one.dropped.join(", ")));
  if (one.shadows && one.shadows.length) part.append(make("p", { class: "warn" }, "Declares types of the project again: " + one.shadows.join(", ")));
  for (const method of one.methods) part.append(showMethod(task, method));
  showDiffs(one, part);
  // Logs of kept results are those of the run that executed them.
  const logs = ["new", "old"].flatMap(code => one.logs[code].map(({ at, run }) => [`on ${code} code` + (run ? `, of run ${run}` : ""), stored("a" + at)]));
  for (const code of ["new", "old"]) {
    const isKept = one.methods.some(method => method[code].some(launch => launch.cached));
    if (isKept && !one.logs[code].length) part.append(make("p", { class: "note nologs" }, `Logs on ${code} code: these are kept results of another run, which is not here.`));
  }
  for (const [where, found] of logs) {
    if (found === null || !found.length) { part.append(make("p", { class: "note nologs" }, `Logs ${where}: ` + (found === null ? "not in this page." : "the launches wrote nothing."))); continue; }
    part.append(make("h3", { class: "logs" }, `Commands and logs ${where}`), ...found.map(log => make("details", { class: "log" }, make("summary", {}, log.name), make("pre", { tabindex: "0" }, readableCommand(log)))));
  }
  const digests = one.digests || {};
  const list = facts([["Submitted", digests.submitted && mono(digests.submitted)], ["Starting file", digests.start && mono(digests.start)], ["Executed file", digests.file && mono(digests.file)],
    ["Tokens", known(one.tokens) ? String(one.tokens) : null], ...one.methods.flatMap(method => ["new", "old"].flatMap(code => method[code].filter(launch => launch.key).map(launch => [`${method.method} on ${code} code`, [mono(launch.key), launch.engine ? " " + launch.engine : ""]]))),
    ["In a terminal", mono(`testevo-sandbox explain ${page.runs[one.run].run} ${task.task}`)]]);
  part.append(make("details", { class: "more" }, make("summary", {}, "Digests and execution keys"), make("div", {}, list)));
  return part;
}
// A command is stored as JSON: its arguments, one a line, come first.
function readableCommand(log) {
  if (!log.name.endsWith(".command.json")) return log.text;
  try { const { argv } = JSON.parse(log.text); return Array.isArray(argv) ? argv.join(" \\\n  ") + "\n\n" + log.text : log.text; } catch (error) { return log.text; }
}

function showMethod(task, method) {
  const part = make("div", { class: "method" }, make("h3", {}, mono(method.method), pill(method.category || "unscored"), method.strict ? make("span", { class: "badge" }, "strict success") : null, make("span", { class: "badge" }, "integrity: " + method.integrity.replace("_", " "))));
  if (method.reasons.length) part.append(make("ul", { class: "reasons" }, method.reasons.map(([name, sentence]) => make("li", {}, mono(name), ": " + sentence))));
  if (method.off.length) part.append(make("p", { class: "note" }, "Found as well, but the developers' test has it too: " + method.off.map(([, sentence]) => sentence).join("; ")));
  if (method.own_lines) part.append(make("p", { class: "note own" }, `Coverage ${shown(method.coverage)} %: ` + ownMethods(method.own_lines) + "."));
  for (const code of ["new", "old"]) method[code].forEach((launch, index) => {
    const times = [known(launch.ms) ? `${launch.ms} ms` : null, launch.cached ? "kept result" : null, launch.attempts > 1 ? `${launch.attempts} attempts` : null, launch.unfit ? "reference path: " + launch.unfit : null].filter(known);
    part.append(make("p", { class: "launch" }, `On ${code} code` + (method[code].length > 1 ? `, repeat ${index + 1}` : "") + ": ", make("b", {}, launch.outcome), make("span", { class: "muted" }, times.length ? "  " + times.join(", ") : "")));
    if (launch.detail) part.append(failure(launch.detail, task));
  });
  return part;
}
// A failure, a line each: frames step back, but for those of the test file; causes and errors stand out.
function failure(text, task) {
  const name = task.file.split("/").pop();
  const kind = line => /^\s*at\s/.test(line) || /^\s*\.\.\. \d+ more/.test(line) ? (line.includes(name) ? "here" : "frame") : /^(Caused by|Suppressed|[\w.$]+(Exception|Error)\b)|\berror:|\.java:\[?\d+/.test(line) ? "cause" : null;
  return make("pre", { class: "failure", tabindex: "0" }, text.replace(/\n$/, "").split("\n").map(line => make("span", { class: kind(line) }, line)));
}

function showDiffs(one, part) {
  const kinds = [["test", "Against the file it starts from"], ["against", "Against the developers' file"]].filter(([key]) => known(one[key]));
  if (!kinds.length) return;
  const place = make("div", {});
  const buttons = kinds.map(([key, label]) => {
    const button = make("button", { type: "button", class: "plain", "data-diff": key }, label);
    button.addEventListener("click", () => pick(key));
    return button;
  });
  const pick = key => {
    buttons.forEach(button => button.setAttribute("aria-pressed", String(button.dataset.diff === key)));
    const lines = stored("a" + one[key]);
    const same = key === "against" && one.same_as_gold;
    place.replaceChildren(lines === null ? make("p", { class: "muted" }, "This difference is not in this page.") : same ? make("p", { class: "muted" }, "The two files are equal, byte for byte.") : difference(lines));
  };
  part.append(make("h3", { class: "diffs" }, "Test file"), make("div", { class: "tabs", role: "group", "aria-label": "compared with" }, buttons), place);
  pick(kinds[0][0]);
}
// Changes with three lines around them; longer stretches without a change fold.
function difference(lines) {
  const changed = lines.map(line => !line.startsWith(" "));
  const near = lines.map((_, at) => changed.slice(Math.max(0, at - 3), at + 4).some(Boolean));
  const body = make("tbody", {});
  let [left, right] = [0, 0];
  let folded = [];
  const unfold = () => {
    if (!folded.length) return;
    const hidden = folded;
    folded = [];
    if (hidden.length < 4) { body.append(...hidden); return; }
    const button = make("button", { type: "button" }, `Show ${hidden.length} unchanged lines`);
    const row = make("tr", { class: "fold" }, make("td", { colspan: 3 }, button));
    button.addEventListener("click", () => row.replaceWith(...hidden));
    body.append(row);
  };
  lines.forEach((line, at) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : null;
    if (kind !== "added") left += 1;
    if (kind !== "removed") right += 1;
    const row = make("tr", { class: kind }, make("td", { class: "line" }, kind === "added" ? "" : String(left)), make("td", { class: "line" }, kind === "removed" ? "" : String(right)), make("td", { class: "text" }, line));
    if (near[at]) { unfold(); body.append(row); } else folded.push(row);
  });
  unfold();
  return make("div", { class: "code diff", tabindex: "0", role: "region", "aria-label": "difference" }, make("table", {}, body));
}

// The task explorer. What is chosen stands in the address, so that a link leads to it and Back leads away from it.
{
  const step = 100;
  let most = step;
  const fields = [
    ["text", "Task or repository"], ["track", "Track"], ["outcome", "Outcome"], ["model", "Of model"],
    ["repository", "Repository"], ["jdk", "JDK"], ["reason", "Reason"], ["order", "Order"],
  ];
  const values = (value, numbers) => [...new Set(page.tasks.flatMap(value))].sort((one, other) => numbers ? one - other : String(one).localeCompare(String(other)));
  const options = {
    track: values(task => [task.track]).map(name => [name, name]),
    outcome: categories.map(name => [name, name]),
    // Names, not places: a link stays right when another report has other models. Samples follow their model.
    model: groups.flatMap(({ runs, samples, name }) => [...(samples ? [[name, name]] : []), ...runs.map(place => [runName(place), (samples ? "– " : "") + runName(place)])]),
    repository: values(task => [task.repository]).map(name => [name, name]),
    jdk: values(task => [task.jdk], true).map(number => [String(number), String(number)]),
    reason: values(task => task.models.flatMap(one => one.why)).map(name => [name, name]),
    order: [["", "task"], ["repository", "repository"], ["newest", "newest first"], ["apart", "models furthest apart"], ["hard", "fewest successes"]],
  };
  const inputs = {};
  for (const [name, label] of fields) {
    const input = name === "text" ? make("input", { type: "search", autocomplete: "off" }) : make("select", {});
    input.id = "by-" + name;
    if (options[name]) input.append(...(name === "order" ? [] : [make("option", { value: "" }, "all")]), ...options[name].map(([value, text]) => make("option", { value }, text)));
    input.addEventListener("input", () => { most = step; list(); show(); remember(); });
    inputs[name] = input;
    document.getElementById("filters").append(make("label", {}, label, input));
  }
  document.getElementById("letters").append(...categories.map(name => make("li", {}, letters(name[0].toUpperCase()), " " + name)), make("li", { class: "muted" }, "A letter for each test method" + (groups.some(group => group.samples) ? ", a line for each of up to four samples; a sample counts if each method is a Success" : "")));

  const successes = one => [...one.is].filter(letter => letter === "S").length / one.is.length;
  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
  // Gold competes with no model. It counts where it is chosen, or alone in the report.
  const competes = groups.some(group => !group.gold);
  const rivals = task => task.models.filter(one => !competes || !page.runs[one.run].gold);
  // A model's rate is the mean of its samples'.
  const rates = task => groups.map(({ runs }) => rivals(task).filter(one => runs.includes(one.run)).map(successes)).filter(found => found.length).map(mean);
  const spread = task => { const found = rates(task); return found.length ? Math.max(...found) - Math.min(...found) : 0; };
  // A task that no model has stands last.
  const hard = task => { const found = rates(task); return found.length ? mean(found) : 2; };
  const rank = task => task.segment === "Older" ? "" : task.segment;
  const orders = {
    repository: (one, other) => one.repository.localeCompare(other.repository),
    newest: (one, other) => rank(other).localeCompare(rank(one)),
    apart: (one, other) => spread(other) - spread(one),
    hard: (one, other) => hard(one) - hard(other),
  };

  const groupOf = new Map(groups.flatMap(group => group.runs.map(place => [place, group])));
  const chosen = () => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]).filter(([, value]) => value));
  function fitting() {
    const { text, track, outcome, model, repository, jdk, reason, order } = chosen();
    const wanted = text ? text.toLowerCase() : "";
    const letter = outcome ? outcome[0].toUpperCase() : "";
    const fits = page.tasks.filter(task => {
      if (wanted && !(task.task + " " + task.repository).toLowerCase().includes(wanted)) return false;
      if ((track && task.track !== track) || (repository && task.repository !== repository) || (jdk && String(task.jdk) !== jdk)) return false;
      if (!model && !letter && !reason) return true;
      const of = model ? task.models.filter(one => runName(one.run) === model || groupOf.get(one.run).name === model) : rivals(task);
      // One and the same model has to show both outcome and reason.
      return of.some(one => (!letter || one.is.includes(letter)) && (!reason || one.why.includes(reason)));
    });
    return orders[order] ? fits.sort(orders[order]) : fits;
  }

  const table = document.getElementById("tasks");
  table.tHead.append(make("tr", {}, ["Task", "Repository", "Track", "JDK", "Half-year"].map(name => make("th", { scope: "col" }, name)),
    groups.map(({ place, name }) => make("th", { scope: "col" }, make("span", { class: "sideways" }, swatch(place), name)))));
  // More samples than these have no room in a cell.
  const mostSamples = 4;
  // What a model comes to in a task: a letter for each method, of each sample in a line of its own.
  function cellOf({ runs, samples }, byRun) {
    const found = runs.map(place => byRun.get(place)).filter(one => one);
    if (!found.length) return "–";
    if (!samples) return letters(found[0].is);
    const resolved = found.filter(one => successes(one) === 1).length;
    const said = `${resolved} of ${number(found.length, "sample", "samples")} succeed`;
    return [make("small", {}, said), found.length <= mostSamples ? found.map(one => make("div", { class: "of-sample", title: runName(one.run) }, letters(one.is))) : null].flat();
  }
  function show() {
    const fits = fitting();
    table.tBodies[0].replaceChildren(...fits.slice(0, most).map(task => {
      const byRun = new Map(task.models.map(one => [one.run, one]));
      return make("tr", {},
        make("td", { "data-label": "Task" }, make("a", { href: addressOf(task.task) }, task.task)), make("td", { "data-label": "Repository" }, task.repository), make("td", { "data-label": "Track" }, task.track),
        make("td", { "data-label": "JDK" }, String(task.jdk)), make("td", { "data-label": "Half-year" }, task.segment),
        groups.map(group => make("td", { "data-label": group.name }, cellOf(group, byRun))));
    }));
    document.getElementById("shown").textContent = fits.length > most ? `${most} of ${fits.length} tasks shown` : `${fits.length} ${fits.length === 1 ? "task" : "tasks"}`;
    document.getElementById("more").hidden = fits.length <= most;
  }
  document.getElementById("more").addEventListener("click", () => { most += step; show(); });

  function list() {
    const query = new URLSearchParams(chosen()).toString();
    listed = query ? "tasks?" + query : "";
  }
  // A browser may refuse, as some do for files and for many changes at once. Filters work all the same.
  function remember() {
    try { history.replaceState(null, "", "#" + (listed || "explorer")); } catch (error) { return; }
  }
  // What the address says: a task, a choice of tasks, or a place in the page.
  const places = new Map(page.tasks.map((task, place) => [task.task, place]));
  let scrolled = 0;
  // What had the focus when a task opened, and that task.
  let [origin, opened] = [null, null];
  function route(event) {
    const address = location.hash.slice(1);
    const [kind, rest] = [address.slice(0, address.search(/[=?]/) + 1), address.slice(address.search(/[=?]/) + 1)];
    const [overview, place] = [document.getElementById("overview"), document.getElementById("task")];
    let name = null;
    // A damaged address leads to the overview.
    if (kind === "task=") try { name = decodeURIComponent(rest); } catch (error) { name = null; }
    const task = page.inline && name !== null && places.has(name) ? stored("t" + places.get(name)) : null;
    if (task) {
      if (!overview.hidden) {
        scrolled = scrollY;
        origin = document.activeElement;
      }
      opened = task.task;
      overview.hidden = true;
      place.hidden = false;
      const back = make("a", { href: "#" + (listed || "explorer") }, "← All tasks");
      back.addEventListener("click", event => { if (history.length > 1 && place.dataset.from) { event.preventDefault(); history.back(); } });
      place.replaceChildren(make("nav", { class: "crumbs" }, back));
      place.dataset.from = event ? "list" : "";
      document.title = task.task + " – Scores";
      showTask(task, place);
      scrollTo(0, 0);
      place.focus({ preventScroll: true });
      return;
    }
    const back = overview.hidden;
    overview.hidden = false;
    place.hidden = true;
    place.replaceChildren();
    document.title = "Scores";
    if (kind === "tasks?") {
      const query = new URLSearchParams(rest);
      for (const [field, input] of Object.entries(inputs)) input.value = query.get(field) || "";
      for (const input of Object.values(inputs)) if (input.selectedIndex === -1) input.selectedIndex = 0;
    }
    list();
    show();
    if (back) refocus();
    if (back && scrolled) scrollTo(0, scrolled);
    else if (kind === "tasks?") document.getElementById("explorer").scrollIntoView();
    // Who comes back from a task's own page goes on with the keyboard at the list, not at the top of the page.
    if (!event && kind === "tasks?") document.getElementById("h-explorer").focus({ preventScroll: true });
  }
  // The link that opened a task has the focus again. The table's links are new ones by then.
  function refocus() {
    const links = [...table.querySelectorAll("a")];
    const there = origin && origin !== document.body && origin.isConnected ? origin : links.find(link => link.textContent === opened);
    (there || document.getElementById("h-explorer")).focus({ preventScroll: true });
  }
  addEventListener("hashchange", route);
  list();
  show();
  route(null);
}

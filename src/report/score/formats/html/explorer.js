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
    model: page.runs.map((_, place) => [String(place), runName(place)]),
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
    input.addEventListener("input", () => { most = step; remember(); show(); });
    inputs[name] = input;
    document.getElementById("filters").append(make("label", {}, label, input));
  }
  document.getElementById("letters").append(...categories.map(name => make("li", {}, letters(name[0].toUpperCase()), " " + name)), make("li", { class: "muted" }, "A letter for each test method"));

  const successes = one => [...one.is].filter(letter => letter === "S").length / one.is.length;
  const spread = task => { const rates = task.models.map(successes); return Math.max(...rates) - Math.min(...rates); };
  const hard = task => task.models.reduce((sum, one) => sum + successes(one), 0) / task.models.length;
  const rank = task => task.segment === "Older" ? "" : task.segment;
  const orders = {
    repository: (one, other) => one.repository.localeCompare(other.repository),
    newest: (one, other) => rank(other).localeCompare(rank(one)),
    apart: (one, other) => spread(other) - spread(one),
    hard: (one, other) => hard(one) - hard(other),
  };

  const chosen = () => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]).filter(([, value]) => value));
  function fitting() {
    const { text, track, outcome, model, repository, jdk, reason, order } = chosen();
    const wanted = text ? text.toLowerCase() : "";
    const letter = outcome ? outcome[0].toUpperCase() : "";
    const fits = page.tasks.filter(task => {
      if (wanted && !(task.task + " " + task.repository).toLowerCase().includes(wanted)) return false;
      if ((track && task.track !== track) || (repository && task.repository !== repository) || (jdk && String(task.jdk) !== jdk)) return false;
      const of = model ? task.models.filter(one => String(one.run) === model) : task.models;
      // One and the same model has to show both outcome and reason.
      return of.some(one => (!letter || one.is.includes(letter)) && (!reason || one.why.includes(reason)));
    });
    return orders[order] ? fits.sort(orders[order]) : fits;
  }

  const table = document.getElementById("tasks");
  table.tHead.append(make("tr", {}, ["Task", "Repository", "Track", "JDK", "Half-year"].map(name => make("th", { scope: "col" }, name)),
    page.runs.map((_, place) => make("th", { scope: "col" }, make("span", { class: "sideways" }, swatch(place), runName(place))))));
  function show() {
    const fits = fitting();
    table.tBodies[0].replaceChildren(...fits.slice(0, most).map(task => {
      const byRun = new Map(task.models.map(one => [one.run, one]));
      return make("tr", {},
        make("td", { "data-label": "Task" }, make("a", { href: addressOf(task.task) }, task.task)), make("td", { "data-label": "Repository" }, task.repository), make("td", { "data-label": "Track" }, task.track),
        make("td", { "data-label": "JDK" }, String(task.jdk)), make("td", { "data-label": "Half-year" }, task.segment),
        page.runs.map((_, place) => make("td", { "data-label": runName(place) }, byRun.has(place) ? letters(byRun.get(place).is) : "–")));
    }));
    document.getElementById("shown").textContent = fits.length > most ? `${most} of ${fits.length} tasks shown` : `${fits.length} ${fits.length === 1 ? "task" : "tasks"}`;
    document.getElementById("more").hidden = fits.length <= most;
  }
  document.getElementById("more").addEventListener("click", () => { most += step; show(); });

  function remember() {
    const query = new URLSearchParams(chosen()).toString();
    history.replaceState(null, "", "#" + (query ? "tasks?" + query : "explorer"));
  }
  // What the address says: a task, a choice of tasks, or a place in the page.
  const places = new Map(page.tasks.map((task, place) => [task.task, place]));
  let scrolled = 0;
  function route(event) {
    const address = location.hash.slice(1);
    const [kind, rest] = [address.slice(0, address.search(/[=?]/) + 1), address.slice(address.search(/[=?]/) + 1)];
    const [overview, place] = [document.getElementById("overview"), document.getElementById("task")];
    let name = null;
    // A damaged address leads to the overview.
    if (kind === "task=") try { name = decodeURIComponent(rest); } catch (error) { name = null; }
    const task = page.inline && name !== null && places.has(name) ? stored("t" + places.get(name)) : null;
    if (task) {
      if (!overview.hidden) scrolled = scrollY;
      overview.hidden = true;
      place.hidden = false;
      const back = make("a", { href: "#explorer" }, "← All tasks");
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
    show();
    if (back && scrolled) scrollTo(0, scrolled);
    else if (kind === "tasks?") document.getElementById("explorer").scrollIntoView();
  }
  addEventListener("hashchange", route);
  show();
  route(null);
}

// A task's own page.
{
  const task = stored("t0");
  document.title = task.task + " – Scores";
  const to = (id, text) => id ? make("a", { href: id + ".html" }, text) : null;
  document.getElementById("crumbs").append(make("a", { href: "../index.html#explorer" }, "← All tasks"), make("span", {}, to(page.before, "← " + page.before), page.before && page.after ? "  ·  " : "", to(page.after, page.after + " →")));
  showTask(task, document.getElementById("task"));
}

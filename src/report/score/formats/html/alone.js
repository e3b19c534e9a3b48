// A task's own page.
{
  const task = stored("t0");
  document.title = task.task + " – Scores";
  // The list as it was left, which the address hands on.
  const from = location.hash.startsWith("#from=tasks?") ? location.hash.slice(6) : "";
  const to = (id, text) => id ? make("a", { href: id + ".html" + (from ? "#from=" + from : "") }, text) : null;
  document.getElementById("crumbs").append(make("a", { href: "../index.html#" + (from || "explorer") }, "← All tasks"), make("span", {}, to(page.before, "← " + page.before), page.before && page.after ? "  ·  " : "", to(page.after, page.after + " →")));
  showTask(task, document.getElementById("task"));
}

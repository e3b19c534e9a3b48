// What the Tab key must reach, in the page's order, and how the focus shows. A test evaluates this in a page.
globalThis.reached = () => {
  const kinds = "a[href], button, input, select, summary, [tabindex='0']";
  // Of radio buttons Tab reaches the chosen one; arrows lead to the others.
  const chosen = one => one.type !== "radio" || one.checked;
  return [...document.querySelectorAll(kinds)].filter(one => one.checkVisibility() && !one.disabled && chosen(one));
};
globalThis.called = one => one.id || one.getAttribute("aria-label") || one.textContent.trim();
globalThis.focused = () => {
  const one = document.activeElement;
  // A radio button is drawn by its label.
  const drawn = one.type === "radio" ? one.closest("label") : one;
  const [style, box] = [getComputedStyle(drawn), drawn.getBoundingClientRect()];
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return { place: reached().indexOf(one), name: called(one), seen: outlined && box.bottom > 0 && box.top < innerHeight };
};
// `listed` is a name of the page's own.
globalThis.tasksListed = () => [...document.querySelectorAll("#tasks tbody a")].map(link => link.textContent);
null

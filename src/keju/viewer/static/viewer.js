// Keju's pages work without this file; it adds shortcuts, short addresses and live numbers.
"use strict";

function typing(target) {
  return target.matches("input, select, textarea") || target.isContentEditable;
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

// In a list, j and k move between the rows; on a reply, they open the next and previous reply.
function move(step) {
  const links = [...document.querySelectorAll("[data-list] td.id a")];
  if (!links.length) return follow(step > 0 ? 'a[rel="next"]' : 'a[rel="prev"]');
  const place = links.indexOf(document.activeElement);
  const next = links[Math.min(links.length - 1, Math.max(0, place + (place < 0 ? 1 : step)))];
  next.focus();
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  ArrowRight: () => follow('a[rel="next"]'),
  ArrowLeft: () => follow('a[rel="prev"]'),
  u: () => follow(".crumbs a:last-of-type"),
  "/": () => {
    const field = document.querySelector("[data-search]");
    if (field) field.focus();
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  if (typing(target)) return event.key === "Escape" ? target.blur() : undefined;
  // Arrow keys scroll a focused element that is wider than the screen, such as a table.
  const scrolls = target.scrollWidth > target.clientWidth && target !== document.body;
  if (event.key.startsWith("Arrow") && scrolls) return;
  if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key]();
  }
});

// Leave empty fields out of the address.
document.addEventListener("submit", (event) => {
  for (const field of event.target.elements) {
    if (field.name && !field.value) field.disabled = true;
  }
});
window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form [disabled]")) field.disabled = false;
});

// Update the numbers of a run that is going on.
const live = document.querySelector("[data-events]");
if (live) {
  const source = new EventSource(live.dataset.events);
  source.addEventListener("change", (event) => {
    const held = live.contains(document.activeElement)
      ? document.activeElement.getAttribute("href")
      : null;
    live.innerHTML = JSON.parse(event.data);
    if (held) live.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
  });
  source.addEventListener("done", () => {
    source.close();
    location.reload();
  });
}

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

// The titles of sortable tables become buttons; a title that is pressed again turns the order around.
function cellValue(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text);
  return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
}

function compareValues(left, right, sign) {
  if (left === null || right === null) return (left === null) - (right === null);
  if (typeof left === typeof right && typeof left === "number") return sign * (left - right);
  return sign * String(left).localeCompare(String(right));
}

function sortRows(table, title, column) {
  const isNumber = title.classList.contains("number");
  const current = title.getAttribute("aria-sort");
  const descending = current ? current === "ascending" : isNumber;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  title.setAttribute("aria-sort", descending ? "descending" : "ascending");
  for (const body of table.tBodies) {
    if ("unsorted" in body.dataset) continue;
    const keyed = [...body.rows].map((row) => [cellValue(row, column), row]);
    keyed.sort((a, b) => compareValues(a[0], b[0], descending ? -1 : 1));
    body.append(...keyed.map((pair) => pair[1]));
  }
}

for (const table of document.querySelectorAll("[data-sortable]")) {
  [...table.tHead.rows[0].cells].forEach((title, column) => {
    if ("unsorted" in title.dataset) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...title.childNodes);
    title.append(button);
    button.addEventListener("click", () => sortRows(table, title, column));
  });
}

// The search of the first page hides rows while you type; Enter searches on the server.
const rowFilter = document.querySelector("[data-filter-rows]");
if (rowFilter) {
  rowFilter.addEventListener("input", () => {
    const words = rowFilter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll("tr[data-words]")) {
      row.hidden = !words.every((word) => row.dataset.words.includes(word));
    }
    const few = document.querySelector("details.few");
    if (few && words.length) few.open = true;
  });
}

// The number of selected runs is next to the button that compares them.
const picked = document.querySelector("[data-picked]");
if (picked) {
  const initial = picked.textContent;
  const count = () => {
    const chosen = document.querySelectorAll('.runs input[name="run"]:checked').length;
    picked.textContent = chosen ? `${chosen} ${picked.dataset.text}` : initial;
  };
  document.addEventListener("change", count);
  window.addEventListener("pageshow", count);
}

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

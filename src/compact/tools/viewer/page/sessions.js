// The list of sessions, with search.

import { el, refill, svg } from "./dom.js";
import { plural, short, when } from "./format.js";
import { VirtualList } from "./virtual.js";

export class SessionList {
  constructor(box, search, counter, open) {
    this.counter = counter;
    this.search = search;
    this.all = [];
    this.key = null;
    this.list = new VirtualList(box, {
      height: 64, role: "option", draw: (row) => this.draw(row), chosen: (index) => open(this.list.items[index].key),
    });
    search.addEventListener("input", () => this.filter());
    search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); box.focus(); this.list.choose(Math.max(0, this.list.active)); }
      if (event.key === "Escape") { search.value = ""; this.filter(); }
    });
  }

  show(rows, key) {
    this.all = rows;
    this.key = key;
    this.filter();
  }

  filter() {
    const wanted = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const words = (row) => `${row.id} ${row.model ?? ""} ${row.source}`.toLowerCase();
    const found = wanted.length ? this.all.filter((row) => wanted.every((word) => words(row).includes(word))) : this.all;
    this.counter.textContent = wanted.length ? `${found.length} of ${plural(this.all.length, "session")}` : plural(this.all.length, "session");
    this.list.show(found, { active: found.findIndex((row) => row.key === this.key) });
    if (!found.length && this.all.length) refill(this.list.sheet, el("div", { class: "empty", text: "No session matches." }));
  }

  draw(row) {
    const facts = [row.steps ? plural(row.steps, "step") : null, plural(row.calls, "call"), when(row.last_at)].filter(Boolean).join(" · ");
    const badge = row.errors ? el("span", { class: "badge bad", text: plural(row.errors, "error") })
      : row.source === "ingest" ? el("span", { class: "badge", text: "ingest" }) : null;
    return el("div", { class: "session-row", title: row.id },
      el("div", { class: "name" }, row.id, badge), spark(row),
      el("div", { class: "facts", text: row.window ? `${short(row.tokens)} / ${short(row.window)} · ${facts}` : facts }));
  }
}

/** The newest sizes as a small line. */
function spark(row) {
  const [width, height] = [74, 26];
  const top = Math.max(row.window, ...row.curve, 1);
  const step = width / Math.max(1, row.curve.length - 1);
  const points = row.curve.map((tokens, n) => `${(n * step).toFixed(1)},${(height - 1 - (tokens / top) * (height - 3)).toFixed(1)}`);
  return svg("svg", { width, height, "aria-hidden": "true" },
    svg("polyline", { points: points.join(" "), class: "curve" }));
}

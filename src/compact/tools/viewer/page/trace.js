// The trace tree: one row for each call, below it what happened in it, with a bar for the time that it took.

import { el } from "./dom.js";
import { rows, took } from "./model.js";
import { VirtualList } from "./virtual.js";

export class Trace {
  /** `chosen(node, root)`: a row was picked. */
  constructor(chosen) {
    this.roots = [];
    this.open = new Set();
    this.wanted = () => true;
    this.node = el("div", { id: "trace", class: "trace scroll", role: "tree", "aria-label": "Trace" });
    this.list = new VirtualList(this.node, {
      height: 28, role: "treeitem", draw: (row, index) => this.draw(row, index),
      chosen: (index) => { const row = this.list.items[index]; this.at = row.node.id; chosen(row.node, row.root); },
      key: (event, index) => this.pressed(event, index),
    });
    this.node.addEventListener("click", (event) => {
      if (event.target.closest(".twist")) this.toggle(this.list.at(event));
    });
    this.node.addEventListener("dblclick", (event) => {
      if (!event.target.closest(".twist")) this.toggle(this.list.at(event));
    });
  }

  show(roots, { follow = false } = {}) {
    this.roots = roots.filter(this.wanted);
    this.longest = this.roots.reduce((most, root) => Math.max(most, root.end - root.start || 0), 0) || 1;
    const items = rows(this.roots, (node) => this.open.has(node.id));
    this.list.show(items, { follow, active: items.findIndex((row) => row.node.id === this.at) });
  }

  /** Opens a call and makes it the active row. */
  reveal(node) {
    if (!this.roots.includes(node)) return false;
    this.open.add(node.id);
    this.at = node.id;
    this.show(this.roots);
    this.list.choose(this.list.active, { quiet: true });
    return true;
  }

  toggle(index, open) {
    const row = this.list.items[index];
    if (!row || !row.node.children.length) return;
    const wanted = open ?? !this.open.has(row.node.id);
    this.open[wanted ? "add" : "delete"](row.node.id);
    this.show(this.roots);
  }

  pressed(event, index) {
    const row = this.list.items[index];
    if (!row) return false;
    const isOpen = this.open.has(row.node.id);
    const hasChildren = row.node.children.length > 0;
    if (event.key === "ArrowRight") {
      if (hasChildren && !isOpen) this.toggle(index, true);
      else if (hasChildren) this.list.choose(index + 1);
      return true;
    }
    if (event.key === "ArrowLeft") {
      if (hasChildren && isOpen) this.toggle(index, false);
      else if (row.depth > 1) {
        let up = index;
        while (up > 0 && this.list.items[up].depth >= row.depth) up -= 1;
        this.list.choose(up);
      }
      return true;
    }
    if (event.key === "Enter" || event.key === " ") { this.toggle(index); return true; }
    return false;
  }

  draw({ node, depth, root, place, of }) {
    const isRoot = depth === 1;
    const kind = isRoot ? (node.step ? "step" : "call") : String(node.kind).replace(/^compact\./, "");
    const safe = /^[a-z_]+$/.test(kind) ? kind : "span";
    const hasChildren = node.children.length > 0;
    const isOpen = this.open.has(node.id);
    const label = isRoot ? `${node.title} ${node.number}` : node.title;
    const row = el("div", {
      class: `tree-row${isRoot ? " call" : ""}${node.bad && !hasChildren ? " bad" : ""}`,
      "aria-level": depth, "aria-posinset": place, "aria-setsize": of,
      "aria-expanded": hasChildren ? String(isOpen) : null, data: { kind: safe, step: node.step || "" },
    },
    el("div", { class: "what", style: { "padding-left": `${(depth - 1) * 18}px` } },
      el("span", { class: "twist", "aria-hidden": "true", text: hasChildren ? (isOpen ? "▼" : "▶") : "" }),
      el("span", { class: `pip k-${safe}`, "aria-hidden": "true" }),
      el("span", { class: "label", text: label }),
      el("span", { class: "detail", text: node.detail }),
      hasChildren && node.bad ? el("span", { class: "badge bad", text: "error" }) : null,
      hasChildren && !node.bad && node.warned ? el("span", { class: "badge", text: "warning" }) : null),
    this.bar(node, root, isRoot, safe),
    el("span", { class: "took", text: took(node) }));
    return row;
  }

  /** A call's bar is measured against the longest call; what is in a call is placed within that call. */
  bar(node, root, isRoot, kind) {
    const span = isRoot ? this.longest : root.end - root.start || 1;
    const from = isRoot ? 0 : (node.start - root.start) / span;
    const width = (node.end - node.start || 0) / span;
    const clamp = (share) => `${(Math.max(0, Math.min(1, share)) * 100).toFixed(2)}%`;
    return el("span", { class: "track", "aria-hidden": "true" },
      el("i", { class: `k-${kind}`, style: { left: clamp(Math.min(from, 0.995)), width: clamp(Math.min(width, 1 - from)) } }));
  }
}

// A long list of which only the visible rows exist. Rows have one height; the list keeps the focus, a row is active.

import { el, soon } from "./dom.js";

const SPARE = 8;

/**
 * `draw(item, index)` gives a row's element; `chosen(index)` is told when the active row changes by hand;
 * `key(event, index)` may handle a key and return true.
 */
export class VirtualList {
  constructor(box, { height, role, draw, chosen, key }) {
    Object.assign(this, { box, height, draw, chosen, key, items: [], active: -1, drawn: 0 });
    this.role = role;
    this.sheet = el("div", { class: "virtual", role: "presentation" });
    box.replaceChildren(this.sheet);
    box.tabIndex = 0;
    this.redraw = soon(() => this.render());
    box.addEventListener("scroll", this.redraw, { passive: true });
    box.addEventListener("keydown", (event) => this.pressed(event));
    box.addEventListener("click", (event) => {
      const index = this.at(event);
      if (index < this.items.length) this.choose(index);
    });
    new ResizeObserver(this.redraw).observe(box);
  }

  /** Other items. A list that was scrolled to its end stays there when `follow` is set. */
  show(items, { follow = false, active = this.active } = {}) {
    const atEnd = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - this.height;
    this.items = items;
    this.active = Math.min(active, items.length - 1);
    this.sheet.style.height = `${items.length * this.height}px`;
    if (follow && atEnd) this.box.scrollTop = this.box.scrollHeight;
    this.redraw();
  }

  /** Makes a row the active one and brings it into view; by hand unless `quiet`. */
  choose(index, { quiet = false } = {}) {
    if (!this.items.length) return;
    this.active = Math.max(0, Math.min(index, this.items.length - 1));
    this.reveal(this.active);
    this.render();
    if (!quiet) this.chosen?.(this.active);
  }

  /** The index of the row under the pointer. By its place: the row itself may have been drawn anew since the button went down. */
  at(event) {
    return Math.floor((event.clientY - this.box.getBoundingClientRect().top - this.box.clientTop + this.box.scrollTop) / this.height);
  }

  reveal(index) {
    const top = index * this.height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.height > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + this.height - this.box.clientHeight;
    }
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.key?.(event, this.active)) return event.preventDefault();
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
    const moves = {
      ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page,
      Home: 0, End: this.items.length - 1,
    };
    if (!(event.key in moves)) return undefined;
    event.preventDefault();
    return this.choose(moves[event.key]);
  }

  render() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - SPARE);
    const last = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + SPARE);
    const rows = [];
    for (let index = first; index < last; index += 1) {
      const row = this.draw(this.items[index], index);
      row.id = `${this.box.id}-${index}`;
      row.dataset.index = index;
      row.classList.add("row");
      row.style.top = `${index * this.height}px`;
      row.setAttribute("role", this.role);
      row.setAttribute("aria-selected", index === this.active ? "true" : "false");
      if (this.role !== "treeitem") {
        row.setAttribute("aria-posinset", index + 1);
        row.setAttribute("aria-setsize", this.items.length);
      }
      rows.push(row);
    }
    this.sheet.replaceChildren(...rows);
    this.drawn = rows.length;
    const isDrawn = this.active >= first && this.active < last;
    if (isDrawn) this.box.setAttribute("aria-activedescendant", `${this.box.id}-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

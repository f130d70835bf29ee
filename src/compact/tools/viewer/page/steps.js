// A step, message by message: before on the left, after on the right, the level of detail between them.

import * as api from "./api.js";
import { el, refill } from "./dom.js";
import { count, plural, short } from "./format.js";
import { VirtualList } from "./virtual.js";

const MEANING = {
  kept: "as they were", offloaded: "a preview stands, the whole is in the archive", shrunk: "a pointer stands, the whole is in the archive",
  cut: "head and tail stand", summarized: "folded into the summary", pruned: "gone from the context, in the archive",
  mended: "repaired, so that a provider takes them", marker: "added, so that roles alternate or the user's words stay",
};

export class Steps {
  /** `chosen(pair, comparison)`: a line was picked; `opened(step)`: another step is looked at. */
  constructor(chosen, opened) {
    this.opened = opened;
    this.step = 0;
    this.hidden = new Set();
    this.pick = el("div", { class: "pick", role: "group", "aria-label": "Steps" });
    this.scales = el("div", { class: "scales" });
    this.levels = el("div", { class: "chips levels", role: "group", "aria-label": "Levels shown" });
    this.note = el("p", { class: "quiet note" });
    this.sides = el("div", { class: "sides", "aria-hidden": "true" });
    this.box = el("div", { id: "pairs", class: "scroll", role: "listbox", "aria-label": "Messages before and after" });
    this.empty = el("div", { class: "empty", hidden: true });
    this.node = el("div", { class: "steps" }, this.pick, this.scales, this.levels, this.note, this.sides, this.box, this.empty);
    this.list = new VirtualList(this.box, {
      height: 26, role: "option", draw: (pair) => this.draw(pair), chosen: (index) => chosen(this.list.items[index], this.found),
    });
  }

  /** The steps of a session, oldest first, as the server lists them. */
  offer(key, rows, isArchived) {
    if (key !== this.key) { this.key = key; this.step = 0; this.found = null; }
    this.rows = rows;
    refill(this.pick, ...rows.map((row) => el("button", {
      class: "chip", "aria-pressed": String(row.step === this.step), data: { step: row.step },
      title: row.problem ?? row.committed_at, on: { click: () => this.open(row.step) },
      text: `Step ${row.step}${row.tokens_after ? ` → ${short(row.tokens_after)}` : ""}`,
    })));
    if (!rows.length) {
      this.say(isArchived ? "No step yet" : "No archive",
        isArchived ? "Nothing has been taken out of this session's context so far." : "These events arrived at /ingest. Open the session's archive to see its steps: compact view ARCHIVE.");
    }
  }

  async open(step) {
    this.step = step;
    const key = this.key;
    for (const chip of this.pick.children) chip.setAttribute("aria-pressed", String(Number(chip.dataset.step) === step));
    this.pick.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.opened(step);
    if (this.found?.step === step && this.found.key === key) return this.found;
    try {
      const found = await api.step(key, step);
      if (this.key !== key || this.step !== step) return null;
      this.found = { ...found, key };
      this.hidden.clear();
      this.show();
    } catch (error) {
      this.found = null;
      this.say(`Step ${step} cannot be shown`, error.message);
    }
    return this.found;
  }

  /** Brings the line of a message before the step into view and picks it. */
  find(place) {
    this.hidden.clear();
    this.show();
    const index = this.list.items.findIndex(([before]) => before === place);
    if (index >= 0) { this.box.focus(); this.list.choose(index); }
  }

  say(title, words) {
    for (const part of [this.scales, this.levels, this.note, this.sides, this.box]) part.hidden = true;
    this.empty.hidden = false;
    refill(this.empty, el("h2", { text: title }), el("p", { text: words }));
  }

  show() {
    const { found } = this;
    for (const part of [this.scales, this.levels, this.sides, this.box]) part.hidden = false;
    this.empty.hidden = true;
    const most = Math.max(found.tokens_before, found.tokens_after, 1);
    const scale = (side, total) => el("div", { class: "scale", role: "img", "aria-label": `${count(total)} tokens ${side}` },
      ...found.levels.filter((level) => level[side]).map((level) => el("i", {
        class: `bg-${level.level}`, title: `${level.level}: ${count(level[side])} tokens`, style: { width: `${(level[side] / most) * 100}%` },
      })));
    refill(this.scales,
      el("span", { class: "quiet", text: "before" }), scale("before", found.tokens_before), el("span", { class: "number", text: `${count(found.tokens_before)} tokens` }),
      el("span", { class: "quiet", text: "after" }), scale("after", found.tokens_after), el("span", { class: "number", text: `${count(found.tokens_after)} tokens` }));
    refill(this.levels, ...found.levels.map((level) => el("button", {
      class: "chip", "aria-pressed": String(!this.hidden.has(level.level)), data: { level: level.level },
      title: `${plural(level.messages, "message")} ${MEANING[level.level]}: ${count(level.before)} → ${count(level.after)} tokens`,
      on: { click: () => this.toggle(level.level) },
    }, el("i", { class: `swatch bg-${level.level}` }), `${level.messages} ${level.level}`)));
    refill(this.sides, el("span", { text: `Before: ${plural(found.before.length, "message")}` }), el("span"), el("span", { text: `After: ${plural(found.after.length, "message")}` }));
    const notes = [
      found.exact ? "" : "An earlier version wrote this step's record: where messages were repaired, what stood is a guess.",
      found.given === found.before.length ? "" : `The host's list had ${plural(found.given, "message")}; repairs made it ${count(found.before.length)}. Restoring the step gives the host's list.`,
    ];
    this.note.textContent = notes.filter(Boolean).join(" ");
    this.note.hidden = !this.note.textContent;
    const shown = found.pairs.filter(([, , level]) => !this.hidden.has(level));
    this.list.show(shown, { active: -1 });
  }

  toggle(level) {
    this.hidden[this.hidden.has(level) ? "delete" : "add"](level);
    this.show();
  }

  draw([before, after, level]) {
    const { found } = this;
    return el("div", { class: "pair", data: { level } },
      side(found.before[before], before), el("span", { class: `level fg-${level}`, text: level }), side(found.after[after], after));
  }
}

function side(message, place) {
  if (!message) return el("span", { class: "side gone" }, el("i"));
  return el("span", { class: "side" },
    el("span", { class: "place", text: `#${place + 1}` }), el("span", { class: "role", text: message.role }),
    el("span", { class: "tools", text: message.tools.join(", ") }), el("span", { class: "size", text: count(message.tokens) }));
}

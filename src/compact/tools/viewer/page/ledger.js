// What people said in a session, and what stands of it. The words stay hidden until somebody asks for them.

import { el } from "./dom.js";
import { count, plural } from "./format.js";
import { VirtualList } from "./virtual.js";

const SOURCE = { user: "", host: "pinned", model: "by a model" };

export class Ledger {
  /** `chosen(entry)`: an entry was picked. */
  constructor(chosen) {
    this.note = el("p", { class: "quiet note" });
    this.box = el("div", { id: "entries", class: "scroll", role: "listbox", "aria-label": "What people said" });
    this.node = el("div", { class: "steps ledger" }, this.note, this.box);
    this.list = new VirtualList(this.box, { height: 26, role: "option", draw, chosen: (index) => chosen(this.list.items[index]) });
  }

  /** The entries of a session, oldest first, as the server lists them. */
  offer(entries, isArchived) {
    const standing = entries.filter((entry) => entry.status === "stands").length;
    const none = isArchived ? "Nothing that people said stands in a ledger so far: it begins with the first step." : "These events arrived at /ingest. Open the session's archive to see its ledger: compact view ARCHIVE.";
    this.note.textContent = entries.length ? `${count(standing)} of ${entries.length === 1 ? "1 entry" : `${count(entries.length)} entries`} stand. They are in the context unless their message still is.` : none;
    this.list.show(entries, { active: -1 });
  }
}

function draw(entry) {
  return el("div", { class: "entry", data: { status: entry.status, entry: entry.id } },
    el("span", { class: "place", text: entry.said_in || SOURCE[entry.source] }), el("span", { class: "kind", text: entry.kind }),
    el("span", { class: "state", text: entry.status }),
    el("span", { class: "quiet", text: [plural(entry.chars, "character"), entry.asked ? "with what was asked" : "", entry.masked ? `${count(entry.masked)} masked` : "", entry.said_in ? SOURCE[entry.source] : ""].filter(Boolean).join(", ") }));
}

// What is selected, in full. Words of a session stay hidden until somebody asks for them.

import * as api from "./api.js";
import { el, refill } from "./dom.js";
import { clock, count, duration, economy, percent, plural } from "./format.js";
import { took } from "./model.js";

const PATHS = /\/(?:tool_outputs|conversation_history)\/[A-Za-z0-9_-][A-Za-z0-9._-]*[A-Za-z0-9_-]/g;
const MANY = 400;
const kept = (k) => `${count(k.pinned)} pinned, ${plural(k.recent_turns, "recent turn")}, ${plural(k.tool_pairs, "tool pair")}`;

export class Inspector {
  /** `jump(step, place)`: show that archived message; `compare(step)`: show that step. */
  constructor(node, { jump, compare }) {
    Object.assign(this, { node, jump, compare, turn: 0 });
    this.shut = el("button", { class: "plain close", text: "Close", on: { click: () => this.clear() } });
    this.clear();
  }

  clear() {
    this.put(el("div", { class: "empty" }, el("h2", { text: "Nothing selected" }),
      el("p", { text: "Choose a row of the trace, a step in the chart or a message, to see what it says." })));
  }

  put(...children) {
    this.turn += 1;
    refill(this.node, this.shut, ...children);
    this.node.scrollTop = 0;
  }

  /** Reveals what the key r asks for: the first thing that is hidden. */
  reveal() {
    this.node.querySelector("button.reveal")?.click();
  }

  // --- a call, or an event

  showNode(key, node) {
    const event = node.event;
    const p = event?.properties ?? {};
    const status = node.running ? "running" : node.abandoned ? "ended without a word" : node.bad ? "error" : "ok";
    const header = el("header", {}, el("div", { class: "headline" },
      el("h2", { text: node.number ? `${node.title} ${node.number}` : node.title }), el("span", { class: `status ${node.abandoned ? "error" : status}`, text: status })),
    el("p", { class: "quiet", text: [clock(event?.started_at ?? node.children[0]?.event?.started_at), took(node), event?.name].filter(Boolean).join(" · ") }));
    const parts = [header];
    if (node.step) parts.push(section("Step", el("button", { class: "plain", text: `Compare before and after step ${node.step}`, on: { click: () => this.compare(node.step) } })));
    parts.push(...this.about(node, key));
    if (event) parts.push(this.raw(key, event));
    this.put(...parts);
  }

  about(node, key) {
    const event = node.event;
    const p = event?.properties ?? {};
    const find = (name) => (event?.name === name ? event : [...node.children].map((child) => child.event).find((each) => each?.name === name));
    const found = [];
    const decision = find("compact.trigger_decision");
    if (decision) found.push(this.decision(decision.properties));
    const estimate = find("compact.token_estimate");
    if (estimate) found.push(this.estimate(estimate.properties));
    const pruned = find("compact.pruned_messages");
    if (pruned) found.push(this.pruned(pruned.properties));
    const shown = ["compact.trigger_decision", "compact.token_estimate", "compact.pruned_messages"];
    if (event && !shown.includes(event.name) && Object.keys(p).length) found.push(section("Properties", facts(flat(p))));
    const summaries = event?.payload_chars ? [event] : node.children.map((child) => child.event).filter((each) => each?.name === "compact.summary_created" && each.payload_chars);
    for (const each of summaries) found.push(this.payload(key, each));
    return found;
  }

  decision(p) {
    const policy = p.policy ?? {};
    return section("Policy decision", facts({
      decided: p.triggered ? "act" : "do nothing", because: p.reason, note: p.note,
      trigger: policy.trigger_pct === undefined ? undefined : `at ${percent(policy.trigger_pct)} of the window`,
      buffer: policy.hard_cap_buffer === undefined ? undefined : `${count(policy.hard_cap_buffer)} tokens`,
      strategy: policy.strategy,
      money: economy(p.economy),
      "plans to keep": p.planned?.kept ? kept(p.planned.kept) : undefined,
      "may take": p.planned?.pruned_count === undefined ? undefined : plural(p.planned.pruned_count, "message"),
    }));
  }

  estimate(p) {
    const parts = Object.entries(p.breakdown ?? {});
    const most = Math.max(1, ...parts.map(([, tokens]) => tokens));
    return section("Tokens", facts({ model: p.model, counted: `${count(p.t_est)} of ${count(p.max_tokens)} (${percent(p.usage_pct ?? 0)})` }),
      el("div", { class: "bars" }, ...parts.map(([name, tokens]) => el("div", {},
        el("span", { class: "quiet", text: name.replaceAll("_", " ") }), el("span", {}, el("i", { style: { width: `${(tokens / most) * 100}%` } })), el("span", { text: count(tokens) })))));
  }

  pruned(p) {
    const layers = p.layers ?? {};
    return section("Counts", facts({
      tokens: `${count(p.tokens_before)} → ${count(p.tokens_after)}`, saved: `${count(p.tokens_before - p.tokens_after)} tokens`,
      "left the context": plural(p.pruned_count, "message"),
      kept: p.kept ? kept(p.kept) : undefined,
      "stands now": `${count(layers.pinned)} pinned, ${plural(layers.summary, "summary message")}, ${count(layers.recent)} recent`,
    }));
  }

  payload(key, event) {
    const title = event.name === "compact.summary_created" ? "Summary" : "Details";
    return section(title, this.veil(`${count(event.payload_chars)} characters`, async () => {
      const payload = (await api.event(key, event.n)).payload ?? {};
      const own = typeof payload.summary === "string" ? await this.ownSummary(key, [{ text: payload.summary }]) : null;
      if (own) return own;
      const words = Object.entries(payload).map(([name, value]) => this.words(key, name, typeof value === "string" ? value : JSON.stringify(value, null, 2)));
      return el("div", { class: "stack" }, ...words);
    }));
  }

  raw(key, event) {
    const box = el("details", {}, el("summary", { text: "Raw event" }));
    box.addEventListener("toggle", async () => {
      if (!box.open || box.children.length > 1) return;
      try {
        box.append(el("div", { class: "content" }, el("pre", { text: JSON.stringify(await api.event(key, event.n), null, 2) })));
      } catch (error) {
        box.append(el("p", { class: "quiet", text: error.message }));
      }
    }, { once: false });
    return el("section", {}, box);
  }

  // --- a message before and after a step

  showPair(key, found, [before, after, level]) {
    const one = found.before[before];
    const other = found.after[after];
    const subject = one ?? other;
    const header = el("header", {}, el("div", { class: "headline" }, el("h2", { text: `${subject.role} message` }), el("span", { class: `status fg-${level}`, text: level })),
      el("p", { class: "quiet", text: `step ${found.step} · ${found.dialect}` }));
    const sides = [];
    if (one) sides.push(this.side(key, found.step, "before", before, one));
    if (other && level !== "kept") sides.push(this.side(key, found.step, "after", after, other));
    if (other && level === "kept") sides.push(section("After", el("p", { class: "quiet", text: `The same message stands at #${after + 1}.` })));
    if (!other) sides.push(section("After", el("p", { class: "quiet", text: level === "summarized" ? "Its words are in the summary; the message itself is in the archive." : "It no longer stands in the context; the archive has it." })));
    if (!one) sides.unshift(section("Before", el("p", { class: "quiet", text: "It did not stand in the context." })));
    this.put(header, ...sides);
  }

  // --- an entry of the ledger

  showEntry(key, entry) {
    const header = el("header", {}, el("div", { class: "headline" }, el("h2", { text: entry.kind }), el("span", { class: `status ${entry.status}`, text: entry.status })),
      el("p", { class: "quiet", text: [entry.said_in ? `said in ${entry.said_in}` : "", entry.id].filter(Boolean).join(" · ") }));
    const about = section("Entry", facts({ "added by": { user: "read from the user's words", host: "pinned by the host", model: "proposed by a model" }[entry.source], "replaced by": entry.replaced_by, masked: entry.masked || undefined }));
    const words = section("Words", this.veil(`${count(entry.chars)} characters`, async () => {
      const found = await api.entry(key, entry.id);
      return el("div", { class: "stack" }, ...[this.words(key, "", found.text), found.answers ? this.words(key, "asked", found.answers) : null, found.was ? this.words(key, "before", found.was) : null].filter(Boolean));
    }));
    this.put(header, about, words);
  }

  side(key, step, name, place, message) {
    const title = `${name === "before" ? "Before" : "After"}: #${place + 1}, ${count(message.tokens)} tokens`;
    const hint = message.tools.length ? message.tools.join(", ") : message.role;
    return section(title, this.veil(hint, async () => {
      const { parts } = await api.message(key, step, name, place);
      return (await this.ownSummary(key, parts)) ?? this.parts(key, parts);
    }));
  }

  /** A message that is a summary of this session, with its citations; null for any other, and for one that only looks so. */
  async ownSummary(key, parts) {
    const text = parts.map((part) => part.text ?? "").join("\n");
    const opening = /^<COMPACT-SUMMARY v(\d+)>/.exec(text);
    if (!opening) return null;
    const step = Number(opening[1]);
    const found = await api.summary(key, step).catch(() => ({ summaries: [] }));
    const same = found.summaries.find((each) => each.text === text);
    return same ? this.summary(key, step, same) : null;
  }

  parts(key, parts) {
    return el("div", { class: "stack" }, ...parts.map((part) => {
      if (part.kind === "result") return el("div", { class: "stack" }, ...(part.parts.length ? part.parts : [{ kind: "text", text: "" }]).map((inner) => this.words(key, `${part.error ? "error" : "result"} of ${part.id}`, inner.text ?? "")));
      if (part.kind === "call") return this.words(key, `calls ${part.name}`, pretty(part.text));
      return this.words(key, part.kind, part.text);
    }));
  }

  /** A summary, line by line, with a way from each line to the message that it is about. */
  summary(key, step, found) {
    const lines = found.lines.map(({ text, message }) => el("div", {}, ...this.linked(key, text),
      message === null ? null : el("button", { class: "link cite", title: `Show message ${message + 1} in the archive`, text: `→ #${message + 1}`, data: { message }, on: { click: () => this.jump(step, message) } })));
    return el("div", { class: "stack" },
      facts({ writer: found.writer, strategy: found.strategy, "stands for": plural(found.input_messages, "message"), tokens: `${count(found.input_tokens)} → ${count(found.summary_tokens)}` }),
      el("div", { class: "content" }, el("div", { class: "lines" }, ...lines)),
      found.struck?.length ? section("Struck: named what the session did not contain", this.words(key, "", found.struck.join("\n"))) : null);
  }

  words(key, caption, text) {
    const body = el("pre", {}, ...this.linked(key, text));
    return el("div", { class: "content" }, caption ? el("div", { class: "caption", text: caption }) : null, body);
  }

  /** Text in which the paths of archived files can be followed. */
  linked(key, text) {
    const found = [];
    let from = 0;
    for (const match of String(text).matchAll(PATHS)) {
      if (found.length > MANY) break;
      found.push(text.slice(from, match.index));
      found.push(el("button", { class: "link mono", text: match[0], data: { path: match[0] }, on: { click: () => this.showFile(key, match[0]) } }));
      from = match.index + match[0].length;
    }
    found.push(String(text).slice(from));
    return found;
  }

  async showFile(key, path) {
    const back = [...this.node.childNodes].filter((each) => each !== this.shut);
    const turn = this.turn + 1;
    this.put(el("header", {}, el("div", { class: "headline" }, el("h2", { text: "Archived file" })), el("p", { class: "mono quiet", text: path })));
    const goBack = el("button", { class: "plain", text: "Back", on: { click: () => this.put(...back) } });
    try {
      const found = await api.file(key, path);
      if (this.turn !== turn) return;
      const cut = found.text.length < found.chars ? `, the first ${count(found.text.length)} shown` : "";
      this.node.append(section(`${count(found.chars)} characters${cut}`, goBack, el("div", { class: "content" }, el("pre", { text: found.text }))));
    } catch (error) {
      if (this.turn === turn) this.node.append(section("It cannot be read", el("p", { class: "quiet", text: error.message }), goBack));
    }
  }

  /** Hides something until it is asked for. */
  veil(hint, fetch) {
    const box = el("div", { class: "veil" });
    const button = el("button", { class: "plain reveal", text: "Reveal" });
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        box.replaceWith(await fetch());
      } catch (error) {
        button.disabled = false;
        refill(box, el("p", { text: error.message }), button);
      }
    });
    return refill(box, el("p", { text: `Hidden: ${hint}` }), button);
  }
}

function section(title, ...children) {
  return el("section", {}, el("h3", { text: title }), ...children);
}

function facts(values) {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return el("dl", { class: "facts-list" }, ...entries.flatMap(([name, value]) => [el("dt", { text: name.replaceAll("_", " ") }), el("dd", { text: shown(name, value) })]));
}

function flat(values, prefix = "") {
  return Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (
    value && typeof value === "object" && !Array.isArray(value) ? Object.entries(flat(value, `${prefix}${name} `)) : [[`${prefix}${name}`, value]])));
}

function shown(name, value) {
  if (name === "duration_ms") return duration(value);
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : String(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

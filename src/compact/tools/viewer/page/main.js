// The page put together: what is shown follows the address, what is new comes by itself.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { el, refill, soon } from "./dom.js";
import { count, percent, plural, short } from "./format.js";
import { Inspector } from "./inspector.js";
import { Ledger } from "./ledger.js";
import { limits, roots } from "./model.js";
import { SessionList } from "./sessions.js";
import { Steps } from "./steps.js";
import { Trace } from "./trace.js";

const FILTERS = {
  all: () => true,
  steps: (root) => root.step > 0,
  problems: (root) => root.bad || root.warned,
};
const byId = (id) => document.getElementById(id);

const state = { rows: [], key: null, events: [], total: 0, roots: [], view: "trace", filter: "all", archive: null };
const list = new SessionList(byId("session-list"), byId("search"), byId("session-count"), (key) => go({ key }));
const inspector = new Inspector(byId("inspector"), { jump, compare: (step) => go({ view: "steps", step }) });
const chart = new Chart((root, step) => (step ? go({ view: "steps", step }) : showCall(root)));
const trace = new Trace((node) => inspector.showNode(state.key, node));
const steps = new Steps((pair, found) => inspector.showPair(state.key, found, pair), (step) => { remember({ step }); drawChart(); });
const ledger = new Ledger((entry) => inspector.showEntry(state.key, entry));
const head = el("div", { class: "head" });
const bar = el("div", { class: "bar" });
const view = el("div", { class: "steps" });

// --- the address

function address() {
  const given = new URLSearchParams(location.hash.slice(1));
  return { key: given.get("s") || null, view: given.get("v") ?? "trace", step: Number(given.get("step")) || 0 };
}

function go(change) {
  const next = { ...address(), ...change };
  if (change.key && change.key !== state.key) Object.assign(next, { step: 0, view: "trace" });
  byId("sessions").classList.remove("open");
  byId("open-sessions").setAttribute("aria-expanded", "false");
  const words = new URLSearchParams({ s: next.key ?? "", v: next.view });
  if (next.step) words.set("step", next.step);
  if (`#${words}` === location.hash) show();
  else location.hash = words;
}

/** The address without a new entry in the history. */
function remember(change) {
  const next = { ...address(), ...change };
  const words = new URLSearchParams({ s: next.key ?? "", v: next.view });
  if (next.step) words.set("step", next.step);
  history.replaceState(null, "", `#${words}`);
}

// --- loading

async function loadSessions() {
  const found = await api.sessions();
  Object.assign(state, { rows: found.sessions, archive: found.archive, ready: found.ready });
  byId("where").textContent = found.archive ?? "";
  complain(found.problem);
  list.show(state.rows, state.key);
}

/** Fetches what is not here yet. Two of these may overlap: an event that came twice is taken once. */
async function loadEvents(key) {
  let found;
  do {
    found = await api.events(key, state.events.length ? state.events.at(-1).n + 1 : 0);
    if (key !== state.key) return false;
    const last = state.events.at(-1)?.n ?? -1;
    for (const event of found.events) if (event.n > last) state.events.push(event);
  } while (found.events.length && found.from + found.events.length < found.total);
  return true;
}

async function loadSteps(key) {
  const found = await api.steps(key);
  if (key !== state.key) return;
  state.steps = found.steps;
  steps.offer(key, found.steps, found.archived);
  const said = await api.ledger(key).catch((error) => ({ entries: [], archived: true, problem: error.message }));
  if (key !== state.key) return;
  state.entries = said.entries;
  ledger.offer(said.entries, said.archived);
  if (said.problem) complain(said.problem);
}

// --- showing

async function show() {
  const wanted = address();
  if (!wanted.key && state.rows.length) return go({ key: state.rows[0].key });
  const isNew = wanted.key !== state.key;
  state.view = wanted.view;
  if (!wanted.key) { state.key = null; return showNothing(); }
  if (isNew) {
    Object.assign(state, { key: wanted.key, events: [], roots: [], steps: [], entries: [] });
    trace.open.clear();
    trace.at = null;
    inspector.clear();
    list.show(state.rows, state.key);
    refill(byId("main"), el("div", { class: "empty", text: "Reading …" }));
    try {
      if (!(await loadEvents(state.key))) return undefined;
      await loadSteps(state.key);
    } catch (error) {
      refill(byId("main"), el("div", { class: "empty" }, el("h2", { text: "This session cannot be shown" }), el("p", { text: error.message })));
      return undefined;
    }
    refill(byId("main"), head, chart.node, bar, view);
  }
  draw();
  if (state.view === "steps" && state.steps?.length) {
    const known = state.steps.some((row) => row.step === wanted.step);
    await steps.open(known ? wanted.step : state.steps.at(-1).step);
  }
  return undefined;
}

function showNothing() {
  const where = state.archive ? el("p", { text: `Nothing is in ${state.archive} so far.` }) : el("p", { text: "No archive is open." });
  refill(byId("main"), el("div", { class: "empty" }, el("h2", { text: state.ready ? "No sessions yet" : "Reading the archive …" }), where,
    el("p", { text: "Sessions appear here by themselves when an agent that uses compact starts, or when events arrive at:" }),
    el("code", { text: `${location.origin}/ingest` }),
    el("p", { text: "To see an archive that lies elsewhere:" }), el("code", { text: "compact view path/to/archive" })));
}

function draw({ follow = false } = {}) {
  state.roots = roots(state.events);
  drawHead();
  drawBar();
  drawChart();
  const shown = { steps: steps.node, ledger: ledger.node }[state.view] ?? trace.node;
  const isTrace = shown === trace.node;
  if (view.firstChild !== shown) refill(view, shown);
  if (isTrace) {
    trace.wanted = FILTERS[state.filter];
    trace.show(state.roots, { follow });
    if (!trace.list.items.length) {
      refill(trace.list.sheet, el("div", { class: "empty", text: state.events.length ? "Nothing of this kind happened." : "This session has no events yet." }));
    }
  }
}

function drawChart() {
  chart.show(state.roots, limits(state.roots), state.view === "steps" ? steps.step : 0);
}

function drawHead() {
  const row = state.rows.find((each) => each.key === state.key) ?? {};
  const tile = (name, value, more, bad, spare) => el("div", { class: spare ? "tile spare" : "tile" }, el("dt", { text: name }), el("dd", { class: bad ? "bad" : "" }, value, more ? el("small", { text: ` ${more}` }) : null));
  refill(head,
    el("div", { class: "title" }, el("h1", { text: row.id ?? state.key }), el("span", { class: "quiet", text: [row.model, row.source === "ingest" ? "from /ingest" : null].filter(Boolean).join(" · ") })),
    el("dl", { class: "tiles" },
      tile("Context now", short(row.tokens), row.window ? `of ${short(row.window)}, ${percent(row.tokens / row.window)}` : ""),
      tile("Saved", short(row.saved ?? 0), "tokens"),
      tile("Steps", count(row.steps)),
      tile("Calls", count(row.calls)),
      tile("Events", count(state.events.length), "", false, true),
      tile("Problems", count((row.errors ?? 0) + (row.warnings ?? 0)), "", row.errors > 0)));
}

const shownView = () => (["steps", "ledger"].includes(state.view) ? state.view : "trace");

function drawBar() {
  const tab = (name, words, n) => el("button", { id: `tab-${name}`, role: "tab", "aria-selected": String(name === shownView()), on: { click: () => go({ view: name }) } }, words, n === undefined ? null : el("span", { class: "badge", text: count(n) }));
  const chip = (name, words) => el("button", { class: "chip", "aria-pressed": String(state.filter === name), text: words, data: { filter: name }, on: { click: () => { state.filter = name; draw(); } } });
  refill(bar,
    el("div", { class: "tabs", role: "tablist" }, tab("trace", "Trace", state.roots.length), tab("steps", "Before and after", state.steps?.length ?? 0), tab("ledger", "Ledger", state.entries?.length ?? 0)),
    el("span", { class: "spring" }),
    shownView() !== "trace" ? null : el("div", { class: "chips", role: "group", "aria-label": "Show" }, chip("all", "All"), chip("steps", "Steps"), chip("problems", "Problems")));
}

function showCall(root) {
  if (shownView() !== "trace") { state.view = "trace"; remember({ view: "trace" }); }
  if (!FILTERS[state.filter](root)) state.filter = "all";
  draw();
  trace.reveal(root);
  inspector.showNode(state.key, root);
}

async function jump(step, place) {
  state.view = "steps";
  remember({ view: "steps", step });
  draw();
  if (await steps.open(step)) {
    steps.find(place);
    inspector.reveal();
  }
}

// --- what is new

const waiting = new Set();
const refresh = soon(async () => {
  const keys = new Set(waiting);
  waiting.clear();
  try {
    await loadSessions();
    if (!state.key) return void (await show());
    if (keys.has(state.key) || keys.has(null)) {
      const before = state.events.length;
      if ((await loadEvents(state.key)) && state.events.length > before) {
        const isStep = state.events.slice(before).some((event) => event.name === "compact.finished");
        if (isStep) await loadSteps(state.key);
        draw({ follow: true });
      }
      drawHead();
    }
  } catch (error) {
    complain(error.message);
  }
}, 120);

function changed(keys) {
  for (const key of keys ?? [null]) waiting.add(key);
  refresh();
}

function complain(words) {
  byId("problem").hidden = !words;
  byId("problem").textContent = words ?? "";
}

function connection(name) {
  byId("live").dataset.state = name;
  byId("live").textContent = { live: "Live", lost: "Reconnecting …" }[name];
}

// --- theme and keys

const THEMES = ["system", "light", "dark"];

function theme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  refill(byId("theme"), el("span", { class: "wide-only", text: "Theme: " }), name);
  byId("theme").dataset.theme = name;
  try { localStorage.setItem("theme", name); } catch { /* a browser that keeps nothing */ }
}

function nextTheme() {
  theme(THEMES[(THEMES.indexOf(byId("theme").dataset.theme) + 1) % THEMES.length]);
}

function moveStep(by) {
  const numbers = (state.steps ?? []).map((row) => row.step);
  if (!numbers.length) return;
  const at = numbers.indexOf(address().step);
  const next = at < 0 ? (by > 0 ? 0 : numbers.length - 1) : Math.max(0, Math.min(numbers.length - 1, at + by));
  go({ view: "steps", step: numbers[next] });
}

const KEYS = {
  "/": () => { byId("sessions").classList.add("open"); byId("search").focus(); },
  "?": () => byId("keys").showModal(),
  t: nextTheme,
  r: () => inspector.reveal(),
  "[": () => moveStep(-1),
  "]": () => moveStep(1),
  Escape: () => { byId("sessions").classList.remove("open"); inspector.clear(); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, dialog")) return;
  if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](); }
});
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("open-sessions").addEventListener("click", () => {
  const isOpen = byId("sessions").classList.toggle("open");
  byId("open-sessions").setAttribute("aria-expanded", String(isOpen));
});
addEventListener("hashchange", show);

let saved = "system";
try { saved = localStorage.getItem("theme") ?? "system"; } catch { /* as above */ }
theme(THEMES.includes(saved) ? saved : "system");

try {
  await loadSessions();
  await show();
} catch (error) {
  complain(error.message);
}
api.listen(changed, connection);

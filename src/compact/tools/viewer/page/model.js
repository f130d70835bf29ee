// From a log to a tree. Pure: takes events, gives nodes.

import { duration, moment, percent, plural, short } from "./format.js";

const short_name = (name) => String(name).replace(/^compact\./, "").replaceAll("_", " ");
const file_name = (path) => String(path ?? "").split("/").pop();

/** What an event says, in a few words. */
const SAYS = {
  "compact.token_estimate": (p) => `${short(p.t_est)} tokens, ${percent(p.usage_pct ?? 0)} of ${short(p.max_tokens)}`,
  "compact.trigger_decision": (p) => (p.triggered ? `act: ${p.reason}` : `not now: ${p.reason}`),
  "compact.archival": (p) => file_name(p.file_path),
  "compact.offload": (p) => `${p.tool_name}: ${short(p.tokens_before)} → ${short(p.tokens_after)}`,
  "compact.calls_shrunk": (p) => `${p.tool_name}: ${short(p.tokens_before)} → ${short(p.tokens_after)}`,
  "compact.summary_created": (p) => `${plural(p.input_messages, "message")} → ${short(p.summary_tokens)} tokens`,
  "compact.pruned_messages": (p) => `${plural(p.pruned_count, "message")} gone, ${short(p.tokens_before)} → ${short(p.tokens_after)}`,
  "compact.started": (p) => p.note ?? p.reason,
  "compact.finished": (p) => `${p.outcome}, ${short(p.tokens_before)} → ${short(p.tokens_after)}`,
  "compact.error": (p) => `${p.error_type}: ${p.message}`,
  "compact.warning": (p) => `${p.code}: ${p.message}`,
  "compact.recovery": (p) => `attempt ${p.attempt}: ${p.action}`,
};

export function says(event) {
  const words = SAYS[event.name];
  try {
    return words ? words(event.properties ?? {}) : "";
  } catch {
    return "";
  }
}

export const title = (event) => short_name(event.name);

const isBad = (event) => event.status === "error" || event.name === "compact.error";

/** A node: {event | null, title, detail, children, start, end, call, step, bad, kind}. */
function leaf(event) {
  const start = moment(event.started_at);
  const end = moment(event.ended_at);
  return {
    id: event.span_id ?? `n${event.n}`, event, children: [], title: title(event), detail: says(event),
    start, end: Number.isNaN(end) ? start : end, bad: isBad(event), warned: event.name === "compact.warning",
    kind: event.name, open: false,
  };
}

function group(id, children) {
  return { id, event: null, children, title: "", detail: "", start: NaN, end: NaN, bad: false, kind: "call", open: false };
}

/**
 * The roots of a log: one for each call of the host, oldest first.
 *
 * Spans nest by `parent_id`. A parent that has not arrived yet (it is sent when it ends) is shown as running, unless a later
 * call says that it cannot be. Events that name no parent are put together call by call: each begins with its token estimate.
 */
export function roots(events) {
  const byId = new Map();
  for (const event of events) byId.set(event.span_id ?? `n${event.n}`, event); // a span that is told again replaces itself
  for (const [id, event] of byId) byId.set(id, leaf(event));
  const nodes = [...byId.values()];
  const found = [];
  const missing = new Map();
  let flat = null;
  for (const node of nodes) {
    const parentId = node.event.parent_id;
    const parent = parentId ? byId.get(parentId) : undefined;
    if (parent && parent !== node && !isBelow(parent, node, byId)) parent.children.push(node);
    else if (parentId && !parent) {
      if (!missing.has(parentId)) {
        missing.set(parentId, { ...group(parentId, []), running: true });
        found.push(missing.get(parentId));
      }
      missing.get(parentId).children.push(node);
    } else found.push(node);
  }
  const result = [];
  for (const node of found) {
    const stands = node.children.length > 0 || node.event === null;
    if (stands) { result.push(node); flat = null; continue; }
    if (!flat || node.kind === "compact.token_estimate") {
      flat = group(`call-${node.id}`, []);
      result.push(flat);
    }
    flat.children.push(node);
  }
  result.forEach(finish);
  // The span of a pass in the background ends behind later calls, and stands where it began.
  if (result.some(isAside)) result.sort((a, b) => a.start - b.start || 0);
  endAbandoned(result);
  result.forEach((node, index) => { node.number = index + 1; describe(node); });
  return result;
}

const isAside = (node) =>
  [...walk(node)].some((each) => each.kind === "compact.started" && each.event.properties?.reason === "background_started");

/**
 * A session has one call at a time: where a later one began, the process of this one was killed. So it has one pass in the
 * background at a time, which goes on beside later calls.
 */
function endAbandoned(list) {
  let hasLaterCall = false;
  let hasLaterAside = false;
  for (const node of [...list].reverse()) {
    const aside = isAside(node);
    if (node.running && (aside ? hasLaterAside : hasLaterCall)) Object.assign(node, { running: false, abandoned: true });
    hasLaterAside ||= aside;
    hasLaterCall ||= [...walk(node)].some((each) => each.kind === "compact.token_estimate");
  }
}

function isBelow(parent, node, byId) {
  const seen = new Set();
  for (let each = parent; each && !seen.has(each.id); each = byId.get(each.event?.parent_id)) {
    if (each === node) return true;
    seen.add(each.id);
  }
  return false;
}

function finish(node) {
  for (const child of node.children) finish(child);
  node.children.sort((a, b) => a.start - b.start || (a.event?.n ?? 0) - (b.event?.n ?? 0));
  for (const child of node.children) {
    if (!(node.start <= child.start)) node.start = child.start;
    if (!(node.end >= child.end)) node.end = child.end;
    node.bad ||= child.bad;
    node.warned ||= child.warned;
  }
}

/** What a call was: its size, and the step that it made. */
function describe(root) {
  const all = [...walk(root)];
  const of = (name) => all.find((node) => node.kind === name)?.event?.properties;
  const size = of("compact.token_estimate");
  const finished = of("compact.finished");
  root.tokens = size?.t_est;
  root.window = size?.max_tokens;
  root.usage = size?.usage_pct;
  root.policy = of("compact.trigger_decision")?.policy;
  root.after = finished?.outcome === "compacted" ? finished.tokens_after : undefined;
  root.tokens ??= finished?.tokens_before;
  root.step = root.after === undefined ? 0 : stepOf(all);
  root.events = all.filter((node) => node.event).length;
  root.title = isAside(root) ? "pass in the background" : size || finished ? "call" : root.event ? root.title : root.children[0]?.title ?? "span";
  if (root.step) root.detail = `step ${root.step}: ${short(root.tokens)} → ${short(root.after)} tokens`;
  else if (finished) root.detail = `${finished.outcome}, ${short(root.tokens)} tokens`;
  else if (size) root.detail = `${short(root.tokens)} tokens, ${percent(root.usage ?? 0)}`;
  else if (!root.event) root.detail = plural(root.children.length, "event");
  if (root.running) root.detail = `running · ${root.detail}`;
  if (root.abandoned) root.detail = `ended without a word · ${root.detail}`;
}

function stepOf(nodes) {
  return Math.max(0, ...nodes.filter((n) => n.kind === "compact.pruned_messages" || n.kind === "compact.finished").map((n) => n.event.step ?? 0));
}

export function* walk(node) {
  yield node;
  for (const child of node.children) yield* walk(child);
}

/** The rows of a tree, with those closed left out: {node, depth, root}. */
export function rows(list, isOpen) {
  const found = [];
  const add = (node, depth, root, place, of) => {
    found.push({ node, depth, root, place, of });
    if (isOpen(node)) node.children.forEach((child, n) => add(child, depth + 1, root, n + 1, node.children.length));
  };
  list.forEach((root, n) => add(root, 1, root, n + 1, list.length));
  return found;
}

/** How long it took; nothing for what took no time. */
export const took = (node) => (node.end > node.start ? duration(node.end - node.start) : "");

/** The limits in force: window, budget, threshold. The newest decision counts. */
export function limits(list) {
  const newest = (pick) => list.findLast((root) => pick(root) !== undefined);
  const window = newest((root) => root.window)?.window;
  const policy = newest((root) => root.policy)?.policy;
  if (!window) return {};
  const budget = policy ? window - policy.hard_cap_buffer : undefined;
  const threshold = policy ? Math.min(Math.floor(window * policy.trigger_pct), budget) : undefined;
  return { window, budget, threshold };
}

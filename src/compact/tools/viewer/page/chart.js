// Tokens over calls: the size before each model call, the limits, and each step as a fall.

import { el, refill, soon, svg } from "./dom.js";
import { count, percent, short } from "./format.js";

const MARGIN = { left: 44, right: 10, top: 14, bottom: 20 };

export class Chart {
  /** `chosen(root, step)`: a call was picked, by mouse or Enter. */
  constructor(chosen) {
    this.chosen = chosen;
    this.points = [];
    this.at = -1;
    this.legend = el("div", { class: "legend" });
    this.plot = el("div", { class: "plot", tabindex: "0", role: "group", "aria-roledescription": "chart", "aria-label": "Tokens before each call" });
    this.tip = el("div", { class: "tip", hidden: true, role: "status" });
    this.node = el("section", { class: "chart" }, this.legend, this.plot);
    this.redraw = soon(() => this.render());
    new ResizeObserver(this.redraw).observe(this.plot);
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", () => this.point(-1));
    this.plot.addEventListener("blur", () => this.point(-1));
    this.plot.addEventListener("click", () => this.pick());
    this.plot.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** `roots` with tokens; `limits`: {window, budget, threshold}; `step`: the one that is looked at. */
  show(roots, limits, step) {
    this.points = roots.filter((root) => root.tokens !== undefined);
    this.limits = limits;
    this.step = step;
    this.redraw();
  }

  render() {
    const { points, limits = {} } = this;
    const width = this.plot.clientWidth;
    const height = this.plot.clientHeight;
    if (!width || !height) return;
    const steps = points.filter((point) => point.step);
    const entry = (name, words) => el("span", { class: name }, el("i"), words);
    refill(this.legend,
      entry("tokens", "tokens before the call"),
      limits.threshold ? entry("threshold", `threshold ${count(limits.threshold)}`) : null,
      limits.budget ? entry("budget", `budget ${count(limits.budget)}`) : null,
      limits.window ? entry("window", `window ${count(limits.window)}`) : null,
      steps.length ? entry("taken", steps.length === 1 ? "1 step" : `${steps.length} steps`) : null);
    const top = Math.max(limits.window ?? 0, ...spread(points), 1) * 1.04;
    const inner = width - MARGIN.left - MARGIN.right;
    this.x = (n) => MARGIN.left + (points.length > 1 ? (n * inner) / (points.length - 1) : inner / 2);
    this.y = (tokens) => MARGIN.top + (1 - tokens / top) * (height - MARGIN.top - MARGIN.bottom);
    const sheet = svg("svg", { width, height, "aria-hidden": "true" },
      ...this.grid(top, width), ...this.across(points, height), ...this.lines(limits, width), ...this.curve(points, inner, height),
      ...this.marks(points, inner));
    this.over = svg("g", { class: "over" });
    sheet.append(this.over);
    refill(this.plot, sheet, this.tip);
    this.describe(points, steps, limits);
    this.point(this.at);
  }

  grid(top, width) {
    const found = [];
    const unit = niceUnit(top / 4);
    for (let tokens = 0; tokens <= top; tokens += unit) {
      const y = Math.round(this.y(tokens)) + 0.5;
      found.push(svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }));
      found.push(svg("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end", text: short(tokens) }));
    }
    return found;
  }

  across(points, height) {
    if (!points.length) return [];
    const unit = Math.max(1, niceUnit(points.length / 6));
    const label = (n, anchor) => svg("text", { x: this.x(n), y: height - 4, "text-anchor": anchor, text: n === 0 ? "call 1" : count(n + 1) });
    const found = [label(0, points.length > 1 ? "start" : "middle")];
    for (let number = unit; number <= points.length; number += unit) {
      if (this.x(number - 1) - MARGIN.left > 60) found.push(label(number - 1, "middle"));
    }
    return found;
  }

  lines(limits, width) {
    return ["window", "budget", "threshold"].filter((name) => limits[name]).map((name) => {
      const y = Math.round(this.y(limits[name])) + 0.5;
      return svg("path", { class: `limit ${name}`, d: `M${MARGIN.left} ${y}H${width - MARGIN.right}`, "data-tokens": limits[name] });
    });
  }

  curve(points, inner, height) {
    if (!points.length) return [];
    const pieces = [];
    const put = (n, tokens) => pieces.push(`${this.x(n).toFixed(1)} ${this.y(tokens).toFixed(1)}`);
    for (const n of thinned(points, inner)) {
      put(n, points[n].tokens);
      if (points[n].step) put(n, points[n].after);
    }
    const base = height - MARGIN.bottom;
    const line = `M${pieces.join("L")}`;
    const area = `${line}L${this.x(points.length - 1).toFixed(1)} ${base}L${this.x(0).toFixed(1)} ${base}Z`;
    return [svg("path", { class: "area", d: area }), svg("path", { class: "curve", d: line })];
  }

  marks(points, inner) {
    const steps = points.map((point, n) => ({ point, n })).filter(({ point }) => point.step);
    const roomy = steps.length * 16 < inner;
    return steps.map(({ point, n }) => {
      const x = this.x(n);
      const y = this.y(point.tokens);
      const words = `Step ${point.step}: ${count(point.tokens)} → ${count(point.after)} tokens`;
      const mark = svg("g", { class: `mark${point.step === this.step ? " chosen" : ""}`, "data-step": point.step },
        svg("title", { text: words }),
        svg("line", { class: "drop", x1: x, x2: x, y1: y, y2: this.y(point.after) }),
        svg("circle", { cx: x, cy: y, r: roomy ? 4 : 2.5 }),
        roomy ? svg("text", { x, y: y - 8, text: String(point.step) }) : null);
      mark.addEventListener("click", (event) => { event.stopPropagation(); this.chosen(point, point.step); });
      return mark;
    });
  }

  hover(event) {
    if (!this.points.length || !this.x) return;
    const box = this.plot.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    this.point(Math.max(0, Math.min(this.points.length - 1, Math.round(share * (this.points.length - 1)))));
  }

  /** Puts the cursor on a call; -1 takes it away. */
  point(n) {
    this.at = n;
    const found = this.points[n];
    if (!this.over) return;
    this.tip.hidden = !found;
    if (!found) { this.over.replaceChildren(); return; }
    const x = this.x(n);
    refill(this.over,
      svg("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: this.plot.clientHeight - MARGIN.bottom }),
      svg("circle", { class: "dot", cx: x, cy: this.y(found.tokens), r: 3.5 }));
    const share = this.limits?.window ? ` · ${percent(found.tokens / this.limits.window)}` : "";
    const step = found.step ? ` · step ${found.step} → ${count(found.after)}` : "";
    this.tip.textContent = `Call ${n + 1} · ${count(found.tokens)} tokens${share}${step}`;
    const left = x + 10 + this.tip.offsetWidth > this.plot.clientWidth ? x - 10 - this.tip.offsetWidth : x + 10;
    this.tip.style.left = `${Math.max(0, left)}px`;
  }

  pressed(event) {
    const last = this.points.length - 1;
    const moves = { ArrowRight: this.at + 1, ArrowLeft: this.at < 0 ? last : this.at - 1, Home: 0, End: last };
    if (event.key in moves) { event.preventDefault(); this.point(Math.max(0, Math.min(last, moves[event.key]))); }
    if (event.key === "Enter") this.pick();
  }

  pick() {
    const found = this.points[this.at];
    if (found) this.chosen(found, 0);
  }

  describe(points, steps, limits) {
    const last = points[points.length - 1];
    const now = last ? `, now ${count(last.after ?? last.tokens)} tokens` : "";
    this.plot.setAttribute("aria-label",
      `Tokens before each of ${points.length} calls${now}, ${steps.length} steps${limits.threshold ? `, threshold ${count(limits.threshold)}` : ""}. Arrow keys move, Enter shows the call.`);
  }
}

const spread = (points) => points.reduce((most, point) => Math.max(most, point.tokens), 0) ? [points.reduce((most, point) => Math.max(most, point.tokens), 0)] : [];

/** 1, 2 or 5 times a power of ten. */
function niceUnit(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const share = rough / power;
  return power * (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1);
}

/** The places to draw: all, or where there are more than pixels the lowest and the highest of each, and every step. */
function thinned(points, inner) {
  if (points.length <= inner) return points.keys();
  const found = new Set([0, points.length - 1]);
  const size = points.length / inner;
  for (let from = 0; from < points.length; from += size) {
    let low = Math.floor(from);
    let high = low;
    for (let n = low; n < Math.min(points.length, from + size); n += 1) {
      if (points[n].tokens < points[low].tokens) low = n;
      if (points[n].tokens > points[high].tokens) high = n;
      if (points[n].step) found.add(n);
    }
    found.add(low);
    found.add(high);
  }
  return [...found].sort((a, b) => a - b);
}

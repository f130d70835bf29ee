// Numbers and times, for people.

const whole = new Intl.NumberFormat("en-US");

export const count = (n) => whole.format(n ?? 0);

/** "842", "13.4k", "1.2M" */
export function short(n) {
  if (n === null || n === undefined) return "–";
  const size = Math.abs(n);
  if (size < 1000) return String(n);
  if (size < 100_000) return `${trimmed(n / 1000)}k`;
  if (size < 1_000_000) return `${Math.round(n / 1000)}k`;
  return `${trimmed(n / 1_000_000)}M`;
}

const trimmed = (n) => n.toFixed(1).replace(/\.0$/, "");

export const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;

/** Say in money why a pass is made or not. */
export function economy(found) {
  if (!found) return undefined;
  const { cache, cost, calls_to_repay: calls } = found;
  if (cost <= 0) return `cache ${cache}: a pass saves $${(-cost).toFixed(4)} in this call`;
  const repays = calls === null ? "never repays" : `repays after ${calls} calls`;
  return `cache ${cache}: a pass costs $${cost.toFixed(4)} more in this call and ${repays}`;
}

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** "640 µs", "12 ms", "1.4 s", "2 min 5 s" */
export function duration(ms) {
  if (!(ms > 0)) return "0 ms";
  if (ms < 1) return `${Math.max(1, Math.round(ms * 1000))} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Milliseconds since 1970, with fractions: the clock in the log counts microseconds, Date only milliseconds. */
export function moment(text) {
  if (typeof text !== "string") return NaN;
  const rest = /\.\d{3}(\d{1,6})Z$/.exec(text);
  return Date.parse(text) + (rest ? Number(`0.${rest[1]}`) : 0);
}

export function clock(text) {
  const at = new Date(text ?? "");
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString([], { hour12: false });
}

export function when(text) {
  const at = new Date(text ?? "");
  if (Number.isNaN(at.getTime())) return "";
  const seconds = (Date.now() - at.getTime()) / 1000;
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return at.toISOString().slice(0, 10);
}

export const bytes = (n) => (n < 1024 ? `${n} B` : n < 1_048_576 ? `${trimmed(n / 1024)} KB` : `${trimmed(n / 1_048_576)} MB`);

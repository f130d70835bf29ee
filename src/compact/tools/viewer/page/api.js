// What the page asks the server for. Every answer is JSON, and every failure is an Error that can be shown.

export async function ask(path) {
  let answer;
  try {
    answer = await fetch(path, { headers: { accept: "application/json" }, credentials: "same-origin" });
  } catch {
    throw new Error("The viewer does not answer. Is `compact view` still running?");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error ?? `The viewer answered with ${answer.status}.`);
  return body;
}

const at = (key) => `api/sessions/${encodeURIComponent(key)}`;

export const sessions = () => ask("api/sessions");
export const events = (key, from) => ask(`${at(key)}/events?from=${from}`);
export const event = (key, number) => ask(`${at(key)}/events/${number}`);
export const steps = (key) => ask(`${at(key)}/steps`);
export const step = (key, number) => ask(`${at(key)}/steps/${number}`);
export const summary = (key, number) => ask(`${at(key)}/steps/${number}/summary`);
export const message = (key, number, side, place) => ask(`${at(key)}/steps/${number}/${side}/${place}`);
export const ledger = (key) => ask(`${at(key)}/ledger`);
export const entry = (key, id) => ask(`${at(key)}/ledger/${encodeURIComponent(id)}`);
export const file = (key, path) => ask(`${at(key)}/file?path=${encodeURIComponent(path)}`);

/** Tells `changed(keys)` when sessions have something new, and `state(name)` how the connection is. */
export function listen(changed, state) {
  const source = new EventSource("api/live");
  source.onopen = () => { state("live"); changed(null); };
  source.onmessage = (message) => changed(JSON.parse(message.data).changed);
  source.onerror = () => state("lost");
  return source;
}

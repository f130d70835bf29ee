// Elements, made one way only: text goes in as text. There is no path from a string to markup in this page.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `props`: class, text, title, hidden, data: {}, on: {}, style: {}, and any attribute. */
export function el(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** An SVG element. */
export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [type, act] of Object.entries(value)) node.addEventListener(type, act);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A node with other children. */
export function refill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A function that runs `act` soon, and once for many calls. */
export function soon(act, pause = 0) {
  let timer = 0;
  return () => {
    if (timer) return;
    const run = () => { timer = 0; act(); };
    timer = pause ? setTimeout(run, pause) : requestAnimationFrame(run);
  };
}

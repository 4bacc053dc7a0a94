/** Elements without markup strings: a module called "<img onerror=…>" is shown, never run. */

/**
 * `element("button", { class: "x", "data-action": "attach" }, "Attach", child)`
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/**
 * What draws on a canvas.
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 * @returns {CanvasRenderingContext2D}
 */
export function penOf(canvas, settings) {
  const pen = /** @type {CanvasRenderingContext2D | null} */ (canvas.getContext("2d", settings));
  if (!pen) throw new Error("this browser gives no canvas to draw on");
  return pen;
}

/**
 * A function that adds listeners which end with a signal.
 * @param {AbortSignal} signal
 * @returns {Listen}
 */
export function listener(signal) {
  return (node, type, run, options) => node.addEventListener(type, run, { signal, ...options });
}

/**
 * Set text only when it changed, so that a selection or a screen reader is not disturbed.
 * @param {Element} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Set an attribute only when it changed; null removes it.
 * @param {Element} node
 * @param {string} name
 * @param {string | number | boolean | null} value
 */
export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/**
 * Put nodes in place of others only where they differ: what is pressed or focused then stays.
 * @param {Element} node
 * @param {Element[]} children
 */
export function setChildren(node, children) {
  const same = node.children.length === children.length && children.every((one, k) => one === node.children[k]);
  if (!same) node.replaceChildren(...children);
}

/**
 * The same for a list whose nodes stay while others come and go between them.
 * @param {Element} list
 * @param {Element[]} nodes
 */
export function arrange(list, nodes) {
  nodes.forEach((node, at) => {
    if (list.childNodes[at] !== node) list.insertBefore(node, list.childNodes[at] ?? null);
  });
  while (list.childNodes.length > nodes.length) list.lastChild?.remove();
}

/**
 * @param {HTMLElement} node
 * @param {boolean} hidden
 */
export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/**
 * Grey a button and say why: it stays focusable, so that the reason can be read.
 * @param {Element} button
 * @param {string | null | undefined} reason
 * @param {string} [title]
 */
export function setGreyed(button, reason, title = "") {
  setAttribute(button, "aria-disabled", reason ? "true" : null);
  setAttribute(button, "title", reason || title || null);
}

/** @param {Element} button */
export function isGreyed(button) {
  return button.getAttribute("aria-disabled") === "true";
}

/**
 * The clipboard needs https; without it the text is marked, ready for the copy key.
 * @param {HTMLElement} node
 * @param {Element} button
 */
export function copyText(node, button) {
  if (isField(node)) {
    node.focus();
    node.select();
  } else getSelection()?.selectAllChildren(node);
  if (!navigator.clipboard) return;
  navigator.clipboard.writeText(isField(node) ? node.value : (node.textContent ?? "")).then(
    () => setText(button, "Copied"),
    () => setText(button, "Press Ctrl+C"),
  );
}

/**
 * @param {HTMLElement} node
 * @returns {node is HTMLInputElement | HTMLTextAreaElement}
 */
function isField(node) {
  return node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement;
}

/**
 * A function that runs at most once per `wait` ms: at once when it may, else with the last state.
 * @param {number} wait
 * @param {() => void} run
 * @param {AbortSignal} signal
 */
export function throttled(wait, run, signal) {
  let timer = 0;
  let last = -Infinity;
  const fire = () => {
    timer = 0;
    last = performance.now();
    run();
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (timer || signal.aborted) return;
    const rest = last + wait - performance.now();
    if (rest <= 0) fire();
    else timer = setTimeout(fire, rest);
  };
}

/**
 * A function that runs `act` once it was not called for `rest` ms.
 * @param {number} rest
 * @param {() => void} act
 * @param {AbortSignal} signal
 */
export function atRest(rest, act, signal) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (signal.aborted) return;
    clearTimeout(timer);
    timer = setTimeout(act, rest);
  };
}

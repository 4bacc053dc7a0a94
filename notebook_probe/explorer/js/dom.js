/** Elements without markup strings: a module called "<img onerror=…>" is shown, never run. */

/** `element("button", { class: "x", "data-action": "attach" }, "Attach", child)` */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Set text only when it changed, so that a selection or a screen reader is not disturbed. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Set an attribute only when it changed; null removes it. */
export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Put nodes in place of others only where they differ: what is pressed or focused then stays. */
export function setChildren(node, children) {
  const same = node.children.length === children.length && children.every((one, k) => one === node.children[k]);
  if (!same) node.replaceChildren(...children);
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/** Grey a button and say why: it stays focusable, so that the reason can be read. */
export function setGreyed(button, reason, title = "") {
  setAttribute(button, "aria-disabled", reason ? "true" : null);
  setAttribute(button, "title", reason || title || null);
}

export function isGreyed(button) {
  return button.getAttribute("aria-disabled") === "true";
}

/** The clipboard needs https; without it the text is marked, ready for the copy key. */
export function copyText(node, button) {
  if (node.select) {
    node.focus();
    node.select();
  } else getSelection().selectAllChildren(node);
  if (!navigator.clipboard) return;
  navigator.clipboard.writeText(node.value ?? node.textContent).then(
    () => setText(button, "Copied"),
    () => setText(button, "Press Ctrl+C"),
  );
}

/** A function that runs at most once per `wait` ms: at once when it may, else with the last state. */
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

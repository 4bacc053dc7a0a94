/** The fields of a new breakpoint. */

import { element } from "../../dom.js";

/**
 * @param {string} kind
 * @param {string} text
 */
export function chip(kind, text) {
  return element("button", { type: "button", "data-kind": kind, "aria-pressed": "false" }, text);
}

/**
 * @param {string} label
 * @param {string} width
 */
export function field(label, width) {
  const node = element("input", { type: "text", inputmode: "decimal", "aria-label": label });
  node.style.width = width;
  return node;
}

/** @param {string} label */
export function choice(label) {
  return element("select", { "aria-label": label });
}

/** @param {HTMLInputElement} node */
export function numberOf(node) {
  const text = node.value.trim().replace(",", ".").replace(/\s/g, "");
  return text && Number.isFinite(Number(text)) ? Number(text) : null;
}

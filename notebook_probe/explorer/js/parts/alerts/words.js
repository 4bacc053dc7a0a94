/** An alert in words: its place, which is code, and the sentence behind it. */

import { grouped } from "../../format.js";

/** { place, rest } of "fc1 and 2 more: 60 % dead"; the place is "" for the model as a whole. */
export function alertWords({ modules, text }) {
  const [first] = modules;
  if (first && text.startsWith(first)) return { place: first, rest: text.slice(first.length) };
  return { place: "", rest: text.charAt(0).toUpperCase() + text.slice(1) };
}

export function alertsText(n) {
  return n === 1 ? "1 alert" : `${grouped(n)} alerts`;
}

/** Text of an alert: its place, with the first module as code, and its sentence. */

import { grouped } from "../../format.js";

const BEGAN = "began at ";
const AT = "at ";

/**
 * { before, place, rest } of "began at fc1, seen in fc2: 60 % dead"; of the model as a whole the sentence alone.
 * What explains it stands before all of it, as "After the learning rate rose …: ".
 * @param {Pick<FindingRow, "modules" | "where" | "sentence"> & { after?: string }} finding
 */
export function findingWords({ after, ...finding }) {
  const words = placeWords(finding);
  if (!after) return words;
  const rest = words.place ? words.rest : words.rest.charAt(0).toLowerCase() + words.rest.slice(1);
  return { ...words, before: `After ${after}: ${words.before}`, rest };
}

/**
 * @param {Pick<FindingRow, "modules" | "where" | "sentence">} finding
 */
function placeWords({ modules, where, sentence }) {
  const [first = ""] = modules;
  const before = where.startsWith(BEGAN) ? BEGAN : AT;
  const behind = where.slice(before.length);
  if (first && behind.startsWith(first))
    return { before: before === AT ? "" : before, place: first, rest: `${behind.slice(first.length)}: ${sentence}` };
  if (before === BEGAN) return { before, place: "", rest: `${behind}: ${sentence}` };
  return { before: "", place: "", rest: sentence.charAt(0).toUpperCase() + sentence.slice(1) };
}

/** @param {number} n */
export function alertsText(n) {
  return n === 1 ? "1 alert" : `${grouped(n)} alerts`;
}

/** @param {number} n */
export function causesText(n) {
  return n === 1 ? "1 cause" : `${grouped(n)} causes`;
}

/** @param {number} n */
export function consequencesText(n) {
  return n === 1 ? "1 consequence" : `${grouped(n)} consequences`;
}

/** @param {number} n */
export function remarksText(n) {
  return n === 1 ? "1 remark" : `${grouped(n)} remarks`;
}

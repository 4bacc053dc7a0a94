/** Modules of a network that are open at first: as deep as few boxes allow. */

import { valueAt } from "../../../maps.js";
import { foldGraph, isOpenable } from "./fold.js";

const MOST = 40; // boxes
const FEW = 6; // modules: so few say little of a network

/**
 * Paths; a chain of wrappers is open down to what it wraps, and a mere container where there is room.
 * @param {GraphNetwork} network
 */
export function openAtFirst(network) {
  /** @type {Set<string>} */
  const open = new Set();
  for (;;) {
    const boxes = closedBoxes(foldGraph(network, open));
    const modules = boxes.filter((box) => box.path !== null);
    const holders = modules.filter(isOpenable).filter((box) => network.children.has(box.path));
    const containers = holders.filter((box) => isContainer(network, box));
    const next = [containers, modules.length < FEW ? holders : []].find((some) => some.length && fits(some));
    if (!next) return open;
    for (const box of next) open.add(box.path);
  }

  /** @param {Array<{ path: string }>} some */
  function fits(some) {
    const tried = new Set([...open, ...some.map((box) => box.path)]);
    return closedBoxes(foldGraph(network, tried)).length <= MOST;
  }
}

/**
 * Never called itself, such as a ModuleList; where no calls were seen nothing is known of that.
 * @param {GraphNetwork} network
 * @param {{ path: string }} box
 */
function isContainer({ modules, how }, { path }) {
  return how !== "tree" && valueAt(modules, path).calls === 0;
}

/**
 * All boxes that are not open, of a scope and of those inside.
 * @param {GraphScope} scope
 * @returns {GraphBox[]}
 */
function closedBoxes({ boxes }) {
  return boxes.flatMap((box) => (box.scope ? closedBoxes(box.scope) : [box]));
}

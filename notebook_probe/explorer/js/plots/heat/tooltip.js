/** What lies under the pointer on the heat map, in words and exact numbers. */

import { element } from "../../dom.js";
import { exact, grouped } from "../../format.js";
import { apartText } from "../../parts/compare/ratio_frame.js";
import { NOT_FINITE, NOT_MEASURED } from "./states.js";

/** Module, steps and what was measured there, exactly. */
export function cellTooltip(frame, row, step, { units, steps: parted, other, before }) {
  const width = (frame.last_step + 1 - frame.first_step) / frame.columns;
  const column = Math.min(frame.columns - 1, Math.floor((step - frame.first_step) / width));
  const first = Math.ceil(frame.first_step + column * width - 1e-9);
  const last = Math.max(first, Math.ceil(frame.first_step + (column + 1) * width - 1e-9) - 1);
  const cell = row * frame.columns + column;
  const steps =
    first === last ? `step ${grouped(first)}` : `steps ${grouped(first)}–${grouped(last)}`;
  const name = element("b", {}, frame.rows[row]);
  const head = element("div", { class: "nbp-tip-head" }, name, `  ${steps}`);
  const line = (text) => element("div", {}, text);
  const soft = (text) => element("div", { class: "nbp-soft" }, text);
  const notes = before ? [soft(before)] : [];
  if (frame.states[cell] === NOT_MEASURED) return [head, line(`${frame.quantity}: not measured`), ...notes];
  const values = [];
  const from = parted.get(frame.rows[row]);
  if (from !== undefined) notes.unshift(soft(`parts at step ${grouped(from)}`));
  if (frame.ratio && frame.states[cell] !== NOT_FINITE) {
    const far = line(`${frame.quantity}  ${apartText(frame.mean[cell], frame.signed)}`);
    return [head, far, line(`of ${other}`), ...notes];
  }
  if (frame.states[cell] === NOT_FINITE)
    values.push(line(`${frame.quantity}: contains NaN or infinity`));
  else if (first === last)
    values.push(line(`${frame.quantity}  ${exact(frame.mean[cell], units)}`));
  else {
    values.push(line(`${frame.quantity}  ${exact(frame.mean[cell], units)} in the mean`));
    values.push(line(`at most ${exact(frame.maximum[cell], units)}`));
  }
  return [head, ...values, ...notes];
}

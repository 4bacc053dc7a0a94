/** Quantities that fit rows of the tree: the kernel decides, by kind of place. */

/**
 * Why a quantity cannot be measured at a row, in words; "" where it can.
 * @param {QuantityRow} quantity
 * @param {TreeRow} row
 */
function misfit(quantity, row) {
  return quantity.misfits[row.fitKind] ?? "";
}

/**
 * @param {QuantityRow} quantity
 * @param {TreeRow[]} rows
 */
export function fittingRows(quantity, rows) {
  return rows.filter((row) => !misfit(quantity, row));
}

/**
 * Those that can be measured at a row; all where there is none.
 * @param {QuantityRow[]} quantities
 * @param {TreeRow | undefined} row
 */
export function fittingQuantities(quantities, row) {
  return row ? quantities.filter((one) => !misfit(one, row)) : quantities;
}

/**
 * "" when the quantity fits at least one of the rows, else the first reason.
 * @param {QuantityRow} quantity
 * @param {TreeRow[]} rows
 */
export function misfitReason(quantity, rows) {
  if (!rows.length || rows.some((row) => !misfit(quantity, row))) return "";
  return firstReason(quantity, rows);
}

/**
 * Why the first of the rows that are left out is; "" when none is.
 * @param {QuantityRow} quantity
 * @param {TreeRow[]} rows
 */
export function firstReason(quantity, rows) {
  return rows.map((row) => misfit(quantity, row)).find(Boolean) ?? "";
}

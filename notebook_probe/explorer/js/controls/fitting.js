/** Which quantities fit which modules, and why not. */

/** Feature -> whether a module can provide it; a feature not listed here fits every module. */
const PROVIDED = {
  weight: (row) => row.nOwnParams > 0,
  update: (row) => row.nOwnParams > 0,
  grad: (row) => row.nParams > 0,
};

/** What of the features the module lacks: "" when the quantity fits; the kernel knows parameters. */
export function missingFeature(quantity, row) {
  if (row.entry) return row.kind ? "a whole module" : "";
  if (quantity.of_model && row.above) return "the whole model";
  return quantity.needs.find((feature) => !(PROVIDED[feature]?.(row) ?? true)) ?? "";
}

export function fittingRows(quantity, rows) {
  return rows.filter((row) => !missingFeature(quantity, row));
}

/** "" when the quantity fits at least one of the rows, else the reason in words. */
export function misfitReason(quantity, rows) {
  if (!rows.length || fittingRows(quantity, rows).length) return "";
  const lack = missingFeature(quantity, rows[0]);
  if (quantity.of_model) return "is of the whole model; mark the root";
  if (rows.length > 1) return `needs ${lack}; none of these ${rows.length} modules has one`;
  return `needs ${lack}; ${rows[0].path} (${rows[0].kind}) has none`;
}

/** The module table as a tree: forward order, folding, search. */

/**
 * Wire rows (path, class, n_params, n_own_params, parent) -> rows with depth and children; entries
 * (path, module) are no modules, single calls or parameters, and stand first below theirs. What
 * fits one place fits all that the kernel counts among its kind, `fitKind`.
 * @param {Pick<ModelMessage, "modules" | "entries" | "kinds">} model
 */
export function indexModules({ modules: table, entries, kinds }) {
  const rows = table.map(([path, kind, nParams, nOwnParams]) =>
    newRow({ path, kind, nParams, nOwnParams, entry: false }),
  );
  const byPath = new Map(rows.map((row) => [row.path, row]));
  for (const [path, owner] of entries) {
    const kind = path.startsWith(`${owner}[`) ? "call" : "";
    const row = newRow({ path, kind, nParams: 0, nOwnParams: 0, entry: true });
    putBelow(row, byPath.get(owner));
    rows.push(row);
  }
  table.forEach(([, , , , parent], k) => putBelow(rows[k], rows[parent]));
  rows.forEach((row, k) => {
    row.fitKind = kinds[k];
  });
  const modules = unfoldedRows(rows, new Set());
  for (const row of modules) row.depth = row.above ? row.above.depth + 1 : 0;
  return { modules, byPath: new Map(rows.map((row) => [row.path, row])) };
}

/**
 * @param {Pick<TreeRow, "path" | "kind" | "nParams" | "nOwnParams" | "entry">} fields
 * @returns {TreeRow}
 */
function newRow(fields) {
  return { ...fields, name: fields.path, above: null, depth: 0, children: [], fitKind: -1 };
}

/**
 * @param {TreeRow} row
 * @param {TreeRow | undefined} above
 */
function putBelow(row, above) {
  if (!above) return;
  row.above = above;
  above.children.push(row);
  const called = row.entry && row.kind ? above.path : `${above.path}.`; // "[0]" keeps its bracket
  if (row.path.startsWith(called)) row.name = row.path.slice(called.length);
}

/**
 * Rows to show, in forward order, without what lies below a folded module.
 * @param {TreeRow[]} modules
 * @param {Set<string>} folded
 */
export function unfoldedRows(modules, folded) {
  /** @type {TreeRow[]} */
  const shown = [];
  /** @type {(row: TreeRow) => void} */
  const visit = (row) => {
    shown.push(row);
    if (!folded.has(row.path)) row.children.forEach(visit);
  };
  modules.filter((row) => !row.above).forEach(visit);
  return shown;
}

/**
 * A glob, else an exact class, else a part of a path, else a part of a class.
 * @template {{ path: string, kind: string }} Row
 * @param {Row[]} modules
 * @param {string} query
 */
export function searchModules(modules, query) {
  if (/[*?[]/.test(query)) {
    const pattern = globPattern(query);
    const byPath = modules.filter((row) => pattern.test(row.path));
    return byPath.length ? byPath : modules.filter((row) => pattern.test(row.kind));
  }
  const exactClass = modules.filter((row) => row.kind === query);
  if (exactClass.length) return exactClass;
  const part = query.toLowerCase();
  const inPath = modules.filter((row) => row.path.toLowerCase().includes(part));
  return inPath.length ? inPath : modules.filter((row) => row.kind.toLowerCase().includes(part));
}

/**
 * Shell wildcards; `*` also crosses dots, so "layer1.*" is everything below layer1.
 * @param {string} glob
 */
function globPattern(glob) {
  const source = glob.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\[!/g, "[^");
  const closed = /\[[^\]]*$/.test(source) ? source.replace(/\[/g, "\\[") : source;
  return new RegExp(`^${closed.replace(/\*/g, ".*").replace(/\?/g, ".")}$`);
}

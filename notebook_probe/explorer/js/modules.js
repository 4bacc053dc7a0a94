/** The module table as a tree: forward order, folding, search. */

/** Wire rows (path, class, n_params, n_own_params, parent) -> rows with depth and children. */
export function indexModules(table) {
  const modules = table.map(([path, kind, nParams, nOwnParams, parent], index) => {
    return { path, kind, nParams, nOwnParams, parent, index, name: path, depth: 0, children: [] };
  });
  for (const row of modules) {
    const above = modules[row.parent];
    if (!above) continue;
    row.depth = above.depth + 1;
    above.children.push(row);
    if (row.path.startsWith(`${above.path}.`)) row.name = row.path.slice(above.path.length + 1);
  }
  return { modules, byPath: new Map(modules.map((row) => [row.path, row])) };
}

/** Rows to show, in forward order, without what lies below a folded module. */
export function unfoldedRows(modules, folded) {
  const shown = [];
  const visit = (row) => {
    shown.push(row);
    if (!folded.has(row.path)) row.children.forEach(visit);
  };
  modules.filter((row) => row.parent < 0).forEach(visit);
  return shown;
}

/** A glob, else an exact class, else a part of a path, else a part of a class. */
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

/** Shell wildcards; `*` also crosses dots, so "layer1.*" is everything below layer1. */
function globPattern(glob) {
  const source = glob.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\[!/g, "[^");
  const closed = /\[[^\]]*$/.test(source) ? source.replace(/\[/g, "\\[") : source;
  return new RegExp(`^${closed.replace(/\*/g, ".*").replace(/\?/g, ".")}$`);
}

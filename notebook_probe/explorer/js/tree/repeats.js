/** Blocks that repeat one before them: in a large model they are folded until they are asked for. */

const FEW_ROWS = 200; // a tree that can be read through is shown whole

/**
 * Paths of modules like an earlier child of the same module: of one class, size and number of modules.
 * @param {TreeRow[]} modules
 */
export function repeatedBlocks(modules) {
  if (modules.length <= FEW_ROWS) return [];
  /** @type {Map<TreeRow, number>} */
  const sizes = new Map();
  for (const row of [...modules].reverse()) {
    // In forward order what is below a module comes after it.
    sizes.set(row, row.children.reduce((sum, child) => sum + (sizes.get(child) ?? 1), 1));
  }
  return modules.flatMap(({ children }) => {
    const seen = new Set();
    return children.flatMap((child) => {
      const shape = `${child.kind} ${child.nParams} ${sizes.get(child)}`;
      const isRepeated = child.children.length > 0 && seen.has(shape);
      seen.add(shape);
      return isRepeated ? [child.path] : [];
    });
  });
}

/** Modules and series by name: in full, where there is little room, and in Python. */

const LEADING_PART = /(?<=^|\.)([a-z_])\w*?[a-z_](\d*)(?=\.)/i;

export const ROOT = "(root)";

/**
 * "conv1 · grad_norm", the name of a series everywhere; of the whole model "loss".
 * @param {string} module
 * @param {string} quantity
 */
export function seriesName(module, quantity) {
  return module === ROOT ? quantity : `${module} · ${quantity}`;
}

/**
 * "encoder.layer4.0.attn.proj" -> "e.layer4.0.attn.proj" -> "e.l4.0.attn.proj" until it fits:
 * leading parts give way first, numbers and the end stay.
 * @param {string} text
 * @param {(text: string) => boolean} fits
 */
export function shortName(text, fits) {
  let short = text;
  while (!fits(short)) {
    const next = short.replace(LEADING_PART, "$1$2");
    if (next === short) return short.includes(" · ") ? headOf(short, fits) : tailOf(short, fits);
    short = next;
  }
  return short;
}

// Of a series the module says more than the quantity, of a path its end more than its beginning.
/**
 * @param {string} text
 * @param {(text: string) => boolean} fits
 */
function headOf(text, fits) {
  let keep = text.length - 1;
  while (keep > 1 && !fits(`${text.slice(0, keep)}…`)) keep -= 1;
  return `${text.slice(0, keep).replace(/[.\s·]+$/, "")}…`;
}

/**
 * @param {string} text
 * @param {(text: string) => boolean} fits
 */
function tailOf(text, fits) {
  const head = text.slice(0, text.lastIndexOf(".") + 1);
  const end = text.slice(head.length);
  // The layers of a deep network differ in their numbers, which are before a long last part.
  for (let cut = 1; head.length < end.length - cut; cut += 1) {
    const short = `${head}…${end.slice(cut)}`;
    if (fits(short)) return short;
  }
  let cut = 1;
  while (cut < text.length && !fits(`…${text.slice(cut)}`)) cut += 1;
  return `…${text.slice(cut).replace(/^[.\s·]+/, "")}`;
}

/**
 * What draws a vector or an image, as the panel does not: one of notebook_probe.figures.
 * @param {string} module
 * @param {string} quantity
 */
export function vectorCode(module, quantity) {
  const name = module === ROOT ? "" : module;
  return `vector(run.series("${name}", "${quantity}"))`;
}

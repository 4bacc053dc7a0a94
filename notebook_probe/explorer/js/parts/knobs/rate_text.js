/** Rates as people write them: 3e-3, 7.5e-4, 0.05; and as they are read back from a field. */

const DIGITS = 3;

/**
 * For a field: with a plain minus, so that it can be edited and read back.
 * @param {number | null} value
 */
export function rateInput(value) {
  if (value === null || !Number.isFinite(value)) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 0.01 && size < 1e4) return String(Number(value.toPrecision(DIGITS)));
  const [mantissa, exponent] = value.toExponential(DIGITS - 1).split("e");
  return `${Number(mantissa)}e${Number(exponent)}`;
}

/**
 * For reading: with a true minus.
 * @param {number | null} value
 */
export function rateText(value) {
  return rateInput(value).replace(/-/g, "−");
}

/**
 * The number in a field; null where there is none.
 * @param {string} text
 */
export function numberIn(text) {
  const plain = text.trim().replace(",", ".").replace("−", "-");
  const value = Number(plain);
  return plain && Number.isFinite(value) ? value : null;
}

/**
 * The rate in a field, a positive number; null where there is none.
 * @param {string} text
 */
export function rateIn(text) {
  const value = numberIn(text);
  return value !== null && value > 0 ? value : null;
}

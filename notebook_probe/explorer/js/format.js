/** Numbers as people read them: three significant digits, thin spaces in thousands, units. */

export const THIN_SPACE = "\u202f"; // narrow no-break space: a number never wraps

/**
 * 1240 -> "1 240"
 * @param {number} whole
 */
export function grouped(whole) {
  return String(Math.round(whole)).replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);
}

/** @param {number} n */
export function modulesText(n) {
  return n === 1 ? "1 module" : `${grouped(n)} modules`;
}

/**
 * Any float with `digits` significant digits: 0.213, 18 500, 1.23e-7, NaN, ∞.
 * @param {number | null} value
 * @param {number} [digits]
 */
export function significant(value, digits = 3) {
  if (value === null || Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    return `${withoutTrailingZeros(mantissa)}e${Number(exponent)}`.replace(/-/g, "−");
  }
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const [whole, fraction] = value.toFixed(decimals).split(".");
  const tail = (fraction ?? "").replace(/0+$/, "");
  const sign = whole.startsWith("-") ? "−" : "";
  return sign + grouped(Number(whole.replace("-", ""))) + (tail ? `.${tail}` : "");
}

/**
 * 18 500 -> "18.5 k": the size of something countable, with three digits.
 * @param {number} n
 */
export function counted(n) {
  const [scale, letter] =
    n >= 1e9 ? [1e9, "G"] : n >= 1e6 ? [1e6, "M"] : n >= 1e4 ? [1e3, "k"] : [1, ""];
  return letter ? `${significant(n / scale)}${THIN_SPACE}${letter}` : grouped(n);
}

/** @param {number} n */
export function bytes(n) {
  const [scale, unit] =
    n >= 1e9 ? [1e9, "GB"] : n >= 1e6 ? [1e6, "MB"] : n >= 1e3 ? [1e3, "kB"] : [1, "B"];
  return `${significant(n / scale, n >= 1e8 ? 3 : 2)}${THIN_SPACE}${unit}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)}${THIN_SPACE}s`;
  if (seconds < 120) return `${Math.round(seconds)}${THIN_SPACE}s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}${THIN_SPACE}min`;
  return `${significant(seconds / 3600, 2)}${THIN_SPACE}h`;
}

/**
 * "22 Nov, 01:58" of milliseconds since 1970, where the reader is.
 * @param {number} ms
 */
export function dayAndTime(ms) {
  const at = new Date(ms);
  /** @type {(n: number) => string} */
  const two = (n) => String(n).padStart(2, "0");
  const month = at.toLocaleString("en", { month: "short" });
  return `${at.getDate()} ${month}, ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/**
 * Of what is still to come: in whole seconds, so that it stands still between two of them.
 * @param {number} seconds
 */
export function timeLeft(seconds) {
  const text = seconds < 10 ? `${Math.ceil(seconds)}${THIN_SPACE}s` : duration(seconds);
  return `${text} left`;
}

/** @param {number} us */
export function microseconds(us) {
  return us < 1000 ? `${significant(us, 2)}${THIN_SPACE}µs` : `${significant(us / 1000, 2)}${THIN_SPACE}ms`;
}

/**
 * A value read off a picture, as exact as float32 is, with its units.
 * @param {number | null} value
 * @param {string} [units]
 */
export function exact(value, units = "1") {
  return significant(value, 6) + (units && units !== "1" ? `${THIN_SPACE}${units}` : "");
}

/** @param {string} mantissa */
function withoutTrailingZeros(mantissa) {
  return mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
}

/**
 * Weight at a place of the slider: 0, 0.9, 0.99 and 0.999 stand equally far from each other.
 * @param {number} place
 */
export function weightAt(place) {
  return Number((1 - Number((10 ** -place).toPrecision(2))).toFixed(4));
}

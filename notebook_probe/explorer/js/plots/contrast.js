/** Contrast of two colors, by the formulas of WCAG 2. */

/**
 * Contrast ratio of two [r, g, b], from 1 to 21.
 * @param {number[]} one
 * @param {number[]} other
 */
export function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/**
 * Relative luminance of [r, g, b], from 0 to 1.
 * @param {number[]} rgb
 */
export function luminance(rgb) {
  const [red, green, blue] = rgb.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

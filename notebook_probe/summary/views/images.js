export default {
  /**
   * @param {SteppedElement} element
   * @param {{ series: ImageSeries[], run: string }} data
   */
  draw(element, data) {
    stepper(element, data.series, (place, one, at) => {
      const own = { name: one.beside ? data.run : "", step: one.steps[at], content: imageOf(one, at) };
      if (!one.beside) return sideBySide(place, [own]);
      const there = placeOf(one.beside.steps, one.steps[at]);
      const { run, steps } = one.beside;
      return sideBySide(place, [own, { name: run, step: steps[there], content: imageOf(one.beside, there) }]);
    });
  },
};

/**
 * @param {ImageSeries} series
 * @param {number} at
 */
function imageOf({ name, steps, pixels }, at) {
  const [, height, width] = pixels.shape;
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${name} at step ${steps[at]}`);
  canvas.style = `width: min(100%, ${4 * width}px); image-rendering: pixelated; display: block`;
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const image = context.createImageData(width, height);
  const first = at * height * width * 3;
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = pixels[first + 3 * i + c];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

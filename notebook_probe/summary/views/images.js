export default {
  /**
   * @param {SteppedElement} element
   * @param {{ series: ImageSeries[], run: string }} data
   */
  draw(element, data) {
    stepper(element, data.series, (place, one, at) => sideBySide(place, { run: data.run, one, at, make: imageOf }));
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

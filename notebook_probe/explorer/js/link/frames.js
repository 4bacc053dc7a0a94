/** Binary frames from the kernel as typed arrays. */

/** float32 buffer: per series n x values, then n y values; x relative to x0. */
export function decodeLines(message, buffers) {
  const floats = floatsOf(buffers[0]);
  const series = message.series.map((entry) => ({
    ...entry,
    x: floats.subarray(entry.offset, entry.offset + entry.n),
    y: floats.subarray(entry.offset + entry.n, entry.offset + 2 * entry.n),
  }));
  return { ...message, series };
}

/** Row-major blocks: mean, state (0 value, 1 not measured, 2 NaN or infinite), maximum. */
export function decodeHeat(message, buffers) {
  const index = new Map(message.rows.map((module, row) => [module, row]));
  return {
    ...message,
    index,
    mean: floatsOf(buffers[0]),
    states: bytesOf(buffers[1]),
    maximum: floatsOf(buffers[2]),
  };
}

function bytesOf(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

// A buffer may start anywhere in its message, float32 only at a multiple of four.
function floatsOf(view) {
  if (view.byteOffset % 4 === 0)
    return new Float32Array(view.buffer, view.byteOffset, view.byteLength >> 2);
  return new Float32Array(bytesOf(view).slice().buffer);
}

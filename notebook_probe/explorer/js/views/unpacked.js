/** Data that a view passes to its ES module, with the arrays restored. */

/** @type {Record<string, new (buffer: ArrayBuffer) => object>} */
const TYPES = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
};

/**
 * Every array is a typed one, row-major, with a `shape`.
 * @param {Omit<DrawnFrame, "data"> & { data?: any, buffers: Buffers }} message
 */
export function unpacked({ data, arrays = [], buffers }) {
  arrays.forEach(({ path, dtype, shape }, place) => {
    const { buffer, byteOffset, byteLength } = buffers[place];
    // Copied: a buffer may start anywhere in its message, numbers only at multiples of their size.
    const values = new TYPES[dtype](buffer.slice(byteOffset, byteOffset + byteLength));
    const inside = path.slice(0, -1).reduce((one, key) => one[key], data);
    inside[path[path.length - 1]] = Object.assign(values, { shape });
  });
  return data;
}

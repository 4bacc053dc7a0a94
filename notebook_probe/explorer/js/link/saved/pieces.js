/** The frames that were saved, unpacked when they are asked for: `coding.py` says how they lie. */

import { valueOr } from "../../maps.js";

const FLOAT_BYTES = 4;

/**
 * `{ has(kind, key), read(kind, key) }`; a frame is `{ message, buffers }` as from a kernel, or null.
 * @param {Pick<SavedPage, "pieces" | "read">} page
 * @returns {SavedPieces}
 */
export function createPieces({ pieces, read }) {
  /** @type {Map<string, [number, number]>} */
  const places = new Map(pieces.map(([kind, key, ...place]) => [nameOf(kind, key), place]));
  /** @type {Map<string, Promise<any>>} */
  const frames = new Map();
  return {
    has: (kind, key) => places.has(nameOf(kind, key)),
    async read(kind, key) {
      const name = nameOf(kind, key);
      const place = places.get(name);
      return place ? valueOr(frames, name, () => read(place).then(unpacked)) : null;
    },
  };
}

/**
 * @param {string} kind
 * @param {string} key
 */
function nameOf(kind, key) {
  return `${kind} ${key}`;
}

/** @param {ArrayBuffer} buffer */
function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {{ message: object, buffers: Array<[number, number]> }} */
  const { message, buffers } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  const views = buffers.map(([size, kept]) => {
    const bytes = new Uint8Array(buffer, at, size);
    at += size;
    return kept ? floats(bytes, kept) : new DataView(buffer, bytes.byteOffset, size);
  });
  return { message, buffers: views };
}

/**
 * Bytes of equal rank stand together, the highest first; what is not there is zero.
 * @param {Uint8Array} bytes
 * @param {number} kept
 */
function floats(bytes, kept) {
  const n = bytes.length / kept;
  const whole = new Uint8Array(n * FLOAT_BYTES);
  for (let rank = 0; rank < kept; rank++) {
    const plane = bytes.subarray(rank * n, (rank + 1) * n);
    for (let k = 0; k < n; k++) whole[FLOAT_BYTES * k + 3 - rank] = plane[k];
  }
  return new DataView(whole.buffer);
}

/** The frames that were saved, unpacked when they are asked for: `coding.py` says how they lie. */

const FLOAT_BYTES = 4;

/** `{ has(kind, key), read(kind, key) }`; a frame is `{ message, buffers }` as from a kernel, or null. */
export function createPieces({ pieces, read }) {
  const places = new Map(pieces.map(([kind, key, ...place]) => [nameOf(kind, key), place]));
  const frames = new Map();
  return {
    has: (kind, key) => places.has(nameOf(kind, key)),
    async read(kind, key) {
      const name = nameOf(kind, key);
      if (!places.has(name)) return null;
      if (!frames.has(name)) frames.set(name, read(places.get(name)).then(unpacked));
      return frames.get(name);
    },
  };
}

function nameOf(kind, key) {
  return `${kind} ${key}`;
}

function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const { message, buffers } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  const views = buffers.map(([size, kept]) => {
    const bytes = new Uint8Array(buffer, at, size);
    at += size;
    return kept ? floats(bytes, kept) : new DataView(buffer, bytes.byteOffset, size);
  });
  return { message, buffers: views };
}

/** Bytes of equal rank stand together, the highest first; what is not there is zero. */
function floats(bytes, kept) {
  const n = bytes.length / kept;
  const whole = new Uint8Array(n * FLOAT_BYTES);
  for (let rank = 0; rank < kept; rank++) {
    const plane = bytes.subarray(rank * n, (rank + 1) * n);
    for (let k = 0; k < n; k++) whole[FLOAT_BYTES * k + 3 - rank] = plane[k];
  }
  return new DataView(whole.buffer);
}

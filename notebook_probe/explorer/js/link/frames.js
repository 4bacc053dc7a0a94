/** Binary frames from the kernel as typed arrays. */

const NOTHING = new Uint8Array(0);

/**
 * `{ message, buffers }` of a frame as it was drawn: what was sent, or of what was left out what the
 * frame `base` has; null where that is not `last`, the last one that arrived.
 * @template {LinesFrame | HeatFrame | VectorsFrame} Frame
 * @param {SentFrame<Frame>} sent
 * @param {Buffers} buffers
 * @param {WholeFrame<Frame> | null} last
 * @returns {WholeFrame<Frame> | null}
 */
export function wholeFrame({ base, kept, ...said }, buffers, last) {
  // What is left of a frame and its base is the frame, which generics cannot say.
  const news = /** @type {Frame} */ (said);
  if (base === undefined || kept === undefined) return { message: news, buffers };
  if (last?.message.seq !== base) return null;
  const message = { ...last.message, ...news };
  const tails = bytesOf(buffers[0]);
  let at = 0; // in `tails`
  const whole = message.layout.map((groups, place) => {
    const known = bytesOf(last.buffers[place] ?? NOTHING);
    const bytes = new Uint8Array(groups.reduce((sum, [count, size]) => sum + count * size, 0));
    let [to, from] = [0, 0];
    groups.forEach(([count, size], group) => {
      const [oldCount, oldSize] = last.message.layout[place]?.[group] ?? [0, 0];
      const front = kept[place][group];
      for (let row = 0; row < count; row++) {
        if (front) bytes.set(known.subarray(from + row * oldSize, from + row * oldSize + front), to);
        bytes.set(tails.subarray(at, at + size - front), to + front);
        at += size - front;
        to += size;
      }
      from += oldCount * oldSize;
    });
    return bytes;
  });
  return { message, buffers: whole };
}

/**
 * float32 buffer: per series n x values, n y values, then those of its average; x relative to x0.
 * @param {LinesFrame} message
 * @param {Buffers} buffers
 * @returns {DecodedLines}
 */
export function decodeLines(message, buffers) {
  const floats = floatsOf(buffers[0]);
  /** @type {(offset: number, n: number) => Points} */
  const points = (offset, n) => ({
    x: floats.subarray(offset, offset + n),
    y: floats.subarray(offset + n, offset + 2 * n),
  });
  const series = message.series.map((entry) => ({
    ...entry,
    ...points(entry.offset, entry.n),
    average: points(entry.offset + 2 * entry.n, entry.n_average),
  }));
  return { ...message, series };
}

// In a state: measured before the column; times the reason of a gap.
const [CARRIED, GAP] = [4, 8];

/**
 * Row-major blocks: mean, state (0 value, 1 not measured, 2 NaN or infinite), maximum, and where in its
 * column each was measured last.
 * @param {HeatFrame} message
 * @param {Buffers} buffers
 * @returns {DecodedHeat}
 */
export function decodeHeat(message, buffers) {
  const index = new Map(message.rows.map((module, row) => [module, row]));
  const states = bytesOf(buffers[1]);
  return {
    ...message,
    index,
    mean: floatsOf(buffers[0]),
    states: states.map((state) => state % CARRIED),
    carried: states.map((state) => Number((state & CARRIED) > 0)),
    gaps: states.map((state) => Math.floor(state / GAP)),
    maximum: floatsOf(buffers[2]),
    offsets: countsOf(buffers[3], states.length),
  };
}

/**
 * Halves of float32, a row's elements after the other's, and the last vectors; see the kernel.
 * @param {VectorsFrame} message
 * @param {Buffers} buffers
 * @returns {DecodedVectors}
 */
export function decodeVectors(message, buffers) {
  const halves = bytesOf(buffers[0]).slice();
  const wide = Uint32Array.from(new Uint16Array(halves.buffer), (half) => half << 16);
  const cells = new Float32Array(wide.buffer);
  const last = floatsOf(buffers[1]);
  let first = 0;
  const rows = message.rows.map((row) => {
    const from = first;
    first += row.n;
    const values = cells.subarray(from * message.columns, first * message.columns);
    return { ...row, values, last: last.subarray(from, first) };
  });
  return { ...message, rows, steps: stepsOf(buffers[2]) };
}

/**
 * Whole numbers of one, two or four bytes, as many as there are; none of an empty buffer.
 * @param {ArrayBufferView<ArrayBuffer>} view
 * @param {number} count
 */
function countsOf(view, count) {
  const bytes = bytesOf(view).slice();
  if (bytes.length === 2 * count) return new Uint16Array(bytes.buffer);
  return bytes.length === 4 * count ? new Uint32Array(bytes.buffer) : bytes;
}

/** @param {ArrayBufferView<ArrayBuffer>} view */
export function stepsOf(view) {
  return new Int32Array(bytesOf(view).slice().buffer);
}

/** @param {ArrayBufferView<ArrayBuffer>} view */
function bytesOf(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/**
 * A buffer may start anywhere in its message, float32 only at a multiple of four.
 * @param {ArrayBufferView<ArrayBuffer>} view
 */
function floatsOf(view) {
  if (view.byteOffset % 4 === 0)
    return new Float32Array(view.buffer, view.byteOffset, view.byteLength >> 2);
  return new Float32Array(bytesOf(view).slice().buffer);
}

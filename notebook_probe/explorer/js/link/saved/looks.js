/** Looks that were saved: the first sample of each, and two of them beside each other. */

const NOT_HERE = "only the first sample was saved";

/**
 * The answer to a view that wants to see one, `{ message, buffers }`.
 * @param {ShowLook} wanted
 * @param {SavedPieces} pieces
 */
export async function lookAt(wanted, pieces) {
  const { view, module, step, other, sample } = wanted;
  const head = { type: "shown_look", view, module, step, other, sample, error: "" };
  const [one, second] = await Promise.all([step, other].map((at) => pieces.read("look", `${at} ${module}`)));
  if (!one || sample) return { message: { ...head, blocks: [], error: NOT_HERE }, buffers: [] };
  if (!second) return { message: { ...head, blocks: one.message.blocks }, buffers: one.buffers };
  const begin = one.buffers[0].byteLength / 4;
  const blocks = one.message.blocks.map((block) => beside(block, second.message.blocks, begin));
  return { message: { ...head, blocks }, buffers: [joined(one.buffers[0], second.buffers[0])] };
}

/**
 * A block with the facts of the other look, and with its maps where they are the same ones.
 * @param {ShownBlock} block
 * @param {ShownBlock[]} others
 * @param {number} begin
 * @returns {ShownBlock}
 */
function beside(block, others, begin) {
  const same = others.find((one) => one.tensor === block.tensor);
  if (!same) return block;
  /** @type {(block: ShownBlock) => string} */
  const shapeOf = ({ height, width, places }) => JSON.stringify([height, width, places]);
  const maps = shapeOf(same) === shapeOf(block) ? { other: begin + same.offset } : {};
  return { ...block, ...maps, other_facts: same.facts };
}

/**
 * @param {ArrayBufferView} one
 * @param {ArrayBufferView} other
 */
function joined(one, other) {
  const bytes = new Uint8Array(one.byteLength + other.byteLength);
  bytes.set(new Uint8Array(one.buffer, one.byteOffset, one.byteLength));
  bytes.set(new Uint8Array(other.buffer, other.byteOffset, other.byteLength), one.byteLength);
  return new DataView(bytes.buffer);
}

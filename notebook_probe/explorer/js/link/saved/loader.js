/**
 * Opens a package, a text of base64, in an element: the panel's code, its style and its numbers. It
 * stands alone, so that it can be written into a file and into the metadata of a notebook.
 * @param {string} text
 * @param {HTMLElement} el
 */
export async function openPackage(text, el) {
  /** @type {(bytes: BlobPart) => Promise<ArrayBuffer>} */
  const inflated = (bytes) =>
    new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  /** @type {(bytes: BlobPart) => Promise<string>} */
  const textOf = async (bytes) => new TextDecoder().decode(await inflated(bytes));
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const begin = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(await textOf(bytes.subarray(4, begin)));
  /** @type {(place: [number, number]) => Uint8Array<ArrayBuffer>} */
  const part = ([at, n]) => bytes.subarray(begin + at, begin + at + n);
  const style = document.createElement("style");
  style.textContent = await textOf(part(head.css));
  const code = await textOf(part(head.esm));
  const blobUrl = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const panel = await import(blobUrl).finally(() => URL.revokeObjectURL(blobUrl));
  el.append(style);
  /** @type {(place: [number, number]) => Promise<ArrayBuffer>} */
  const read = (place) => inflated(part(place));
  return panel.default.render({ model: { saved: { ...head, read } }, el });
}

// A record read as docs/reference/format.md says, by zarrita: every array of one commit, as JSON.
// Numbers are printed as the bytes they have, so that two kinds of NaN stay two.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as zarr from "zarrita";

const folder = process.argv[2];
const root = JSON.parse(await readFile(join(folder, "zarr.json"), "utf8"));
if (!(root.attributes.format_version <= 2)) throw new Error("a newer format");
const nodes = root.consolidated_metadata.metadata;

// Shapes come from the commit record; an array's own zarr.json may be older.
const store = {
  async get(key) {
    const metadata = /^\/(.*)\/zarr\.json$/.exec(key);
    if (metadata) return new TextEncoder().encode(JSON.stringify(nodes[metadata[1]]));
    if (key === "/zarr.json") return new TextEncoder().encode(JSON.stringify(root));
    try {
      return new Uint8Array(await readFile(join(folder, key)));
    } catch (error) {
      if (error.code === "ENOENT") return undefined; // no chunk: the fill value
      throw error;
    }
  },
};

const arrays = {};
for (const [path, node] of Object.entries(nodes)) {
  if (node.node_type !== "array") continue;
  const array = await zarr.open.v3(zarr.root(store).resolve(path), { kind: "array" });
  const shape = array.shape;
  const { data } = shape.includes(0) ? { data: new Float32Array(0) } : await zarr.get(array);
  arrays[path] = {
    shape,
    dims: node.dimension_names,
    values: Array.isArray(data)
      ? data
      : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64"),
  };
}
console.log(JSON.stringify({ attributes: root.attributes, arrays }));

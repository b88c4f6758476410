/** Search at the edge: GET /?vector=0.9,0.1,0.2&family=warm. Wrangler takes the library's file for workerd, which has the WebAssembly compiled ahead. */
import { Columns, LodestoneError, VectorIndex } from "lodestone";

const MOODS = [
  ["fire", [1, 0.3, 0], "warm"],
  ["sunset", [1, 0.5, 0.3], "warm"],
  ["meadow", [0.2, 0.9, 0.2], "cool"],
  ["ocean", [0, 0.4, 0.9], "cool"],
];

let index;

/** Made by the first request: a worker may not compute before one comes. Larger ones are kept in R2 and read with VectorIndex.fromStream(object.body). */
async function createIndex() {
  const created = await VectorIndex.create({ dimension: 3, columns: new Columns({ family: "string" }) });
  for (const [id, vector, family] of MOODS) created.upsert(id, vector, { family });
  return created;
}

export default {
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const family = searchParams.get("family");
    const vector = (searchParams.get("vector") ?? "").split(",").map(Number);
    try {
      index ??= await createIndex();
      return Response.json({ build: index.build, ...index.search(vector, { k: 2, filter: family === null ? undefined : { family } }) });
    } catch (error) {
      const isInput =
        error instanceof TypeError || error instanceof RangeError || (error instanceof LodestoneError && error.code === "INVALID");
      return Response.json({ message: isInput ? error.message : "internal error" }, { status: isInput ? 400 : 500 });
    }
  },
};

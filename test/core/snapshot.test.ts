import { describe, expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { Xxh32 } from "../../src/core/snapshot.ts";
import { LodestoneError, ParallelVectorIndex, RowDirectory, VectorIndex } from "../../src/index.ts";
import { SIMILARITIES } from "../reference.ts";

async function sample(): Promise<VectorIndex> {
  const random = seededRandom(11);
  const index = await VectorIndex.create({ dimension: 5 });
  for (let i = 0; i < 40; i++)
    index.upsert(
      `id ${i} \u{1F600}`,
      Float32Array.from({ length: 5 }, () => random() - 0.5),
    );
  for (let i = 0; i < 40; i += 3) index.delete(`id ${i} \u{1F600}`);
  return index;
}

describe("snapshots", () => {
  it("fromBytes(toBytes()) has the same ids, vectors and answers, and gives the same bytes again", async () => {
    const index = await sample();
    const bytes = index.toBytes();
    const copy = await VectorIndex.fromBytes(bytes);
    expect([copy.size, copy.dimension]).toEqual([index.size, 5]);
    for (const [id] of index.rows.entries()) expect(copy.get(id)).toEqual(index.get(id));
    const query = [1, -2, 3, 0.5, 0.1];
    for (const similarity of SIMILARITIES) {
      expect(copy.search(query, { k: 30, similarity })).toEqual(index.search(query, { k: 30, similarity }));
    }
    expect(copy.toBytes()).toEqual(bytes);
  });

  it("an empty index round-trips too, and so does a view that starts at an odd address", async () => {
    const empty = await VectorIndex.create({ dimension: 7 });
    const bytes = empty.toBytes();
    const shifted = new Uint8Array(bytes.length + 1);
    shifted.set(bytes, 1);
    const copy = await VectorIndex.fromBytes(shifted.subarray(1));
    expect([copy.size, copy.dimension]).toEqual([0, 7]);
  });

  it("reads into a shared directory, where rows may differ", async () => {
    const index = await sample();
    const rows = new RowDirectory();
    rows.add("other");
    rows.add("id 7 \u{1F600}");
    const copy = await VectorIndex.fromBytes(index.toBytes(), { rows });
    expect(copy.get("id 7 \u{1F600}")).toEqual(index.get("id 7 \u{1F600}"));
    expect(copy.has("other")).toBe(false);
    expect(rows.size).toBe(index.size + 1);
  });

  it("every single flipped bit and every truncation is detected", async () => {
    const small = await VectorIndex.create({ dimension: 2 });
    small.upsert("a", [1, 2]);
    small.upsert("bc", [3, 4]);
    const bytes = small.toBytes();
    const corrupt = expect.objectContaining({ name: "LodestoneError", code: "CORRUPT" });
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = bytes.slice();
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      await expect(VectorIndex.fromBytes(damaged), `bit ${bit}`).rejects.toEqual(corrupt);
    }
    for (let length = 0; length < bytes.length; length++) {
      await expect(VectorIndex.fromBytes(bytes.slice(0, length)), `length ${length}`).rejects.toEqual(corrupt);
    }
    await expect(VectorIndex.fromBytes(new Uint8Array([...bytes, 0]))).rejects.toBeInstanceOf(LodestoneError);
  });

  it("a vector that is not finite is refused, also with the right checksum, and a shared directory is left unchanged", async () => {
    const small = await VectorIndex.create({ dimension: 2 });
    small.upsert("a", [1, 2]);
    const bytes = small.toBytes();
    new Float32Array(bytes.buffer, bytes.length - 8, 1)[0] = Number.NaN;
    const checksum = new Xxh32();
    checksum.update(bytes.subarray(0, -4));
    new Uint32Array(bytes.buffer, bytes.length - 4)[0] = checksum.digest();
    const rows = new RowDirectory();
    const refused = { code: "CORRUPT", message: expect.stringContaining("a vector is not finite") };
    await expect(VectorIndex.fromBytes(bytes, { rows })).rejects.toMatchObject(refused);
    await expect(ParallelVectorIndex.fromBytes(bytes, { rows, shards: 1 })).rejects.toMatchObject(refused);
    expect(rows.size).toBe(0);
  });

  it("the message names an unknown version", async () => {
    const bytes = (await sample()).toBytes();
    bytes[8] = 9;
    await expect(VectorIndex.fromBytes(bytes)).rejects.toThrow(/version 9, this library reads versions 1 to 4/);
  });
});

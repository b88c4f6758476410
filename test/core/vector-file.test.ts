/** Vectors in a file: the same answers as in memory, through changes and images; damage is never an answer. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { enableRelaxedSimd } from "../../src/cli/relaxed-simd.ts";
import { type Build, init, openVectorFile, ParallelVectorIndex, type VectorFile, VectorIndex, VectorStore } from "../../src/index.ts";
import { SIMILARITIES } from "../reference.ts";
import { DATA_KINDS, source } from "./data-kinds.ts";

enableRelaxedSimd();

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lodestone-vectors-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const newPath = (): string => join(folder, `${files++}.vectors`);

/** A file that counts, and fails when it is told to. */
function faulty(file: VectorFile): VectorFile & { fails: "read" | "write" | undefined; reads: number } {
  return {
    fails: undefined,
    reads: 0,
    read(buffer, options) {
      this.reads++;
      if (this.fails === "read") throw Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" });
      return file.read(buffer, options);
    },
    write(buffer, options) {
      if (this.fails === "write") throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
      return file.write(buffer, options);
    },
    getSize: () => file.getSize(),
    truncate: (size) => file.truncate(size),
    flush: () => file.flush(),
    close: () => file.close(),
  };
}

interface Pair {
  readonly inMemory: VectorIndex;
  readonly inFile: VectorIndex;
}

function compare({ inMemory, inFile }: Pair, queries: readonly Float32Array[], k: number, filter?: (id: string) => boolean): void {
  for (const similarity of SIMILARITIES) {
    const usable = queries.filter((query) => similarity !== "cosineSimilarity" || query.some((x) => x !== 0));
    for (const plan of ["auto", "sketches", "floats"] as const) {
      const options = { k, similarity, plan, ...(filter && { filter }) };
      expect(inFile.searchMany(usable, options), `${similarity} ${plan}`).toEqual(inMemory.searchMany(usable, options));
      for (const query of usable.slice(0, 2))
        expect(inFile.search(query, options), `${similarity} ${plan}`).toEqual(inMemory.search(query, options));
    }
  }
}

describe.each(["relaxed", "simd"] as readonly Build[])("vectors in a file (%s build)", (build) => {
  beforeAll(() => init({ build }));
  afterAll(() => init({}));

  it.each(Object.keys(DATA_KINDS))("%s: answers equal those in memory in every bit, through changes and a reload", async (kind) => {
    const dimension = 100;
    const ROWS = 4_300;
    const data = source(kind, dimension, 5);
    const random = seededRandom(9);
    const path = newPath();
    const file = openVectorFile(path);
    const inMemory = await VectorIndex.create({ dimension });
    let inFile = await VectorIndex.create({ dimension, vectors: new VectorStore(file) });
    const both = (change: (index: VectorIndex) => void): void => {
      change(inMemory);
      change(inFile);
    };
    // More than two segments of 2,048 rows.
    for (let i = 0; i < ROWS; i++) {
      const vector = data.next();
      both((index) => index.upsert(`id${i}`, vector));
    }
    for (let step = 0; step < 2; step++) {
      const queries = [data.next(), ...Array.from({ length: 7 }, () => data.next())];
      compare({ inMemory, inFile }, queries, 10);
      compare({ inMemory, inFile }, queries, 3, (id) => Number(id.slice(2)) % 97 === step);
      for (let i = 0; i < 200; i++) {
        const id = `id${Math.floor(random() * ROWS)}`;
        const vector = data.next();
        both((index) => (i % 3 === 0 ? index.delete(id) : index.upsert(id, vector)));
      }
      const bytes = inFile.toBytes();
      expect(bytes.length).toBeLessThan(statSync(path).size);
      inFile.free();
      inFile = await VectorIndex.fromBytes(bytes, { vectors: new VectorStore(file) });
      expect(inFile.size).toBe(inMemory.size);
    }
    for (const [id, vector] of inMemory.entries()) expect(inFile.get(id)).toEqual(vector);
    file.close();
  });

  it("memory holds no vectors, and a search reads few of them", async () => {
    const dimension = 256;
    const data = source("a steep spectrum, in directions of its own", dimension, 3);
    const file = openVectorFile(newPath());
    const index = await VectorIndex.create({ dimension, vectors: new VectorStore(file) });
    for (let i = 0; i < 40_000; i++) index.upsert(`id${i}`, data.next());
    // 8 MiB of blocks in which rows arrive, whatever the size.
    expect(index.memoryBytes).toBeLessThan(0.75 * 40_000 * dimension * 4);
    index.search(data.next());
    expect(index.lastScan.fetchedRows).toBeGreaterThan(0);
    expect(index.lastScan.fetchedRows).toBeLessThan(2_000);
    expect(index.lastScan.fetchedBytes).toBe(index.lastScan.fetchedRows * dimension * 4);
    file.close();
  });
});

describe("the file of the vectors", () => {
  const dimension = 64;
  const rows = 5_000;

  async function filled(file: VectorFile): Promise<{ index: VectorIndex; next: () => Float32Array }> {
    const data = source("random directions", dimension, 1);
    const index = await VectorIndex.create({ dimension, vectors: new VectorStore(file) });
    for (let i = 0; i < rows; i++) index.upsert(`id${i}`, data.next());
    index.toBytes(); // all rows are in the file
    return { index, next: () => data.next() };
  }

  const damage = expect.objectContaining({ name: "LodestoneError", code: "CORRUPT" });
  const all = { k: 100, plan: "floats" } as const;

  it("does not grow when rows are changed or deleted and added again", async () => {
    const path = newPath();
    const { index, next } = await filled(openVectorFile(path));
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < rows; i++) {
        if (i % 2 === 0) index.upsert(`id${i}`, next());
        else index.delete(`id${i}`);
      }
      for (let i = 1; i < rows; i += 2) index.upsert(`id${i}`, next());
      index.toBytes();
    }
    // What the image before refers to, what is there now, and a block.
    expect(statSync(path).size).toBeLessThan(3 * rows * dimension * 4);
  });

  it("ends where its last row does, and images of before that are as good", async () => {
    const path = newPath();
    const file = openVectorFile(path);
    const { index } = await filled(file);
    for (let i = 1_000; i < rows; i++) index.delete(`id${i}`);
    const bytes = index.toBytes();
    const copy = await VectorIndex.fromBytes(bytes, { vectors: new VectorStore(file) });
    expect([copy.size, statSync(path).size]).toEqual([1_000, 1_000 * dimension * 4]);
    expect([...copy.entries()]).toEqual([...index.entries()]);
  });

  it("keeps what the last image refers to until there is another one", async () => {
    const file = openVectorFile(newPath());
    const { index, next } = await filled(file);
    const before = new Map(index.entries());
    const bytes = index.toBytes();
    for (let i = 0; i < rows; i++) index.upsert(`id${i}`, next());
    for (let i = 0; i < 500; i++) index.delete(`id${i}`);
    const copy = await VectorIndex.fromBytes(bytes, { vectors: new VectorStore(file) });
    for (const [id, vector] of before) expect(copy.get(id)).toEqual(vector);
  });

  it.each(Object.keys(DATA_KINDS))("a bit changed in any row of %s: CORRUPT, and no answer", async (kind) => {
    const wide = 100; // its last four numbers are not part of a block of sixteen
    const rowBytes = wide * 4;
    const file = openVectorFile(newPath());
    const data = source(kind, wide, 6);
    const index = await VectorIndex.create({ dimension: wide, vectors: new VectorStore(file) });
    for (let i = 0; i < 300; i++) index.upsert(`id${i}`, data.next());
    for (let i = 0; i < 300; i += 3) index.upsert(`id${i}`, data.next());
    index.toBytes(); // all rows are in the file
    // Written one by one.
    for (let i = 1; i < 300; i += 3) index.upsert(`id${i}`, data.next());
    const query = data.next();
    const request = { k: 300, similarity: "l1", plan: "floats" } as const;
    const expected = index.search(query, request);
    const used = Array.from({ length: file.getSize() / rowBytes }, (_, at) => at).filter((at) => isUsed(at));
    expect(used).toHaveLength(300);
    const random = seededRandom(4);
    const byte = new Uint8Array(1);
    for (let i = 0; i < 100; i++) {
      const at = used[Math.floor(random() * 300)]! * rowBytes + Math.floor(random() * rowBytes);
      file.read(byte, { at });
      file.write(Uint8Array.of(byte[0]! ^ (1 << Math.floor(random() * 8))), { at });
      expect(() => index.search(query, request), `byte ${at}`).toThrow(damage);
      file.write(byte, { at });
    }
    expect(index.search(query, request)).toEqual(expected);

    /** Whether a row lies there: then a change of every byte is noticed. */
    function isUsed(place: number): boolean {
      const row = new Uint8Array(rowBytes);
      file.read(row, { at: place * rowBytes });
      file.write(
        row.map((x) => ~x),
        { at: place * rowBytes },
      );
      try {
        index.search(query, request);
        return false;
      } catch {
        return true;
      } finally {
        file.write(row, { at: place * rowBytes });
      }
    }
  });

  it("rows that have swapped places, a file cut short, a read error: CORRUPT, and no answer", async () => {
    const path = newPath();
    const file = faulty(openVectorFile(path));
    const { index, next } = await filled(file);
    const rowBytes = dimension * 4;
    const row = (at: number): Uint8Array<ArrayBuffer> => {
      const bytes = new Uint8Array(rowBytes);
      file.read(bytes, { at: at * rowBytes });
      return bytes;
    };
    const query = next();
    const expected = index.search(query, all);
    const [one, other] = [row(10), row(11)];
    file.write(other, { at: 10 * rowBytes });
    file.write(one, { at: 11 * rowBytes });
    expect(() => index.search(query, all)).toThrow(damage);
    file.write(one, { at: 10 * rowBytes });
    file.write(other, { at: 11 * rowBytes });
    const many = Array.from({ length: 12 }, next);
    const answers = index.searchMany(many, { k: 100 });
    file.fails = "read";
    expect(() => index.search(query, all)).toThrow(damage);
    // Several times: what one that was ended leaves behind is nothing to the next.
    for (let i = 0; i < 10; i++) expect(() => index.searchMany(many, { k: 100 })).toThrow(damage);
    file.fails = undefined;
    expect(index.search(query, all)).toEqual(expected);
    expect(index.searchMany(many, { k: 100 })).toEqual(answers);
    file.truncate((rows - 1) * rowBytes);
    expect(() => index.search(query, all)).toThrow(damage);
  });

  it("a full disk refuses the row that has no place, and nothing else", async () => {
    const file = faulty(openVectorFile(newPath()));
    const { index, next } = await filled(file);
    const full = expect.objectContaining({ name: "LodestoneError", code: "OUT_OF_MEMORY" });
    const query = next();
    const [before, vector] = [index.search(query, all), index.get("id7")];
    file.fails = "write";
    expect(() => index.upsert("id7", next())).toThrow(full);
    expect(() => index.toBytes()).not.toThrow();
    expect(index.get("id7")).toEqual(vector);
    expect(index.search(query, all)).toEqual(before);
    // New rows have a block in memory until the next ones want it.
    let stored = 0;
    expect(() => {
      for (; stored < 20_000; stored++) index.upsert(`new${stored}`, next());
    }).toThrow(full);
    expect(index.size).toBe(rows + stored);
    file.fails = undefined;
    index.upsert("id7", next());
    expect(index.size).toBe(rows + stored);
    expect(index.search(query, all).totalCount).toBe(rows + stored);
  });

  it("an image of another file, or none, is refused", async () => {
    const { index } = await filled(openVectorFile(newPath()));
    const bytes = index.toBytes();
    await expect(VectorIndex.fromBytes(bytes)).rejects.toThrow(/give it with the option `vectors`/);
    await expect(VectorIndex.fromBytes(bytes, { vectors: new VectorStore(openVectorFile(newPath())) })).rejects.toEqual(damage);
  });

  it("shards keep theirs in files of a folder, and load them from there", async () => {
    const data = source("clusters", dimension, 8);
    const vectors = mkdtempSync(join(folder, "shards-"));
    const inMemory = await VectorIndex.create({ dimension });
    const index = await ParallelVectorIndex.create({ dimension, shards: 2, vectors });
    for (let i = 0; i < 6_000; i += 100) {
      const ids = Array.from({ length: 100 }, (_, n) => `id${i + n}`);
      const matrix = new Float32Array(100 * dimension);
      for (let n = 0; n < 100; n++) matrix.set(data.next(), n * dimension);
      inMemory.upsertMany(ids, matrix);
      await index.upsertMany(ids, matrix);
    }
    for (let i = 0; i < 6_000; i += 7) {
      inMemory.delete(`id${i}`);
      await index.delete(`id${i}`);
    }
    const bytes = await index.toBytes();
    await index.free();
    const loaded = await ParallelVectorIndex.fromBytes(bytes, { vectors });
    expect([loaded.shards, loaded.size]).toEqual([2, inMemory.size]);
    const query = data.next();
    for (const similarity of SIMILARITIES) {
      expect(await loaded.search(query, { k: 20, similarity })).toEqual(inMemory.search(query, { k: 20, similarity }));
    }
    await loaded.upsert("id0", query);
    inMemory.upsert("id0", query);
    expect(await loaded.search(query)).toEqual(inMemory.search(query));
    expect(await loaded.get("id1")).toEqual(inMemory.get("id1"));
    await loaded.free();
  });
});

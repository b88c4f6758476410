import { expect, it, vi } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { LodestoneError, ParallelVectorIndex, RowDirectory, VectorIndex } from "../../src/index.ts";
import { describeBuilds } from "./builds.ts";

const DIMENSION = 64;
const COUNT = 9000;

async function sample(kind: "one" | "shards"): Promise<VectorIndex | ParallelVectorIndex> {
  const random = seededRandom(5);
  const index =
    kind === "one"
      ? await VectorIndex.create({ dimension: DIMENSION })
      : await ParallelVectorIndex.create({ dimension: DIMENSION, shards: 2 });
  const matrix = Float32Array.from({ length: COUNT * DIMENSION }, () => random() - 0.5);
  await index.upsertMany(
    Array.from({ length: COUNT }, (_, i) => `ä${i} \u{1F600}`),
    matrix,
  );
  for (let i = 0; i < COUNT; i += 3) await index.delete(`ä${i} \u{1F600}`);
  return index;
}

async function collect(stream: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

describeBuilds("indexes as streams", (build) => {
  it.each(["one", "shards"] as const)("%s: the pieces are those of toBytes, none above 1 MB, with progress", async (kind) => {
    const index = await sample(kind);
    const bytes = await index.toBytes();
    const progress: number[] = [];
    const pieces = await collect(index.toStream({ onProgress: ({ rows, totalRows }) => progress.push(rows / totalRows) }));
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(2 ** 20);
    expect(progress.length).toBe(Math.ceil((6000 * DIMENSION * 4) / 2 ** 20));
    expect(progress.at(-1)).toBe(1);
    await index.free();
  });

  it("reads streams, blobs and pieces of any size into either kind of index", async () => {
    const index = await sample("one");
    const bytes = (await index.toBytes()) as Uint8Array<ArrayBuffer>;
    const query = Array.from({ length: DIMENSION }, (_, i) => i - 30.5);
    const expected = await index.search(query, { k: 20 });
    function* oddPieces() {
      for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7) % 100_003) yield bytes.subarray(at, at + size);
    }
    for (const source of [() => index.toStream(), () => new Blob([bytes]), oddPieces, () => bytes]) {
      const progress: number[] = [];
      const one = await VectorIndex.fromStream(source(), { onProgress: ({ rows }) => progress.push(rows) });
      expect([one.build, one.search(query, { k: 20 })]).toEqual([build, expected]);
      expect(progress.at(-1)).toBe(one.size);
      const shards = await ParallelVectorIndex.fromStream(source(), { shards: 2 });
      expect(await shards.search(query, { k: 20 })).toEqual(expected);
      await shards.free();
    }
  });

  it("an aborted load rejects with the reason, cancels its source, and leaves a shared directory unchanged", async () => {
    const bytes = await (await sample("one")).toBytes();
    const rows = new RowDirectory();
    rows.add("ä1 \u{1F600}");
    const abort = new AbortController();
    let cancelled: unknown;
    let at = 0;
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(bytes.slice(at, at + 100_000));
        at += 100_000;
      },
      cancel(reason) {
        cancelled = reason;
      },
    });
    const reason = new Error("enough");
    const loading = VectorIndex.fromStream(source, { rows, signal: abort.signal, onProgress: () => abort.abort(reason) });
    await expect(loading).rejects.toBe(reason);
    expect(cancelled).toBe(reason);
    expect([...rows.entries()].map(([id]) => id)).toEqual(["ä1 \u{1F600}"]);
  });

  it("an abort ends a load whose source never answers; so does a signal that is aborted from the start", async () => {
    const abort = new AbortController();
    const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const loading = VectorIndex.fromStream(silent, { signal: abort.signal });
    abort.abort("over");
    await expect(loading).rejects.toBe("over");
    await expect(VectorIndex.fromStream(new Uint8Array(0), { signal: abort.signal })).rejects.toBe("over");
  });

  it("an aborted save fails with the reason", async () => {
    for (const kind of ["one", "shards"] as const) {
      const index = await sample(kind);
      const abort = new AbortController();
      const reason = new Error("enough");
      await expect(collect(index.toStream({ signal: abort.signal, onProgress: () => abort.abort(reason) }))).rejects.toBe(reason);
      await index.free();
    }
  });

  it("toStream collects ids in steps, so that others are served in between", async () => {
    for (const Index of [VectorIndex, ParallelVectorIndex]) {
      const rows = new RowDirectory();
      const index = await Index.create({ dimension: 1, rows, shards: 1 });
      const ids = Array.from({ length: 50_000 }, (_, i) => `id${i}`);
      await index.upsertMany(ids, new Float32Array(ids.length));
      // As on a machine so slow that each step takes a whole slice.
      const clock = vi.spyOn(Date, "now").mockImplementation(() => (clock.mock.calls.length + 1) * 1000);
      const idOf = vi.spyOn(rows, "idOf");
      const perTurn: number[] = [];
      let isOver = false;
      const turn = () => {
        perTurn.push(idOf.mock.calls.length);
        idOf.mockClear();
        if (!isOver) setImmediate(turn);
      };
      turn();
      await collect(index.toStream());
      isOver = true;
      clock.mockRestore();
      expect(perTurn.reduce((sum, n) => sum + n, 0)).toBe(ids.length);
      expect(Math.max(...perTurn)).toBeLessThan(ids.length / 5);
      await index.free();
    }
  });

  it("damage is detected while reading (truncated, longer, one bit changed), and a shared directory is left unchanged", async () => {
    const small = await VectorIndex.create({ dimension: 2 });
    small.upsertMany(["a", "bc"], Float32Array.of(1, 2, 3, 4));
    const bytes = small.toBytes();
    const rows = new RowDirectory();
    const flipped = bytes.slice();
    flipped[40]! ^= 1;
    for (const damaged of [bytes.subarray(0, -1), Uint8Array.of(...bytes, 0), flipped]) {
      await expect(VectorIndex.fromStream([damaged], { rows })).rejects.toMatchObject({ name: "LodestoneError", code: "CORRUPT" });
      await expect(ParallelVectorIndex.fromStream([damaged], { rows, shards: 1 })).rejects.toBeInstanceOf(LodestoneError);
      expect(rows.size).toBe(0);
    }
    await expect(VectorIndex.fromStream(5 as unknown as Uint8Array)).rejects.toThrow(/not a ReadableStream, Blob/);
  });
});

describeBuilds("searches that are given up", () => {
  it("reject with the reason at once; those that wait are not begun, the others answer", async () => {
    const index = (await sample("shards")) as ParallelVectorIndex;
    const query = new Float32Array(DIMENSION).fill(1);
    const abort = new AbortController();
    const kept = [index.search(query), index.search(query)];
    const given = Array.from({ length: 20 }, () => index.search(query, { signal: abort.signal }));
    const last = index.search(query);
    abort.abort("enough");
    expect((await Promise.allSettled(given)).map((result) => result.status === "rejected" && result.reason)).toEqual(
      given.map(() => "enough"),
    );
    const answers = [...(await Promise.all(kept)), await last];
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    await expect(index.search(query, { signal: abort.signal })).rejects.toBe("enough");
    await index.free();
  });

  it("offset and scoreThreshold cut the same ranking", async () => {
    for (const kind of ["one", "shards"] as const) {
      const index = await sample(kind);
      const query = new Float32Array(DIMENSION).fill(1);
      const whole = await index.search(query, { k: 30 });
      expect(await index.search(query, { k: 10, offset: 7 })).toEqual({ ...whole, results: whole.results.slice(7, 17) });
      const scoreThreshold = whole.results[4]!.score;
      expect(await index.search(query, { k: 30, scoreThreshold })).toEqual({ ...whole, results: whole.results.slice(0, 5) });
      await expect((async () => index.search(query, { offset: -1 }))()).rejects.toThrow(/offset is -1/);
      await expect((async () => index.search(query, { scoreThreshold: Number.NaN }))()).rejects.toThrow(/scoreThreshold is NaN/);
      await expect((async () => index.search(query, { filter: { year: 3 } }))()).rejects.toThrow(/needs columns/);
      await index.free();
    }
  });
});

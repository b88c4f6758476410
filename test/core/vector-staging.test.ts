import { afterEach, expect, test, vi } from "vitest";
import { VectorStaging } from "../../src/core/row-writes.ts";
import { ParallelVectorIndex } from "../../src/index.ts";

afterEach(() => vi.unstubAllGlobals());

test("a buffer that was given back is used again, and never before", () => {
  const staging = new VectorStaging();
  const first = staging.take(1_000);
  const second = staging.take(500);
  expect(second.buffer).not.toBe(first.buffer);
  staging.give(first);
  const third = staging.take(700);
  expect(third.buffer).toBe(first.buffer);
  expect([first.length, second.length, third.length]).toEqual([1_000, 500, 700]);
});

test("holds few buffers; what goes beyond them, or is long, is not shared", () => {
  const staging = new VectorStaging();
  const taken = Array.from({ length: 20 }, () => staging.take(100));
  expect(taken.filter(({ buffer }) => buffer instanceof SharedArrayBuffer)).toHaveLength(8);
  for (const vectors of taken) staging.give(vectors);
  expect(
    new Set(Array.from({ length: 20 }, () => staging.take(50_000).buffer).filter((buffer) => buffer instanceof SharedArrayBuffer)).size,
  ).toBe(8);
  expect(new VectorStaging().take(2 ** 20).buffer).toBeInstanceOf(ArrayBuffer);
});

test.each([true, false])("many writes in flight keep their own vectors (shared memory: %s)", async (isShared) => {
  if (!isShared) vi.stubGlobal("SharedArrayBuffer", undefined);
  const index = await ParallelVectorIndex.create({ dimension: 8, shards: 2 });
  try {
    const batches = Array.from({ length: 40 }, (_, b) => Array.from({ length: 700 }, (_, i) => 700 * b + i));
    const writes = batches.map((batch) =>
      index.upsertMany(
        batch.map((n) => `r${n}`),
        Float32Array.from({ length: 8 * batch.length }, (_, i) => batch[i >> 3]! + (i & 7)),
      ),
    );
    await Promise.all(writes);
    expect(index.size).toBe(28_000);
    for (const n of [0, 511, 512, 699, 700, 14_335, 27_999]) {
      expect(await index.get(`r${n}`)).toEqual(Float32Array.from({ length: 8 }, (_, i) => n + i));
    }
  } finally {
    await index.free();
  }
});

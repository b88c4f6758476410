/** Rows whose codes are made later: the same answers before, between and after; and when a worker makes them. */
import { afterEach, expect, it, vi } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { createShard } from "../../src/core/create-shard.ts";
import { DeferredCoding } from "../../src/core/deferred-coding.ts";
import { ParallelVectorIndex, RowDirectory, VectorIndex } from "../../src/index.ts";
import { SIMILARITIES } from "../reference.ts";
import { describeBuilds } from "./builds.ts";
import { source } from "./data-kinds.ts";

const DIMENSION = 128;
/** Several segments of 2,048 rows, the last one partly full. */
const COUNT = 5 * 2048 + 300;
const isIdBefore = (a: number, b: number): boolean => a < b;

afterEach(() => void vi.useRealTimers());

describeBuilds("codes that wait", (build) => {
  it("change no answer, at any time, while rows change", async () => {
    const data = source("a steep spectrum, in directions of its own", DIMENSION, 3);
    const random = seededRandom(4);
    const now = await createShard({ dimension: DIMENSION, isIdBefore });
    const later = await createShard({ dimension: DIMENSION, isIdBefore });
    const set = (row: number): void => {
      const vector = data.next();
      now.set(row, vector);
      later.set(row, vector, true);
    };
    for (let row = 0; row < COUNT; row++) set(row);
    const mask = Uint32Array.from({ length: Math.ceil(COUNT / 32) }, () => random() * 2 ** 32);
    const read: number[] = [];
    const check = (): void => {
      const queries = Array.from({ length: 8 }, () => data.next());
      for (const similarity of SIMILARITIES) {
        for (const options of [
          { k: 10, similarity },
          { k: 3, similarity, mask },
        ]) {
          expect(later.search(queries[0]!, options)).toEqual(now.search(queries[0]!, options));
          read.push(later.lastScan.bytes);
        }
      }
    };
    check();
    let waits = build !== "scalar";
    for (let step = 0; waits; step++) {
      waits = later.code();
      expect(step).toBeLessThan(5);
      for (let i = 0; i < 20; i++) set(Math.floor(random() * COUNT));
      const cleared = Math.floor(random() * COUNT);
      expect(later.clear(cleared)).toBe(now.clear(cleared));
      check();
    }
    expect(later.code()).toBe(false);
    // Read as float32 before, by codes afterwards.
    if (build !== "scalar") {
      expect(read[0]).toBeGreaterThan(4 * DIMENSION * COUNT);
      expect(read.at(-6)).toBeLessThan(2 * DIMENSION * COUNT);
    }
    // Many queries do not wait for them.
    const many = await createShard({ dimension: DIMENSION, isIdBefore });
    for (let row = 0; row < COUNT; row++) many.set(row, data.next(), true);
    const queries = Float32Array.from(Array.from({ length: 8 }, () => [...data.next()]).flat());
    const answers = many.search(queries, { k: 10, similarity: "cosineSimilarity" });
    for (const [i, answer] of answers.entries()) {
      const query = queries.slice(i * DIMENSION, (i + 1) * DIMENSION);
      expect(answer).toEqual(many.search(query, { k: 10, similarity: "cosineSimilarity", plan: "floats" })[0]);
    }
    for (const shard of [now, later, many]) shard.free();
  });

  it("are made by the workers of an index, whose answers they do not change", async () => {
    const data = source("a steep spectrum, in directions of its own", DIMENSION, 5);
    const rows = new RowDirectory();
    const [one, parallel] = [
      await VectorIndex.create({ dimension: DIMENSION, rows }),
      await ParallelVectorIndex.create({ dimension: DIMENSION, rows, shards: 1 }),
    ];
    const ids = Array.from({ length: COUNT }, (_, i) => `r${i}`);
    const own = ids.map((id) => rows.add(id));
    const matrix = new Float32Array(COUNT * DIMENSION);
    for (let i = 0; i < COUNT; i++) matrix.set(data.next(), i * DIMENSION);
    one.setRows(own, matrix);
    await parallel.setRows(own, ids, matrix, { isDeferred: true });
    for (let i = 0; i < 12; i++) {
      const query = data.next();
      expect(await parallel.search(query)).toEqual(one.search(query));
    }
    await parallel.free();
    one.free();
  });
});

it("a worker codes while nothing is asked of it, and a part after each search", () => {
  vi.useFakeTimers();
  let left = 0;
  let calls = 0;
  const code = (): boolean => {
    calls++;
    return --left > 0;
  };
  const coding = new DeferredCoding({ code } as never);
  coding.asked(true);
  vi.runAllTimers();
  expect(calls).toBe(0);
  left = 10;
  coding.begin();
  coding.asked(false);
  vi.advanceTimersByTime(49);
  // More comes: it is not quiet yet.
  coding.asked(false);
  vi.advanceTimersByTime(49);
  expect(calls).toBe(0);
  coding.asked(true);
  coding.asked(true);
  expect(calls).toBe(2);
  vi.runAllTimers();
  expect([calls, left]).toEqual([10, 0]);
  coding.asked(true);
  vi.runAllTimers();
  expect(calls).toBe(10);
});

import { readFileSync } from "node:fs";
import { instantiate } from "@assemblyscript/loader";
import { expect, test } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { coreModule } from "../../src/core/wasm-module.ts";
import { VectorIndex } from "../../src/index.ts";
import { CORE_HOST } from "./core-host.ts";

interface Core extends Record<string, unknown> {
  memory: WebAssembly.Memory;
  initialize(dimension: number, maximumPages: number, outside: number): number;
  reserve(rows: number): number;
  usedBytes(): bigint;
}

const PAGE_BYTES = 65536;

async function shardOf(dimension: number, maximumPages: number): Promise<Core> {
  const { exports } = await instantiate<Core>((await coreModule()) as WebAssembly.Module, { host: CORE_HOST });
  exports.initialize(dimension, maximumPages, 0);
  return exports;
}

test("memory grows in few steps, each by a share of what there is: V8 collects the heap at nearly every one", async () => {
  const core = await shardOf(128, 65_536);
  const sizes = new Set<number>();
  for (let rows = 256; rows <= 400_000; rows += 256) {
    expect(core.reserve(rows)).toBe(1);
    sizes.add(core.memory.buffer.byteLength);
  }
  expect(sizes.size).toBeLessThan(80);
  expect(core.memory.buffer.byteLength).toBeLessThan(1.13 * Number(core.usedBytes()) + PAGE_BYTES);
});

test("near its limit memory grows by what is missing", async () => {
  const pages = 400;
  const core = await shardOf(128, pages);
  let rows = 0;
  while (core.reserve(rows + 256) === 1) rows += 256;
  expect(core.memory.buffer.byteLength).toBeLessThanOrEqual(pages * PAGE_BYTES);
  expect(Number(core.usedBytes())).toBeGreaterThan(0.9 * pages * PAGE_BYTES);
});

test.each([128, 384])("a vector of %i dimensions takes what docs/library.md says", async (dimension) => {
  const library = readFileSync(new URL("../../docs/library.md", import.meta.url), "utf8");
  const [, rows, least, most] = /From (\S+) vectors on, one takes (\S+) to (\S+) bytes per dimension/.exec(library)!;
  const count = Number(rows!.replace(",", ""));
  const random = seededRandom(7);
  const index = await VectorIndex.create({ dimension });
  const ids = Array.from({ length: count }, (_, i) => `id${i}`);
  index.upsertMany(
    ids,
    Float32Array.from({ length: count * dimension }, () => random() - 0.5),
  );
  index.search(new Float32Array(dimension).fill(1));
  const bytes = Number((index.memoryBytes / (count * dimension)).toFixed(1));
  expect(bytes).toBeGreaterThanOrEqual(Number(least));
  expect(bytes).toBeLessThanOrEqual(Number(most));
  index.free();
});

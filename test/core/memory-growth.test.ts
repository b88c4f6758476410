import { instantiate } from "@assemblyscript/loader";
import { expect, test } from "vitest";
import { coreModule } from "../../src/core/wasm-module.ts";

interface Core extends Record<string, unknown> {
  memory: WebAssembly.Memory;
  initialize(dimension: number, maximumPages: number): number;
  reserveRows(rows: number): number;
  usedBytes(): bigint;
}

const PAGE_BYTES = 65536;

async function shardOf(dimension: number, maximumPages: number): Promise<Core> {
  const host = { isIdBefore: () => 0, tellScores: () => {}, sharedFloor: () => -1 };
  const { exports } = await instantiate<Core>((await coreModule()) as WebAssembly.Module, { host });
  exports.initialize(dimension, maximumPages);
  return exports;
}

test("memory grows in few steps, each by a share of what there is: V8 collects the heap at nearly every one", async () => {
  const core = await shardOf(128, 65_536);
  const sizes = new Set<number>();
  for (let rows = 256; rows <= 400_000; rows += 256) {
    expect(core.reserveRows(rows)).toBe(1);
    sizes.add(core.memory.buffer.byteLength);
  }
  expect(sizes.size).toBeLessThan(80);
  expect(core.memory.buffer.byteLength).toBeLessThan(1.13 * Number(core.usedBytes()) + PAGE_BYTES);
});

test("near its limit memory grows by what is missing", async () => {
  const pages = 400;
  const core = await shardOf(128, pages);
  let rows = 0;
  while (core.reserveRows(rows + 256) === 1) rows += 256;
  expect(core.memory.buffer.byteLength).toBeLessThanOrEqual(pages * PAGE_BYTES);
  expect(Number(core.usedBytes())).toBeGreaterThan(0.9 * pages * PAGE_BYTES);
});

import { ScalarShard } from "./scalar-shard.ts";
import type { ShardOptions, VectorShard } from "./vector-shard.ts";
import { coreModule, type WasmModule } from "./wasm-module.ts";
import { WasmShard } from "./wasm-shard.ts";

/**
 * Creates an empty shard with the build that this runtime supports.
 * @throws {LodestoneError} OUT_OF_MEMORY when the memory limit is too small for one.
 */
export async function createShard(options: ShardOptions): Promise<VectorShard> {
  return createShardOf(await coreModule(), options);
}

/** Creates an empty shard of a compiled build, or of the scalar one. */
export async function createShardOf(module: WasmModule | undefined, options: ShardOptions): Promise<VectorShard> {
  return module === undefined ? new ScalarShard(options) : WasmShard.create(module, options);
}

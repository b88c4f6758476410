import { ScalarShard } from "./scalar-shard.ts";
import type { ShardOptions, VectorShard } from "./vector-shard.ts";
import { coreModule, type WasmModule } from "./wasm-module.ts";
import { WasmShard } from "./wasm-shard.ts";

/** An empty shard of the build that this runtime has. @throws {LodestoneError} OUT_OF_MEMORY when the memory allowed does not hold one. */
export async function createShard(options: ShardOptions): Promise<VectorShard> {
  return createShardOf(await coreModule(), options);
}

/** An empty shard of a compiled build, or of the scalar one. */
export async function createShardOf(module: WasmModule | undefined, options: ShardOptions): Promise<VectorShard> {
  return module === undefined ? new ScalarShard(options) : WasmShard.create(module, options);
}

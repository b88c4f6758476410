/** Gets the compiled module of assembly/: inlined bytes by default, or what `init({ wasm })` gave. Compiled once, shared by all shards. */
import { SIMD_WASM } from "./wasm-bytes.js";

/** Bytes of a module, or a compiled one, as `import module from "lodestone/wasm"` gives it on edge runtimes. */
export type WasmSource = WebAssembly.Module | BufferSource;

let override: WasmSource | undefined;
let compiled: Promise<WebAssembly.Module> | undefined;

/**
 * Optional; call it before the first index is created. `wasm` replaces the inlined bytes by those of `lodestone/wasm`, for runtimes that only take modules compiled
 * ahead of time.
 */
export function init(options: { wasm: WasmSource }): void {
  override = options.wasm;
  compiled = undefined;
}

/** @internal */
export function coreModule(): Promise<WebAssembly.Module> {
  compiled ??=
    override instanceof WebAssembly.Module ? Promise.resolve(override) : WebAssembly.compile(override ?? decodeBase64(SIMD_WASM));
  return compiled;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

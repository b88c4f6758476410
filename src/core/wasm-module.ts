/**
 * Chooses the build of the scoring core: the best that this runtime has, or what `init` asked for. All give identical answers.
 *
 *   simd     WebAssembly with SIMD: Node 16.4, Chrome 91, Firefox 89, Safari 16.4
 *   scalar   plain JavaScript, where WebAssembly is missing or forbidden
 */
import { SIMD_WASM } from "./wasm-bytes.js";

/** Bytes of a module, or a compiled one, as `import module from "lodestone/wasm"` gives it on edge runtimes. */
export type WasmSource = WebAssembly.Module | BufferSource;

export type Build = "simd" | "scalar";

export interface InitOptions {
  /** Replaces the inlined bytes by those of `lodestone/wasm`, for runtimes that only take modules compiled ahead of time. */
  wasm?: WasmSource;
  /** Asks for one build; an index cannot be created if the runtime does not have it. */
  build?: Build;
}

let requested: InitOptions = {};
let chosen: Promise<WebAssembly.Module | undefined> | undefined;

/** Optional. Applies to indexes created afterwards. */
export function init(options: InitOptions): void {
  requested = { ...options };
  chosen = undefined;
}

/** @internal The compiled module, once for all shards, or undefined for the scalar build. */
export function coreModule(): Promise<WebAssembly.Module | undefined> {
  chosen ??= choose(requested);
  return chosen;
}

async function choose({ wasm, build }: InitOptions): Promise<WebAssembly.Module | undefined> {
  if (build === "scalar") return undefined;
  if (wasm instanceof WebAssembly.Module) return wasm;
  const bytes = wasm ?? decodeBase64(SIMD_WASM);
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    // A Content-Security-Policy forbids the compile, or the runtime has no SIMD.
    if (wasm === undefined && build === undefined) return undefined;
    throw error;
  }
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

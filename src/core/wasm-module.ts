/**
 * Chooses the build of the scoring core: the best that this runtime has, or what `init` asked for. All give identical answers.
 *
 *   relaxed  WebAssembly with relaxed SIMD: Node 22, Chrome 114, Firefox 145; Node 20 with RELAXED_SIMD_FLAG
 *   simd     WebAssembly with SIMD: Node 16.4, Chrome 91, Firefox 89, Safari 16.4
 *   scalar   plain JavaScript, where WebAssembly is missing or forbidden
 */
import { RELAXED_WASM, SIMD_WASM } from "./wasm-bytes.js";

/** Bytes of a module, or a compiled one, as `import module from "lodestone/wasm"` gives it on edge runtimes. */
export type WasmSource = WebAssembly.Module | BufferSource;

export type Build = "relaxed" | "simd" | "scalar";

export interface InitOptions {
  /** Replaces the inlined bytes by those of `lodestone/wasm` or `lodestone/wasm/relaxed`, for runtimes that only take modules compiled ahead of time. */
  wasm?: WasmSource;
  /** Asks for one build; an index cannot be created if the runtime does not have it. */
  build?: Build;
}

/**
 * Node 20 runs the relaxed build, the faster one, after `v8.setFlagsFromString(RELAXED_SIMD_FLAG)`, called before the first index is created. That
 * changes the whole process, so an application may do it and this library never does. Node 22 and later need nothing.
 */
export const RELAXED_SIMD_FLAG = "--experimental-wasm-relaxed-simd";

let requested: InitOptions = {};
let chosen: Promise<WebAssembly.Module | undefined> | undefined;

/** Optional. Applies to indexes created afterwards. */
export function init(options: InitOptions): void {
  requested = { ...options };
  chosen = undefined;
}

/** @internal What was asked for, to be repeated in workers. */
export function requestedInit(): InitOptions {
  return requested;
}

/** @internal The compiled module, once for all shards, or undefined for the scalar build. */
export function coreModule(): Promise<WebAssembly.Module | undefined> {
  chosen ??= choose(requested);
  return chosen;
}

async function choose({ wasm, build }: InitOptions): Promise<WebAssembly.Module | undefined> {
  if (build === "scalar") return undefined;
  if (wasm instanceof WebAssembly.Module) return wasm;
  try {
    return await WebAssembly.compile(wasm ?? inlinedBytes(build));
  } catch (error) {
    // A Content-Security-Policy forbids the compile, or the runtime has no SIMD or no WebAssembly.
    if (wasm === undefined && build === undefined) return undefined;
    throw error;
  }
}

function inlinedBytes(build: Build | undefined): Uint8Array<ArrayBuffer> {
  if (build === "simd") return decodeBase64(SIMD_WASM);
  const relaxed = decodeBase64(RELAXED_WASM);
  return build === "relaxed" || WebAssembly.validate(relaxed) ? relaxed : decodeBase64(SIMD_WASM);
}

/** @internal Whether this runtime takes the relaxed build, as it is now. */
export function isRelaxedAvailable(): boolean {
  return WebAssembly.validate(decodeBase64(RELAXED_WASM));
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * Chooses the build of the scoring core: the best that this runtime has, or what `init` asked for. All give identical answers.
 *
 *   relaxed  WebAssembly with relaxed SIMD: Node 22, Chrome 114, Firefox 145; Node 20 with RELAXED_SIMD_FLAG
 *   simd     WebAssembly with SIMD: Node 16.4, Chrome 91, Firefox 89, Safari 16.4
 *   scalar   plain JavaScript, where WebAssembly is missing or forbidden
 */
import { LodestoneError } from "../errors.ts";
import { type UnpackedBuilds, unpackBuilds } from "./unpack-builds.ts";

/** A compiled `WebAssembly.Module`. Named so that these types do not need `lib: dom`, which declares WebAssembly. */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Module } } } ? Module : object;

/** Bytes of a module, or a compiled one, as `import module from "lodestone/core.wasm"` gives it on edge runtimes. */
export type WasmSource = WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;

export type Build = "relaxed" | "simd" | "scalar";

export interface InitOptions {
  /** Replaces the WebAssembly inside the library by that of `lodestone/core.wasm` or `lodestone/core.relaxed.wasm`, for runtimes that only take modules compiled ahead of time. */
  wasm?: WasmSource | undefined;
  /** Asks for one build; an index cannot be created if the runtime does not have it. */
  build?: Build | undefined;
  /**
   * Where browsers load the worker of a ParallelVectorIndex from: the address of `lodestone/shard-worker.js` as you serve it, from the page's own origin. For
   * pages whose Content-Security-Policy does not allow `blob:` workers; without it the worker that is inside the library is used.
   */
  workerUrl?: string | { readonly href: string } | undefined;
}

/**
 * Node 20 runs the relaxed build, the faster one, after `v8.setFlagsFromString(RELAXED_SIMD_FLAG)`, called before the first index is created. That
 * changes the whole process, so an application may do it and this library never does. Node 22 and later need nothing.
 */
export const RELAXED_SIMD_FLAG = "--experimental-wasm-relaxed-simd";

let requested: InitOptions = {};
let compiledAhead: WasmModule | undefined;
let chosen: Promise<WasmModule | undefined> | undefined;
let unpacked: UnpackedBuilds | undefined;

/** Optional. Applies to indexes created afterwards. */
export function init(options: InitOptions): void {
  requested = { ...options };
  chosen = undefined;
}

/** @internal What was asked for. */
export function requestedInit(): InitOptions {
  return requested;
}

/**
 * The module that stands in for the bytes inside the library where a runtime compiles none itself. The library's own file for workerd calls it; `init`, which
 * is the application's, is not touched.
 */
export function provideModule(module: WasmModule): void {
  compiledAhead = module;
  chosen = undefined;
}

/** @internal The compiled module, once for all shards, or undefined for the scalar build. @throws {LodestoneError} UNAVAILABLE when what was asked for does not run here. */
export function coreModule(): Promise<WasmModule | undefined> {
  chosen ??= choose(requested);
  return chosen;
}

async function choose({ wasm, build }: InitOptions): Promise<WasmModule | undefined> {
  if (build === "scalar") return undefined;
  const source = wasm ?? compiledAhead;
  try {
    if (typeof WebAssembly === "undefined") throw new TypeError("this runtime has no WebAssembly");
    if (source !== undefined && isModule(source)) return source;
    return await WebAssembly.compile((source as BufferSource | undefined) ?? insideBytes(build));
  } catch (error) {
    // A Content-Security-Policy forbids the compile, or the runtime has no SIMD or no WebAssembly.
    if (wasm === undefined && build === undefined) return undefined;
    const what = wasm === undefined ? `The ${build} build of the core` : "The WebAssembly given to init";
    const why = error instanceof Error ? error.message : String(error);
    throw new LodestoneError("UNAVAILABLE", `${what} does not run here: ${why}. Without init the best build that runs here is taken.`, {
      cause: error,
    });
  }
}

/** By its tag: a module may come from another realm, as in Jest. */
function isModule(source: WasmSource): source is WasmModule {
  return Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
}

function insideBytes(build: Build | undefined): Uint8Array<ArrayBuffer> {
  unpacked ??= unpackBuilds();
  if (build === "simd") return unpacked.simd;
  return build === "relaxed" || WebAssembly.validate(unpacked.relaxed) ? unpacked.relaxed : unpacked.simd;
}

/** Whether this runtime takes the relaxed build, as it is now. */
export function isRelaxedAvailable(): boolean {
  unpacked ??= unpackBuilds();
  return typeof WebAssembly !== "undefined" && WebAssembly.validate(unpacked.relaxed);
}

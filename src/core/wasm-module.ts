/**
 * Chooses the build of the scoring core: the best one that this runtime supports, or the one requested by
 * `init`. All builds give identical answers.
 *
 *   relaxed  WebAssembly with relaxed SIMD: Node 22, Chrome 114, Firefox 145; Node 20 with RELAXED_SIMD_FLAG
 *   simd     WebAssembly with SIMD: Node 16.4, Chrome 91, Firefox 89, Safari 16.4
 *   scalar   plain JavaScript, where WebAssembly is missing or forbidden
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords, quotedNames } from "../errors/value-in-words.ts";
import { checkOptions } from "./options.ts";
import { type UnpackedBuilds, unpackBuilds } from "./unpack-builds.ts";

/**
 * A compiled `WebAssembly.Module`. Declared so that these types do not need `lib: dom`, which declares
 * WebAssembly.
 */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Module } } } ? Module : object;

/**
 * Bytes of a module, or a compiled module, such as `import module from "lodestone/core.wasm"` gives on edge
 * runtimes.
 */
export type WasmSource = WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer>;

export type Build = "relaxed" | "simd" | "scalar";

const BUILDS: readonly Build[] = ["relaxed", "simd", "scalar"];

export interface InitOptions {
  /**
   * Replaces the WebAssembly inside the library by `lodestone/core.wasm` or `lodestone/core.relaxed.wasm`,
   * for runtimes that accept only modules compiled ahead of time.
   */
  wasm?: WasmSource | undefined;
  /** Requests one build. An index cannot be created if the runtime does not support it. */
  build?: Build | undefined;
  /**
   * Where browsers load the worker of a ParallelVectorIndex from: the URL at which you serve
   * `lodestone/shard-worker.js`, on the page's own origin. For pages whose Content-Security-Policy does not
   * allow `blob:` workers. Without it the worker inside the library is used.
   */
  workerUrl?: string | { readonly href: string } | undefined;
}

/**
 * Node 20 runs the faster, relaxed build after `v8.setFlagsFromString(RELAXED_SIMD_FLAG)`, called before the
 * first index is created. The flag affects the whole process, so an application may set it, and this library
 * never does. Node 22 and later need nothing.
 */
export const RELAXED_SIMD_FLAG = "--experimental-wasm-relaxed-simd";

let requested: InitOptions = {};
let compiledAhead: WasmModule | undefined;
let chosen: Promise<WasmModule | undefined> | undefined;
let unpacked: UnpackedBuilds | undefined;

/** Optional. Applies to indexes created afterwards. @throws {TypeError | RangeError} for an unknown option or build. */
export function init(options: InitOptions): void {
  checkOptions(options, ["wasm", "build", "workerUrl"]);
  const { build } = options;
  if (build !== undefined && !BUILDS.includes(build))
    throw new RangeError(`build is ${inWords(build)}; expected ${quotedNames(BUILDS, "none")}.`);
  requested = { ...options };
  chosen = undefined;
}

/** @internal The options passed to `init`. */
export function requestedInit(): InitOptions {
  return requested;
}

/**
 * Provides the module that replaces the bytes inside the library where a runtime cannot compile any. The
 * library's own file for workerd calls it. It does not affect `init`, which belongs to the application.
 */
export function provideModule(module: WasmModule): void {
  compiledAhead = module;
  chosen = undefined;
}

/**
 * @internal The compiled module, one for all shards, or undefined for the scalar build.
 * @throws {LodestoneError} UNAVAILABLE when the requested build does not run here.
 */
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
    const why = error instanceof Error ? error.message : String(error);
    // A Content-Security-Policy forbids compilation, or the runtime has no SIMD or no WebAssembly.
    if (wasm === undefined && build === undefined) {
      warnOnce(
        `lodestone: WebAssembly does not run here (${why}). Searches use plain JavaScript: the same answers, but many times slower.`,
      );
      return undefined;
    }
    const what = wasm === undefined ? `The ${build} build of the core` : "The WebAssembly given to init";
    throw new LodestoneError("UNAVAILABLE", `${what} does not run here: ${why}. Without init the best build that runs here is taken.`, {
      cause: error,
    });
  }
}

let hasWarned = false;

function warnOnce(message: string): void {
  if (!hasWarned) console.warn(message);
  hasWarned = true;
}

/** Checked by tag, because a module may come from another realm, as in Jest. */
function isModule(source: WasmSource): source is WasmModule {
  return Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
}

function insideBytes(build: Build | undefined): Uint8Array<ArrayBuffer> {
  unpacked ??= unpackBuilds();
  if (build === "simd") return unpacked.simd;
  return build === "relaxed" || WebAssembly.validate(unpacked.relaxed) ? unpacked.relaxed : unpacked.simd;
}

/** Whether this runtime accepts the relaxed build at this moment. */
export function isRelaxedAvailable(): boolean {
  unpacked ??= unpackBuilds();
  return typeof WebAssembly !== "undefined" && WebAssembly.validate(unpacked.relaxed);
}

/** Checks the options of the library's calls: a misspelt one is refused, not ignored. */
import { inWords, quotedNames } from "../errors/value-in-words.ts";
import type { AbortSignalLike } from "./abort-signal.ts";

// Both kinds of index know all of these, so that a program can choose between them: `shards` and a search's
// `signal` have no effect on a VectorIndex.
const INDEX_OPTIONS = ["rows", "maximumMemoryBytes", "columns", "shards"] as const;
export const CREATE_OPTIONS = ["dimension", ...INDEX_OPTIONS] as const;
export const TRANSFER_OPTIONS = ["signal", "onProgress"] as const;
export const LOAD_OPTIONS = [...INDEX_OPTIONS, ...TRANSFER_OPTIONS] as const;
export const SEARCH_OPTIONS = ["k", "similarity", "filter", "offset", "scoreThreshold", "columns", "plan", "signal"] as const;

/** What 32-bit WebAssembly can address. */
const MAX_MEMORY_BYTES = 2 ** 32;

/**
 * @param known  the options that the call has.
 * @throws {TypeError} if `options` is no object, or has others.
 */
export function checkOptions(options: object, known: readonly string[]): void {
  if (options === null || typeof options !== "object") throw new TypeError(`options is ${inWords(options)}; expected an object.`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      throw new TypeError(`${JSON.stringify(name)} is not an option here; expected ${quotedNames(known, "none")}.`);
  }
}

/** @throws {TypeError} if it cannot be listened to. */
export function checkSignal(signal: AbortSignalLike | undefined): void {
  if (signal !== undefined && typeof signal?.addEventListener !== "function")
    throw new TypeError(`signal is ${inWords(signal)}; expected an AbortSignal.`);
}

/** @throws {TypeError | RangeError} if it is not a number of bytes up to 4 GiB. */
export function checkMemoryBytes(bytes: number | undefined): void {
  if (bytes === undefined) return;
  const expected = `expected a number of bytes up to ${MAX_MEMORY_BYTES}`;
  if (typeof bytes !== "number") throw new TypeError(`maximumMemoryBytes is ${inWords(bytes)}; ${expected}.`);
  if (!(bytes > 0 && bytes <= MAX_MEMORY_BYTES)) throw new RangeError(`maximumMemoryBytes is ${bytes}; ${expected}.`);
}

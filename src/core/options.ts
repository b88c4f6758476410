/** Checks the options of the library's calls: a misspelt one is refused, not ignored. */
import { inWords, quotedNames } from "../errors/value-in-words.ts";
import type { AbortSignalLike } from "./abort-signal.ts";
import type { RowColumns } from "./row-columns.ts";
import type { RowDirectory } from "./row-directory.ts";
import type { TransferOptions } from "./transfer.ts";
import type { VectorFolder } from "./vector-file.ts";
import type { VectorStore } from "./vector-store.ts";

// Both kinds of index know all of these, so that a program can choose between them: `shards` and a search's
// `signal` have no effect on a VectorIndex.
const INDEX_OPTIONS = ["rows", "maximumMemoryBytes", "columns", "shards", "vectors"] as const;
const CREATE_OPTIONS = ["dimension", ...INDEX_OPTIONS] as const;
const TRANSFER_OPTIONS = ["signal", "onProgress"] as const;
export const LOAD_OPTIONS = [...INDEX_OPTIONS, ...TRANSFER_OPTIONS] as const;
export const SEARCH_OPTIONS = ["k", "similarity", "filter", "offset", "scoreThreshold", "columns", "cosine", "plan", "signal"] as const;

/** What 32-bit WebAssembly can address. */
const MAX_MEMORY_BYTES = 2 ** 32;

/** @throws {TypeError} unless `isRight`: "`name` is `value`; expected `expected`." */
export function checkType(isRight: boolean, name: string, value: unknown, expected: string): asserts isRight {
  if (!isRight) throw new TypeError(`${name} is ${inWords(value)}; expected ${expected}.`);
}

/** @throws {TypeError | RangeError} if it is not an integer from `least` to `most`. */
export function checkInteger(name: string, value: number, least: number, most = Number.POSITIVE_INFINITY): void {
  const expected = `an integer ${most === Number.POSITIVE_INFINITY ? `of at least ${least}` : `from ${least} to ${most}`}`;
  checkType(typeof value === "number", name, value, expected);
  if (!Number.isInteger(value) || value < least || value > most) throw new RangeError(`${name} is ${value}; expected ${expected}.`);
}

/**
 * @param known  the options that the call has.
 * @throws {TypeError} if `options` is no object, or has others.
 */
export function checkOptions(options: object, known: readonly string[], name = "options"): void {
  checkType(typeof options === "object" && options !== null && !Array.isArray(options), name, options, "an object");
  for (const option of Object.keys(options)) {
    if (!known.includes(option))
      throw new TypeError(`${JSON.stringify(option)} is not an option here; expected ${quotedNames(known, "none")}.`);
  }
}

/** @throws {TypeError} if it cannot be listened to. */
export function checkSignal(signal: AbortSignalLike | undefined): void {
  checkType(signal === undefined || typeof signal?.addEventListener === "function", "signal", signal, "an AbortSignal");
}

/** Of toStream, toBytes, fromStream and fromBytes. @throws {TypeError} */
export function checkTransfer(options: TransferOptions, known: readonly string[] = TRANSFER_OPTIONS): void {
  checkOptions(options, known);
  const { signal, onProgress } = options;
  checkSignal(signal);
  checkType(onProgress === undefined || typeof onProgress === "function", "onProgress", onProgress, "a function");
}

/** Of both kinds of index, but for `dimension` and `shards`. @throws {TypeError | RangeError} */
export function checkIndexOptions(options: {
  maximumMemoryBytes?: number | undefined;
  rows?: RowDirectory | undefined;
  columns?: RowColumns | undefined;
  vectors?: VectorStore | VectorFolder | undefined;
}): void {
  checkOptions(options, CREATE_OPTIONS);
  const { maximumMemoryBytes: bytes = MAX_MEMORY_BYTES, rows, columns } = options;
  const expected = `a number of bytes up to ${MAX_MEMORY_BYTES}`;
  checkType(typeof bytes === "number", "maximumMemoryBytes", bytes, expected);
  if (!(bytes > 0 && bytes <= MAX_MEMORY_BYTES)) throw new RangeError(`maximumMemoryBytes is ${bytes}; expected ${expected}.`);
  checkType(rows === undefined || typeof rows?.attach === "function", "rows", rows, "a RowDirectory");
  checkType(columns === undefined || typeof columns?.bind === "function", "columns", columns, "Columns or TextColumns");
}

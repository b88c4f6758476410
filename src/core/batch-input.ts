/** Checks the input of upsertMany and fromBytes, for both kinds of index. */
import { checkType } from "./options.ts";
import type { CheckedValues, RowColumns, RowValues } from "./row-columns.ts";
import { checkId } from "./row-directory.ts";
import { withColumns } from "./search-input.ts";
import { checkMatrix } from "./vector-input.ts";

/**
 * @returns the checked values, by index in `ids`.
 * @throws {TypeError | RangeError}; {LodestoneError} INVALID for bad values.
 */
export function checkMany(
  ids: readonly string[],
  matrix: Float32Array,
  dimension: number,
  values: readonly (RowValues | undefined)[] | undefined,
  columns: RowColumns | undefined,
): (CheckedValues | undefined)[] | undefined {
  checkIds(ids);
  checkMatrix("matrix", matrix, ids.length, dimension);
  if (values === undefined) return undefined;
  checkType(Array.isArray(values), "values", values, "an array with one object for each id");
  if (values.length !== ids.length) throw new RangeError(`values has ${values.length} elements; expected ${ids.length}, one for each id.`);
  const rowColumns = withColumns(columns, "values");
  return values.map((own: RowValues | undefined) => own && rowColumns.check(own));
}

/** @throws {TypeError | RangeError} if it is not an array of ids. */
export function checkIds(ids: readonly string[]): void {
  checkType(Array.isArray(ids), "ids", ids, "an array of strings");
  for (const id of ids) checkId(id);
}

/** @throws {TypeError} if it is not a Uint8Array (of any realm). */
export function checkBytes(bytes: Uint8Array): void {
  checkType(ArrayBuffer.isView(bytes) && bytes[Symbol.toStringTag] === "Uint8Array", "bytes", bytes, "the Uint8Array that toBytes gave");
}

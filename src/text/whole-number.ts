/** Counts and sizes as requests give them. Below every layer, since each takes some. */

/** @param least  and `most` are among them. */
export function isWholeNumber(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
}

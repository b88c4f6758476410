/** Counts and sizes as requests give them. Below every layer, since each takes some. */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { inWords } from "../errors/value-in-words.ts";

/** @param least  and `most` are among them. */
export function isWholeNumber(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
}

/** @throws {LodestoneError} INVALID, naming the place, what was given and what was expected. */
function requireWholeNumber(value: unknown, least: number, most: number, place: string): number {
  if (isWholeNumber(value, least, most)) return value;
  throw new LodestoneError("INVALID", `${place} is ${inWords(value)}; expected a whole number from ${least} to ${most}.`);
}

/** Like `requireWholeNumber`. @param fallback  the value for undefined and null. */
export function wholeNumber(value: unknown, fallback: number, least: number, most: number, place: string): number {
  return requireWholeNumber(value ?? fallback, least, most, place);
}

/** Counts and sizes as requests give them. */
import { LodestoneError } from "../../../errors.ts";
import { inWords } from "../../../value-in-words.ts";

/** @param fallback  the value for undefined and null. */
export function wholeNumber(value: unknown, fallback: number, least: number, most: number, place: string): number {
  const number = value ?? fallback;
  if (typeof number === "number" && Number.isInteger(number) && number >= least && number <= most) return number;
  throw new LodestoneError("INVALID", `${place} is ${inWords(value)}; expected a whole number from ${least} to ${most}.`);
}

/** What several readers of requests need: the parts whose form depends on the table, so that no schema can check them. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords } from "../../../errors/value-in-words.ts";
import { isWholeNumber } from "../../../text/whole-number.ts";
import type { ColumnInfo, TableInfo } from "../../schema.ts";

/** INVALID: a member of a request that is not what was expected. */
export function notExpected(place: string, value: unknown, expected: string): LodestoneError {
  return new LodestoneError("INVALID", `${place} is ${inWords(value)}; expected ${expected}.`);
}

/** @param fallback  the value for undefined and null. @throws {LodestoneError} INVALID */
export function wholeNumber(value: unknown, fallback: number, least: number, most: number, place: string): number {
  const number = value ?? fallback;
  if (isWholeNumber(number, least, most)) return number;
  throw notExpected(place, value, `a whole number from ${least} to ${most}`);
}

/** The columns of an object path: those whose names go on after `name` and a dot. */
export function columnsBelow(table: TableInfo, name: string): ColumnInfo[] {
  const prefix = `${name}.`;
  return [...table.columns.values()].filter((column) => column.name.startsWith(prefix));
}

/** Without the members that are null: there, too, null means absent. */
export function withoutNulls(object: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;

/** `12h` in milliseconds; undefined if it is not a duration, or is longer than a thousand years. */
export function parseDurationMs(text: unknown): number | undefined {
  const match = typeof text === "string" ? /^(\d{1,15})(d|h|m|s|ms)$/.exec(text) : null;
  if (match === null) return undefined;
  const ms = Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
  return ms <= 1_000 * 366 * UNITS_MS.d ? ms : undefined;
}

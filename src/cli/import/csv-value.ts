/**
 * The value of a CSV cell in a column of a given type.
 *
 * An empty cell is null, and a quoted empty cell is the empty text. Vectors, `multiple` and json are JSON in a cell; a
 * vector may also be numbers between spaces, commas or semicolons. The output of psql's \copy is read as well: arrays
 * in braces, timestamps with a space. Used by the command line, and for files that are dropped into the console.
 */

import { quoted } from "../../errors/value-in-words.ts";
import { parseItems, toRfc3339 } from "../../records/postgres-text.ts";
import type { JsonValue } from "../../records/requests.ts";
import { SourceError } from "./source.ts";

export type CsvCell = string | null;

const TEXT_TYPES: ReadonlySet<string | undefined> = new Set<string | undefined>([undefined, "string", "text"]);

export const isTextType = (type: string | undefined): boolean => TEXT_TYPES.has(type);

/**
 * @param type of the table's column; undefined: there is none.
 * @param place for messages: "line 17".
 * @throws {SourceError} what the type cannot be.
 */
export function csvValue(cell: CsvCell, type: string | undefined, name: string, place: string): JsonValue {
  if (cell === null || (cell === "" && !TEXT_TYPES.has(type))) return null;
  const refuse = (expected: string) => new SourceError(place, `${name}: expected ${expected}, got ${quoted(cell)}`);
  switch (type) {
    case "int":
    case "float": {
      const value = Number(cell);
      if (cell.trim() === "" || !Number.isFinite(value)) throw refuse("a number");
      // Beyond 2^53 a double would round; the text keeps every digit.
      return type === "int" && !Number.isSafeInteger(value) ? cell.trim() : value;
    }
    case "bool":
      if (/^(true|t|yes|1)$/i.test(cell)) return true;
      if (/^(false|f|no|0)$/i.test(cell)) return false;
      throw refuse("true or false");
    case "vector":
      return parseVector(cell) ?? raise(refuse("numbers, as in [0.1, 0.2]"));
    case "multiple":
      return parseList(cell) ?? parseItems(cell) ?? raise(refuse('a JSON list of texts, as in ["a", "b"]'));
    case "datetime":
      return toRfc3339(cell) ?? cell;
    default:
      return cell;
  }
}

function parseVector(cell: string): number[] | undefined {
  const inner = /^\s*[[{(]?([^[\]{}()]*)[\]})]?\s*$/.exec(cell)?.[1];
  const numbers = inner
    ?.split(/[\s,;]+/)
    .filter((text) => text !== "")
    .map(Number);
  return numbers === undefined || numbers.some((number) => !Number.isFinite(number)) ? undefined : numbers;
}

function parseList(cell: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(cell);
    return Array.isArray(value) && value.every((element) => typeof element === "string") ? value : undefined;
  } catch {
    return undefined;
  }
}

function raise(error: Error): never {
  throw error;
}

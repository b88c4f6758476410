/**
 * Text to a JSON value that every layer below may trust: bounded in depth, only finite numbers, only text that
 * PostgreSQL can hold (well-formed, no NUL), and no `__proto__` key. Anything else that JSON.parse accepts
 * (duplicate keys: the last one counts) is accepted.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { JsonValue } from "../../records/requests.ts";
import type { VectorPlaces } from "../validation.ts";

/**
 * @param vectors  lists that are left to the schema, which takes nothing there but numbers.
 * @throws {LodestoneError} INVALID, with the position or the path of the fault.
 */
export function parseJsonBody(text: string, maxDepth: number, vectors?: VectorPlaces): JsonValue {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LodestoneError("INVALID", `The body is not valid JSON: ${(error as SyntaxError).message}.`);
  }
  checkJsonValue(value, maxDepth, vectors);
  return value;
}

/** @throws {LodestoneError} INVALID, with the path of what a layer below could not trust. */
function checkJsonValue(value: JsonValue, maxDepth: number, vectors: VectorPlaces | undefined): void {
  const fault = findFault(value, maxDepth, vectors);
  if (fault !== undefined) throw refusalOf(fault, maxDepth);
}

export function refusalOf({ message, path }: Fault, maxDepth: number): LodestoneError {
  return new LodestoneError("INVALID", `${pathOf(path)}: ${message === TOO_DEEP ? `nested deeper than ${maxDepth} levels` : message}`);
}

const TOO_DEEP = "nested too deep";

export interface Fault {
  readonly message: string;
  /** Innermost key first. */
  readonly path: (string | number)[];
}

/** What a layer below could not trust, if anything. @param levelsLeft  of lists and objects, the value itself counted. */
export function findFault(value: JsonValue, levelsLeft: number, vectors?: VectorPlaces): Fault | undefined {
  switch (typeof value) {
    case "string":
      return findTextFault(value);
    case "number":
      return Number.isFinite(value) ? undefined : { message: "the number is too large for a double", path: [] };
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return undefined;
  if (levelsLeft === 0) return { message: TOO_DEEP, path: [] };
  if (Array.isArray(value)) {
    if (vectors === true) return undefined;
    for (let i = 0; i < value.length; i++) {
      const element = value[i] as JsonValue;
      // A vector's elements, of which there may be thousands: x − x is 0 for finite ones alone.
      if (typeof element === "number" && element - element === 0) continue;
      const fault = findFault(element, levelsLeft - 1);
      if (fault !== undefined) return at(i, fault);
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (key === "__proto__") return { message: '"__proto__" is not allowed as a key', path: [] };
    const fault = findTextFault(key) ?? findFault(value[key] as JsonValue, levelsLeft - 1, placesIn(vectors, key));
    if (fault !== undefined) return at(key, fault);
  }
  return undefined;
}

function placesIn(vectors: VectorPlaces | undefined, key: string): VectorPlaces | undefined {
  return vectors !== undefined && vectors !== true && Object.hasOwn(vectors, key) ? vectors[key] : undefined;
}

function at(key: string | number, fault: Fault): Fault {
  fault.path.push(key);
  return fault;
}

export function findTextFault(text: string): Fault | undefined {
  if (text.includes("\u0000")) return { message: "text cannot contain the character NUL (\\u0000)", path: [] };
  if (!text.isWellFormed())
    return { message: "text contains half of a surrogate pair (\\ud800 to \\udfff), which is not a character", path: [] };
  return undefined;
}

function pathOf(innermostFirst: readonly (string | number)[]): string {
  const path = innermostFirst
    .toReversed()
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "");
  if (path === "") return "body";
  return path.length > 200 ? `${path.slice(0, 200).toWellFormed()}…` : path;
}

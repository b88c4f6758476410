/** Estimates how much of V8's heap a JSON body's values take, so that admission can charge it before many bodies exhaust the heap. */
import type { JsonValue } from "../../records/requests.ts";

/** Counts of what a body contains. */
export interface JsonShape {
  /** Of the body's text. */
  readonly characters: number;
  /** Lists and objects. */
  readonly containers: number;
  /** Keys of all objects, counted each time. */
  readonly keys: number;
  /** In all lists and objects. */
  readonly values: number;
}

/**
 * In bytes, as measured on 64-bit V8: `{}` takes 67 in a list, `[1]` 68, a key that no other object has 87, and a
 * number beside other values 20.
 * A list that grows is copied, and has room to spare.
 */
const CONTAINER_BYTES = 64;
const KEY_BYTES = 96;
const VALUE_BYTES = 16;
/** Of text: once as the body, and once as the values cut out of it. */
const CHARACTER_BYTES = 2;

/**
 * Bytes that the body's text and its values take together: at least what they take, and for records with the same
 * keys a few times as much.
 */
export function memoryOf({ characters, containers, keys, values }: JsonShape): number {
  return CHARACTER_BYTES * characters + CONTAINER_BYTES * containers + KEY_BYTES * keys + VALUE_BYTES * values;
}

/** Of a value that was parsed. Recursive, but no deeper than json-body.ts allows. Cost: one step per value. */
export function shapeOf(value: JsonValue, characters: number): JsonShape {
  const shape = { characters, containers: 0, keys: 0, values: 0 };
  count(value, shape);
  return shape;
}

function count(value: JsonValue, shape: { containers: number; keys: number; values: number }): void {
  if (typeof value !== "object" || value === null) return;
  shape.containers++;
  if (Array.isArray(value)) {
    shape.values += value.length;
    for (const element of value) if (typeof element === "object") count(element, shape);
    return;
  }
  const keys = Object.keys(value);
  shape.values += keys.length;
  shape.keys += keys.length;
  for (const key of keys) count(value[key] as JsonValue, shape);
}

/** Reads and parses the JSON body of a request within its limits, and charges it to the request's place. */
import type { IncomingMessage } from "node:http";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { JsonValue } from "../../records/requests.ts";
import { COLON, COMMA, LIST_BEGIN, LIST_END, MarkScan, OBJECT_BEGIN, OBJECT_END } from "../../text/json-scan.ts";
import { SLICE_UNITS, yieldToEventLoop } from "../../threads/event-loop.ts";
import type { Place } from "../admission/admission.ts";
import type { HttpLimits } from "../http-limits.ts";
import type { VectorPlaces } from "../validation.ts";
import { announcesBody, checkContentType, readBody } from "./body-reader.ts";
import { parseJsonBody } from "./json-body.ts";
import { parseJsonInSlices } from "./json-in-slices.ts";

/** The values of shorter bodies are not charged: those of all requests in progress together take about 70 MB at most. */
const SMALL_TEXT_LENGTH = 16 * 1024;

/**
 * @param place  what the request holds; undefined for endpoints that are answered at any load.
 * @returns undefined when there is no body, and none is required.
 * @throws {LodestoneError} INVALID, TOO_LARGE, OVERLOADED, UNSUPPORTED_MEDIA_TYPE; {HttpError} 408; {ClientGoneError}.
 */
export async function readJson(
  request: IncomingMessage,
  { required, vectors }: { readonly required: boolean; readonly vectors: VectorPlaces | undefined },
  limits: HttpLimits,
  place: Place | undefined,
): Promise<unknown> {
  if (announcesBody(request)) {
    checkContentType(request);
    const text = await readBody(request, limits, place?.arrived);
    if (text.length > LARGE_TEXT_LENGTH) {
      await yieldToEventLoop();
      return await parseLargeJsonBody(text, limits, (shape) => place?.holds(memoryOf(shape)));
    }
    if (text !== "") {
      const body = parseJsonBody(text, limits.jsonDepth, vectors);
      if (text.length > SMALL_TEXT_LENGTH) place?.holds(memoryOf(shapeOf(body, text.length)));
      return body;
    }
  }
  if (required) throw new LodestoneError("INVALID", "The request needs a JSON body.");
  return undefined;
}

// Like json-body.ts, for a body so large that parsing it takes a while: other callers are served between the steps,
// and a body that would take too long to parse is rejected first. Numbers and text are parsed at about 100 MB/s.
// Objects, lists and above all different keys are expensive: JSON.parse takes 2 s for 18 MB of them.

/**
 * Bodies up to this length are parsed in some milliseconds, whatever they hold, and hold too little to reach the
 * limits of what a body may hold.
 */
export const LARGE_TEXT_LENGTH = 1 << 18;

type JsonLimits = Pick<HttpLimits, "jsonDepth" | "jsonKeys" | "jsonObjectKeys" | "jsonKeyLength" | "jsonValues" | "jsonContainers">;

/**
 * @param onShape  told what the body holds before it is parsed; what it throws refuses the body.
 * @throws {LodestoneError} INVALID. The position of a syntax error is approximate.
 */
export async function parseLargeJsonBody(
  text: string,
  limits: JsonLimits,
  onShape: (shape: JsonShape) => void = () => {},
): Promise<JsonValue> {
  onShape(await checkShape(text, limits));
  return parseJsonInSlices(text, limits);
}

/** Counts brackets, commas and colons outside of strings. For a text that is not JSON the counts mean nothing. */
async function checkShape(text: string, { jsonDepth, jsonKeys, jsonValues, jsonContainers }: JsonLimits): Promise<JsonShape> {
  let depth = 0;
  let keys = 0;
  let containers = 0;
  let commas = 0;
  const scan = new MarkScan(text);
  while (scan.position < text.length) {
    const sliceEnd = Math.min(scan.position + SLICE_UNITS, text.length);
    for (let at = scan.next(sliceEnd); at !== undefined; at = scan.next(sliceEnd)) {
      switch (text.charCodeAt(at)) {
        case LIST_BEGIN:
        case OBJECT_BEGIN:
          containers++;
          if (++depth > jsonDepth) throw new LodestoneError("INVALID", `body: nested deeper than ${jsonDepth} levels`);
          break;
        case LIST_END:
        case OBJECT_END:
          depth--;
          break;
        case COMMA:
          commas++;
          break;
        case COLON:
          keys++;
      }
    }
    if (scan.position < text.length) await yieldToEventLoop();
  }
  if (keys > jsonKeys) throw tooMany("keys", keys, jsonKeys);
  // A list or object that is not empty has one value more than commas.
  const values = commas + containers;
  if (values > jsonValues) throw tooMany("values", values, jsonValues);
  if (containers > jsonContainers) throw tooMany("objects and lists", containers, jsonContainers);
  return { characters: text.length, containers, keys, values };
}

function tooMany(what: string, count: number, limit: number): LodestoneError {
  const [got, expected] = [count, limit].map((n) => n.toLocaleString("en-US"));
  return new LodestoneError("INVALID", `body: it holds ${got} ${what}; at most ${expected} are accepted. Send several smaller requests.`);
}

// Estimates how much of V8's heap a JSON body's values take, so that admission can charge it before many bodies exhaust the heap.

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

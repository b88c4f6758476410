/**
 * As json-body.ts, for a body so large that parsing it takes a while: others are served between the steps, and what would take long to parse is refused
 * before. Numbers and text are parsed at some 100 MB/s; it is objects, lists and above all different keys that cost: JSON.parse takes 2 s for 18 MB of them.
 */
import { LodestoneError } from "../../errors.ts";
import { yieldToEventLoop } from "../../event-loop.ts";
import type { JsonValue } from "../../records/requests.ts";
import type { HttpLimits } from "../http-limits.ts";
import { checkJsonValue } from "./json-body.ts";

/** Bodies up to this length hold too little to reach the limits below, and are parsed in a few milliseconds. */
export const LARGE_TEXT_LENGTH = 1 << 20;

/** Characters that are looked through before others get a turn: some 4 ms. */
const SLICE_LENGTH = 1 << 20;

type JsonLimits = Pick<HttpLimits, "jsonDepth" | "jsonKeys" | "jsonValues" | "jsonContainers">;

/** @throws {LodestoneError} INVALID. The place of a fault in the syntax is not searched for. */
export async function parseLargeJsonBody(text: string, limits: JsonLimits): Promise<JsonValue> {
  await checkShape(text, limits);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LodestoneError("INVALID", `The body is not valid JSON: ${(error as Error).message}.`);
  }
  await yieldToEventLoop();
  checkJsonValue(value, limits.jsonDepth);
  await yieldToEventLoop();
  return value;
}

/** Counts brackets, commas and colons outside of strings. For a text that is no JSON it may count anything. */
async function checkShape(text: string, { jsonDepth, jsonKeys, jsonValues, jsonContainers }: JsonLimits): Promise<void> {
  let depth = 0;
  let keys = 0;
  let containers = 0;
  let commas = 0;
  let sliceEnd = SLICE_LENGTH;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x5b: // [
      case 0x7b: // {
        containers++;
        if (++depth > jsonDepth) throw new LodestoneError("INVALID", `body: nested deeper than ${jsonDepth} levels`);
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x2c: // ,
        commas++;
        break;
      case 0x3a: // :
        keys++;
        break;
      case 0x22:
        i = endOfString(text, i);
    }
    if (i < sliceEnd) continue;
    sliceEnd = i + SLICE_LENGTH;
    await yieldToEventLoop();
  }
  if (keys > jsonKeys) throw tooMany("keys", keys, jsonKeys);
  // A list or object that is not empty has one value more than commas.
  if (commas + containers > jsonValues) throw tooMany("values", commas + containers, jsonValues);
  if (containers > jsonContainers) throw tooMany("objects and lists", containers, jsonContainers);
}

function tooMany(what: string, count: number, limit: number): LodestoneError {
  const [got, expected] = [count, limit].map((n) => n.toLocaleString("en-US"));
  return new LodestoneError("INVALID", `body: it holds ${got} ${what}; at most ${expected} are taken. Send it in several requests.`);
}

/** @param begin of a string's opening quote. @returns the index of its closing quote, or the text's end. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

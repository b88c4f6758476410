/**
 * JSON.parse for a long text, in slices; other callers are served between them. The text is scanned once. Whenever
 * enough of it has been passed, the children that are complete by then are parsed by JSON.parse itself, many at
 * a time, and put into the containers that are still open.
 *
 * Invariant: containers 1 to `frames.length` of the open ones (counted from the outside) exist as values. The
 * innermost of them contains everything before its `from`, and the comma after that was passed.
 */
import { LodestoneError } from "../../errors.ts";
import { Slices } from "../../event-loop.ts";
import { COMMA, LIST_BEGIN, LIST_END, nextMark, OBJECT_BEGIN, OBJECT_END } from "../../json-scan.ts";
import type { JsonValue } from "../../records/requests.ts";
import type { HttpLimits } from "../http-limits.ts";
import { type Fault, findFault, refusalOf } from "./json-body.ts";

/** Parsed in one go; a few milliseconds, whatever it holds. */
const CHUNK_LENGTH = 1 << 16;

interface Frame {
  readonly value: JsonValue[] | { [key: string]: JsonValue };
  readonly isList: boolean;
  /** Where it is in the container around it. */
  readonly step: string | number | undefined;
  /** Where the children begin that are not in `value` yet. */
  from: number;
  /** The child before `from` was put in by itself: a comma or the end comes next. */
  needsComma: boolean;
  children: number;
  /** Of an object that is filled part by part. */
  keys: number;
}

/** An object whose keys are fewer than fit into a chunk is not counted. */
type ValueLimits = Pick<HttpLimits, "jsonDepth" | "jsonObjectKeys">;

/**
 * @param chunkLength  for tests.
 * @throws {LodestoneError} INVALID, with the part of the text that is not JSON, or the path of what a layer
 *   below could not trust (json-body.ts).
 */
export async function parseJsonInSlices(text: string, limits: ValueLimits, chunkLength = CHUNK_LENGTH): Promise<JsonValue> {
  const parser = new SlicedParser(text, limits, chunkLength);
  const slices = new Slices(2 * CHUNK_LENGTH);
  let at = 0;
  while (at < text.length) {
    const next = parser.pass(at);
    const isUsedUp = slices.spend(Math.min(next - at, CHUNK_LENGTH));
    at = next;
    if (isUsedUp) await slices.rest();
  }
  return parser.finish();
}

class SlicedParser {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #maxKeys: number;
  readonly #chunkLength: number;
  readonly #frames: Frame[] = [];
  /** Of each open container, where it begins, and its last comma: -1 for none. By depth, from 1. */
  readonly #starts: number[] = [0];
  readonly #commas: number[] = [-1];
  #depth = 0;
  /** The outermost value, once it is closed and was put together from parts. */
  #whole: { readonly value: JsonValue; readonly end: number } | undefined;

  constructor(text: string, { jsonDepth, jsonObjectKeys }: ValueLimits, chunkLength: number) {
    this.#text = text;
    this.#chunkLength = chunkLength;
    this.#maxDepth = jsonDepth;
    this.#maxKeys = jsonObjectKeys;
  }

  /** Looks on from `begin` for a chunk, puts away what is whole, and answers where it stopped. */
  pass(begin: number): number {
    const text = this.#text;
    const end = Math.min(begin + this.#chunkLength, text.length);
    let at = nextMark(text, begin, end);
    for (; at < end; at = nextMark(text, at + 1, end)) {
      switch (text.charCodeAt(at)) {
        case LIST_BEGIN:
        case OBJECT_BEGIN:
          this.#depth++;
          this.#starts[this.#depth] = at;
          this.#commas[this.#depth] = -1;
          break;
        case LIST_END:
        case OBJECT_END:
          if (this.#depth === 0) throw this.#fault(at, at + 1);
          if (this.#depth === this.#frames.length) this.#close(at);
          this.#depth--;
          break;
        case COMMA:
          this.#comma(at);
      }
    }
    if (at < text.length) this.#putAway();
    return Math.min(at, text.length);
  }

  finish(): JsonValue {
    if (this.#whole !== undefined) {
      this.#requireBlank(this.#whole.end, this.#text.length);
      return this.#whole.value;
    }
    if (this.#frames.length > 0) throw this.#fault(this.#frames.at(-1)!.from, this.#text.length);
    // Nothing was complete before the end: a short text, or one that is a single value.
    const value = this.#parse(this.#text, 0, this.#text.length);
    this.#refuse(findFault(value, this.#maxDepth), 0, 0);
    return value;
  }

  #comma(at: number): void {
    this.#commas[this.#depth] = at;
    const top = this.#frames.at(-1);
    if (this.#depth !== this.#frames.length || top?.needsComma !== true) return;
    this.#requireBlank(top.from, at);
    top.from = at + 1;
    top.needsComma = false;
  }

  /** The innermost frame ends. */
  #close(at: number): void {
    const frame = this.#frames.at(-1)!;
    if ((this.#text.charCodeAt(at) === LIST_END) !== frame.isList) throw this.#fault(at, at + 1);
    if (frame.needsComma) this.#requireBlank(frame.from, at);
    else if (frame.children > 0 || !this.#isBlank(frame.from, at)) this.#put(frame, at, this.#frames.length);
    this.#frames.pop();
    const parent = this.#frames.at(-1);
    if (parent === undefined) this.#whole = { value: frame.value, end: at + 1 };
    else {
      parent.from = at + 1;
      parent.needsComma = true;
    }
  }

  /** Puts all complete values into their containers, and gives every open container a frame. */
  #putAway(): void {
    if (this.#whole !== undefined) return;
    for (let depth = this.#frames.length; ; depth++) {
      const frame = depth === 0 ? undefined : this.#frames[depth - 1]!;
      const comma = this.#commas[depth]!;
      if (frame !== undefined && !frame.needsComma && comma > frame.from) {
        this.#put(frame, comma, depth);
        frame.from = comma + 1;
      }
      if (depth === this.#depth) return;
      this.#open(frame, this.#starts[depth + 1]!, depth);
    }
  }

  #open(parent: Frame | undefined, start: number, depth: number): void {
    const isList = this.#text.charCodeAt(start) === LIST_BEGIN;
    let step: string | number | undefined;
    if (parent === undefined) this.#requireBlank(0, start);
    else if (parent.needsComma) throw this.#fault(parent.from, start + 1);
    else {
      parent.children++;
      if (parent.isList) {
        this.#requireBlank(parent.from, start);
        step = (parent.value as JsonValue[]).length;
      } else {
        // A word in place of the container, since nothing before it can join with it: with a digit, `"key":1{` would become `"key":10`.
        const opened = `{${this.#text.slice(parent.from, start)}null}`;
        const [key, more] = Object.keys(this.#parse(opened, parent.from, start + 1) as object);
        if (key === undefined || more !== undefined) throw this.#fault(parent.from, start + 1);
        // An object of its own, so that no key is taken for something else.
        this.#refuse(findFault(Object.fromEntries([[key, null]]), 1), depth, 0);
        step = key;
      }
    }
    this.#refuse(findFault([], this.#maxDepth - depth), depth, 0);
    const value: Frame["value"] = isList ? [] : {};
    if (parent !== undefined && step !== undefined) (parent.value as Record<string | number, JsonValue>)[step] = value;
    this.#frames.push({ value, isList, step, from: start + 1, needsComma: false, children: 0, keys: 0 });
  }

  /** The children up to `to`, of which there is one at least. */
  #put(frame: Frame, to: number, depth: number): void {
    const part = this.#text.slice(frame.from, to);
    if (frame.isList) {
      const values = this.#parse(`[${part}]`, frame.from, to) as JsonValue[];
      if (values.length === 0) throw this.#fault(frame.from, to);
      const list = frame.value as JsonValue[];
      this.#refuse(findFault(values, this.#maxDepth - depth + 1), depth, list.length);
      for (const value of values) list.push(value);
    } else {
      const members = this.#parse(`{${part}}`, frame.from, to) as { [key: string]: JsonValue };
      const keys = Object.keys(members);
      if (keys.length === 0) throw this.#fault(frame.from, to);
      // Refuses a key that an assignment would take for something else, too.
      this.#refuse(findFault(members, this.#maxDepth - depth + 1), depth, 0);
      frame.keys += keys.length;
      if (frame.keys > this.#maxKeys) this.#refuse(this.#tooManyKeys(), depth, 0);
      const object = frame.value as { [key: string]: JsonValue };
      for (const key of keys) object[key] = members[key]!;
    }
    frame.children++;
  }

  #parse(part: string, from: number, to: number): JsonValue {
    try {
      return JSON.parse(part) as JsonValue;
    } catch {
      throw this.#fault(from, to);
    }
  }

  /** @param depth  of the container that the fault's path begins in. @param offset  of the children in it, when it is a list. */
  #refuse(fault: Fault | undefined, depth: number, offset: number): void {
    if (fault === undefined) return;
    const { message, path } = fault;
    const outermost = path.pop();
    const around = this.#frames.slice(0, depth).flatMap(({ step }) => (step === undefined ? [] : [step]));
    if (outermost !== undefined) path.push(typeof outermost === "number" ? outermost + offset : outermost);
    throw refusalOf({ message, path: [...path, ...around.reverse()] }, this.#maxDepth);
  }

  #tooManyKeys(): Fault {
    const most = this.#maxKeys.toLocaleString("en-US");
    return {
      message: `the object has more than ${most} keys. In a record, send so large a value of a json column as a string of JSON text`,
      path: [],
    };
  }

  #isBlank(from: number, to: number): boolean {
    for (let at = from; at < to; at++) {
      const code = this.#text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return false;
    }
    return true;
  }

  #requireBlank(from: number, to: number): void {
    if (!this.#isBlank(from, to)) throw this.#fault(from, to);
  }

  #fault(from: number, to: number): LodestoneError {
    return new LodestoneError("INVALID", `The body is not valid JSON: the error is between the offsets ${from} and ${to}.`);
  }
}

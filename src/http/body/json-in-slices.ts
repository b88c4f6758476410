/**
 * JSON.parse for a long text, in slices; other callers are served between them. The text is scanned once. Whenever
 * enough of it has been passed, the children that are complete by then are parsed by JSON.parse itself, many at
 * a time, and put into the containers that are still open. A child that is a long text is decoded by itself, in
 * pieces.
 *
 * Invariant: containers 1 to `frames.length` of the open ones (counted from the outside) exist as values. The
 * innermost of them contains everything before its `from`, and the comma after that was passed.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { JsonValue } from "../../records/requests.ts";
import { COLON, COMMA, LIST_BEGIN, LIST_END, MarkScan, OBJECT_BEGIN, OBJECT_END } from "../../text/json-scan.ts";
import { Slices } from "../../threads/event-loop.ts";
import type { HttpLimits } from "../http-limits.ts";
import { type Fault, findFault, refusalOf } from "./json-body.ts";
import { JsonTextInPieces } from "./json-text-in-pieces.ts";

/** Parsed in one go; a few milliseconds, whatever it holds. */
const CHUNK_LENGTH = 1 << 16;
/** In chunks. */
const LONG_CHUNKS = 4;
const QUOTE = 0x22;

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
type ValueLimits = Pick<HttpLimits, "jsonDepth" | "jsonObjectKeys" | "jsonKeyLength">;

/**
 * @param chunkLength  for tests.
 * @throws {LodestoneError} INVALID, with the part of the text that is not JSON, or the path of what a layer
 *   below could not trust (json-body.ts).
 */
export async function parseJsonInSlices(text: string, limits: ValueLimits, chunkLength = CHUNK_LENGTH): Promise<JsonValue> {
  const parser = new SlicedParser(text, limits, chunkLength);
  const slices = new Slices(2 * CHUNK_LENGTH);
  for (let passed = parser.step(); passed > 0; passed = parser.step()) if (slices.spend(passed)) await slices.rest();
  return parser.finish();
}

/** A child that is a long text. */
interface LongChild {
  readonly frame: Frame;
  /** In an object. */
  readonly key: string | undefined;
  readonly text: JsonTextInPieces;
  /** The comma or the end behind it, which is still to be looked at. */
  readonly mark: number;
}

class SlicedParser {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #maxKeys: number;
  readonly #maxKeyLength: number;
  readonly #chunkLength: number;
  readonly #marks: MarkScan;
  #long: LongChild | undefined;
  readonly #frames: Frame[] = [];
  /** Of each open container, where it begins, and its last comma: -1 for none. By depth, from 1. */
  readonly #starts: number[] = [0];
  readonly #commas: number[] = [-1];
  #depth = 0;
  /** The outermost value, once it is closed and was put together from parts. */
  #whole: { readonly value: JsonValue; readonly end: number } | undefined;

  constructor(text: string, { jsonDepth, jsonObjectKeys, jsonKeyLength }: ValueLimits, chunkLength: number) {
    this.#text = text;
    this.#chunkLength = chunkLength;
    this.#marks = new MarkScan(text);
    this.#maxDepth = jsonDepth;
    this.#maxKeys = jsonObjectKeys;
    this.#maxKeyLength = jsonKeyLength;
  }

  /** Looks on for a chunk, and puts away what is whole. @returns about how many characters it passed; 0 at the end. */
  step(): number {
    if (this.#long !== undefined) return this.#decode(this.#long);
    const begin = this.#marks.position;
    const end = Math.min(begin + this.#chunkLength, this.#text.length);
    for (let at = this.#marks.next(end); at !== undefined; at = this.#marks.next(end)) {
      this.#long = this.#longChild(at);
      if (this.#long !== undefined) break;
      this.#pass(at);
    }
    if (this.#long === undefined && end < this.#text.length) this.#putAway();
    return this.#marks.position - begin;
  }

  #pass(at: number): void {
    switch (this.#text.charCodeAt(at)) {
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

  /** The child that ends at the mark, if it is a long text. */
  #longChild(mark: number): LongChild | undefined {
    const frame = this.#frames.at(-1);
    if (frame === undefined || this.#depth !== this.#frames.length || frame.needsComma) return undefined;
    const text = this.#text;
    // Without a comma it is one child.
    if (mark - frame.from <= LONG_CHUNKS * this.#chunkLength || this.#commas[this.#depth]! >= frame.from) return undefined;
    const code = text.charCodeAt(mark);
    if (code === COLON) this.#requireShort(frame, mark);
    if (code !== COMMA && code !== LIST_END && code !== OBJECT_END) return undefined;
    const colon = frame.isList ? undefined : new MarkScan(text, frame.from).next(mark);
    const begin = this.#skipBlanks(colon === undefined ? frame.from : colon + 1, mark);
    if (text.charCodeAt(begin) !== QUOTE) return undefined;
    const end = this.#skipBlanksBack(mark - 1, begin);
    if (end === begin || text.charCodeAt(end) !== QUOTE) throw this.#fault(begin, mark);
    const key = frame.isList ? undefined : this.#keyBefore(frame, begin, this.#depth);
    return { frame, key, text: new JsonTextInPieces(text, begin + 1, end, this.#chunkLength), mark };
  }

  /** Decodes one more piece. After the last one the text goes into its container, and the mark behind it is passed. */
  #decode({ frame, key, text, mark }: LongChild): number {
    try {
      text.step();
    } catch {
      throw this.#fault(frame.from, mark);
    }
    const depth = this.#frames.length;
    if (text.fault !== undefined)
      this.#refuse({ message: text.fault.message, path: [key ?? 0] }, depth, frame.isList ? (frame.value as JsonValue[]).length : 0);
    if (text.value === undefined) return this.#chunkLength;
    if (key === undefined) this.#putElements(frame, [text.value]);
    else this.#putMembers(frame, { [key]: text.value }, [key], depth);
    frame.from = mark;
    frame.needsComma = true;
    this.#long = undefined;
    this.#pass(mark);
    return this.#chunkLength;
  }

  /** A key is parsed in one go. */
  #requireShort(frame: Frame, colon: number): void {
    const begin = this.#skipBlanks(frame.from, colon);
    // Its quotes are not counted.
    const length = this.#skipBlanksBack(colon - 1, begin) - begin - 1;
    if (length <= this.#maxKeyLength) return;
    const [got, most] = [length, this.#maxKeyLength].map((n) => n.toLocaleString("en-US"));
    throw new LodestoneError("INVALID", `The body has a key of ${got} characters; at most ${most} are allowed.`);
  }

  finish(): JsonValue {
    if (this.#whole !== undefined) {
      this.#requireBlank(this.#whole.end, this.#text.length);
      return this.#whole.value;
    }
    if (this.#frames.length > 0) throw this.#fault(this.#frames.at(-1)!.from, this.#text.length);
    // Nothing was complete before the end: a short text, or one that is a single value.
    if (this.#text.length > LONG_CHUNKS * CHUNK_LENGTH && this.#text.charCodeAt(this.#skipBlanks(0, this.#text.length)) === QUOTE)
      throw new LodestoneError("INVALID", "The body is a text; expected a JSON object.");
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
        step = this.#keyBefore(parent, start, depth);
      }
    }
    this.#refuse(findFault([], this.#maxDepth - depth), depth, 0);
    const value: Frame["value"] = isList ? [] : {};
    if (parent !== undefined && step !== undefined) (parent.value as Record<string | number, JsonValue>)[step] = value;
    this.#frames.push({ value, isList, step, from: start + 1, needsComma: false, children: 0, keys: 0 });
  }

  /** The key of the member, of the frame at this depth, whose value begins at `start`. */
  #keyBefore(frame: Frame, start: number, depth: number): string {
    // A word in place of the value, since nothing before it can join with it: with a digit, `"key":1{` would become `"key":10`.
    const member = `{${this.#text.slice(frame.from, start)}null}`;
    const [key, more] = Object.keys(this.#parse(member, frame.from, start + 1) as object);
    if (key === undefined || more !== undefined) throw this.#fault(frame.from, start + 1);
    // An object of its own, so that no key is taken for something else.
    this.#refuse(findFault(Object.fromEntries([[key, null]]), 1), depth, 0);
    return key;
  }

  /** The children up to `to`, of which there is one at least. */
  #put(frame: Frame, to: number, depth: number): void {
    const part = this.#text.slice(frame.from, to);
    if (frame.isList) {
      const values = this.#parse(`[${part}]`, frame.from, to) as JsonValue[];
      if (values.length === 0) throw this.#fault(frame.from, to);
      this.#refuse(findFault(values, this.#maxDepth - depth + 1), depth, (frame.value as JsonValue[]).length);
      this.#putElements(frame, values);
    } else {
      const members = this.#parse(`{${part}}`, frame.from, to) as { [key: string]: JsonValue };
      const keys = Object.keys(members);
      if (keys.length === 0) throw this.#fault(frame.from, to);
      // Refuses a key that an assignment would take for something else, too.
      this.#refuse(findFault(members, this.#maxDepth - depth + 1), depth, 0);
      this.#putMembers(frame, members, keys, depth);
    }
  }

  #putElements(frame: Frame, values: readonly JsonValue[]): void {
    const list = frame.value as JsonValue[];
    for (const value of values) list.push(value);
    frame.children++;
  }

  #putMembers(frame: Frame, members: { [key: string]: JsonValue }, keys: readonly string[], depth: number): void {
    frame.keys += keys.length;
    if (frame.keys > this.#maxKeys) this.#refuse(this.#tooManyKeys(), depth, 0);
    const object = frame.value as { [key: string]: JsonValue };
    for (const key of keys) object[key] = members[key]!;
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
    return this.#skipBlanks(from, to) === to;
  }

  /** The first character that is not blank; `to` when all are. */
  #skipBlanks(from: number, to: number): number {
    let at = from;
    while (at < to && isBlank(this.#text.charCodeAt(at))) at++;
    return at;
  }

  /** The last such character, going back from `from`; `to` when there is none behind that. */
  #skipBlanksBack(from: number, to: number): number {
    let at = from;
    while (at > to && isBlank(this.#text.charCodeAt(at))) at--;
    return at;
  }

  #requireBlank(from: number, to: number): void {
    if (!this.#isBlank(from, to)) throw this.#fault(from, to);
  }

  #fault(from: number, to: number): LodestoneError {
    return new LodestoneError("INVALID", `The body is not valid JSON: the error is between the offsets ${from} and ${to}.`);
  }
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

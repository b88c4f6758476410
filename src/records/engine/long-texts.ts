/**
 * Long texts on their way to and from the database. The driver would encode or decode a value in one piece, which
 * takes a twentieth of a second and more for 20 MB that are not ASCII. So they are encoded in slices before a
 * statement is sent, and decoded in slices after its result has arrived (protocol-connection.ts).
 */

import { decodeUtf8, encodeUtf8 } from "../../text/utf8-in-slices.ts";
import { SLICE_UNITS, type SliceOptions, Slices } from "../../threads/event-loop.ts";
import { escapedItem } from "../postgres-text.ts";

/** In characters, or bytes. Shorter ones take a millisecond. */
export const LONG_TEXT = 1 << 18;

/** A bound value in PostgreSQL's text format, of any type. */
export class EncodedText {
  readonly pieces: readonly Buffer[];
  readonly byteLength: number;

  constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces;
    this.byteLength = pieces.reduce((sum, piece) => sum + piece.length, 0);
  }
}

/** A value of a row as it arrived: PostgreSQL's text, undecoded. */
export class UndecodedText {
  readonly #bytes: Buffer;
  readonly #parse: (text: string) => unknown;

  /** @param parse  what makes the value of the text. */
  constructor(bytes: Buffer, parse: (text: string) => unknown = (text) => text) {
    this.#bytes = bytes;
    this.#parse = parse;
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  parsedBy(parse: (text: string) => unknown): UndecodedText {
    return new UndecodedText(this.#bytes, parse);
  }

  async value(options: SliceOptions | undefined): Promise<unknown> {
    return this.#parse(await decodeUtf8(this.#bytes, options));
  }
}

/**
 * The bound values of a statement, with EncodedText in place of long texts and of long arrays of texts.
 * @throws the signal's reason.
 */
export async function withEncodedTexts(values: readonly unknown[], options?: SliceOptions): Promise<readonly unknown[]> {
  const encoded: unknown[] = [];
  for (const value of values) {
    if (isLongText(value)) encoded.push(new EncodedText(await encodeUtf8([value], options)));
    else if (isLongArray(value)) encoded.push(new EncodedText(await encodeUtf8(arrayLiteral(value), options)));
    else encoded.push(value);
  }
  return encoded;
}

export const hasLongText = (values: readonly unknown[]): boolean => values.some((value) => isLongText(value) || isLongArray(value));

const isLongText = (value: unknown): value is string => typeof value === "string" && value.length > LONG_TEXT;

function isLongArray(value: unknown): value is readonly (string | null)[] {
  if (!Array.isArray(value)) return false;
  let length = 0;
  for (const item of value) {
    if (typeof item === "string") length += item.length;
    else if (item !== null) return false;
  }
  return length > LONG_TEXT;
}

/** PostgreSQL's text form of a text[], in pieces. */
function* arrayLiteral(items: readonly (string | null)[]): Generator<string, void, undefined> {
  let separator = "{";
  for (const item of items) {
    yield separator;
    separator = ",";
    if (item === null) {
      yield "NULL";
      continue;
    }
    yield '"';
    for (let begin = 0; begin < item.length; begin += LONG_TEXT) yield escapedItem(item.slice(begin, begin + LONG_TEXT));
    yield '"';
  }
  yield items.length === 0 ? "{}" : "}";
}

/** Decodes in place what is undecoded in the rows. @throws the signal's reason. */
export async function decodeTexts(rows: readonly object[], options?: SliceOptions): Promise<void> {
  const slices = new Slices(SLICE_UNITS, "", options);
  for (const row of rows as readonly Record<string, unknown>[]) {
    const keys = Object.keys(row);
    for (const key of keys) {
      const value = row[key];
      if (!(value instanceof UndecodedText)) continue;
      row[key] = await value.value(options);
      if (slices.spend(value.byteLength)) await slices.rest();
    }
    if (slices.spend(keys.length)) await slices.rest();
  }
}

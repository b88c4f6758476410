/**
 * Text in the encodings in which files come, read strictly: a byte that is no text in the encoding is refused, never
 * replaced. (TextDecoder gives windows-1252 when asked for latin1, and a letter for bytes that neither has.)
 */
import { isUtf8 } from "node:buffer";
import { isHighSurrogate } from "../../text/surrogates.ts";

export const ENCODINGS = ["utf-8", "latin1", "windows-1252", "utf-16", "utf-16le", "utf-16be"] as const;
/** latin1 is ISO 8859-1, of one byte per character. utf-16 says its byte order by the mark that it begins with. */
export type Encoding = (typeof ENCODINGS)[number];

/** Decodes a text that comes in pieces. */
export interface Decoder {
  /** Bytes of a line end. */
  readonly unitBytes: 1 | 2;
  /**
   * @param bytes  the rest of the previous piece and the next one.
   * @returns what could be decoded, and how many bytes that was; the rest needs more bytes.
   * @throws {NotText}
   */
  decode(bytes: Buffer): { readonly text: string; readonly used: number };
}

/** Says which byte of the piece begins what is not text. */
export class NotText extends Error {
  readonly at: number;
  constructor(at: number) {
    super(`byte ${at} is not text`);
    this.at = at;
  }
}

export function decoderOf(encoding: "latin1" | "windows-1252" | "utf-16le" | "utf-16be"): Decoder {
  switch (encoding) {
    case "latin1":
      return { unitBytes: 1, decode: (bytes) => ({ text: bytes.toString("latin1"), used: bytes.length }) };
    case "windows-1252":
      return { unitBytes: 1, decode: (bytes) => ({ text: decodeWindows1252(bytes), used: bytes.length }) };
    case "utf-16le":
      return { unitBytes: 2, decode: decodeUtf16 };
    case "utf-16be":
      return { unitBytes: 2, decode: (bytes) => decodeUtf16(Buffer.from(bytes.subarray(0, bytes.length & ~1)).swap16()) };
  }
}

/** Of 0x80 to 0x9f (unicode.org, CP1252.TXT); a blank where it has no character. Everywhere else it is latin1. */
const WINDOWS_1252 = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";

function decodeWindows1252(bytes: Buffer): string {
  return bytes.toString("latin1").replace(/[\u0080-\u009f]/g, (character, at: number) => {
    const found = WINDOWS_1252[character.charCodeAt(0) - 0x80] as string;
    if (found === " ") throw new NotText(at);
    return found;
  });
}

function decodeUtf16(bytes: Buffer): { text: string; used: number } {
  let used = bytes.length & ~1;
  // Half of a pair needs the other one.
  if (used > 0 && isHighSurrogate(bytes.readUInt16LE(used - 2))) used -= 2;
  const text = bytes.toString("utf16le", 0, used);
  if (!text.isWellFormed()) throw new NotText(2 * firstLoneSurrogate(text));
  return { text, used };
}

function firstLoneSurrogate(text: string): number {
  for (let at = 0; ; at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1) {
    const code = text.codePointAt(at) as number;
    if (code >= 0xd800 && code <= 0xdfff) return at;
  }
}

/**
 * The bytes up to the end of the last whole character.
 * @throws {NotText} when they are not UTF-8.
 */
export function wholeUtf8(bytes: Buffer): number {
  const end = endOfWhole(bytes, bytes.length);
  if (isUtf8(bytes.subarray(0, end))) return end;
  // The longest beginning that is UTF-8: what follows it is not.
  let [sound, faulty] = [0, bytes.length];
  while (faulty - sound > 1) {
    const middle = (sound + faulty) >> 1;
    if (isUtf8(bytes.subarray(0, endOfWhole(bytes, middle)))) sound = middle;
    else faulty = middle;
  }
  throw new NotText(endOfWhole(bytes, sound));
}

/** Before `length`, where the last character is whole. */
function endOfWhole(bytes: Buffer, length: number): number {
  for (let back = 1; back <= Math.min(3, length); back++) {
    const byte = bytes[length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? length - back : length;
  }
  return length;
}

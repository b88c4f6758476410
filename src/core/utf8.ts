/**
 * UTF-8 of ids. The coders are created on first use, so that importing needs neither. Jest's jsdom hides
 * them, but Node has them in a module as well.
 */
import { nodeModule } from "./node-modules.ts";

let knownEncoder: TextEncoder | undefined;
let knownDecoder: TextDecoder | undefined;

export function utf8Encoder(): TextEncoder {
  if (knownEncoder === undefined) {
    const Encoder = typeof TextEncoder === "undefined" ? nodeModule("node:util")?.TextEncoder : TextEncoder;
    knownEncoder = new (Encoder ?? TextEncoder)() as TextEncoder;
  }
  return knownEncoder;
}

/** Rejects malformed UTF-8 and keeps a byte order mark. */
function utf8Decoder(): TextDecoder {
  if (knownDecoder === undefined) {
    const Decoder = typeof TextDecoder === "undefined" ? nodeModule("node:util")?.TextDecoder : TextDecoder;
    knownDecoder = new (Decoder ?? TextDecoder)("utf-8", { fatal: true, ignoreBOM: true }) as TextDecoder;
  }
  return knownDecoder;
}

/** For longer texts the decoder is faster; in a page it takes microseconds for each. */
const SHORT = 24;

/** The text of some bytes. @throws {TypeError} when they are not UTF-8. */
export function decodeAt(bytes: Uint8Array, start: number, length: number): string {
  if (length <= SHORT) {
    // A plain array, because `apply` reads a typed array's elements one by one through the runtime.
    const units = new Array<number>(length);
    let all = 0;
    for (let i = 0; i < length; i++) {
      units[i] = bytes[start + i]!;
      all |= units[i]!;
    }
    if (all < 0x80) return String.fromCharCode.apply(null, units);
  }
  return utf8Decoder().decode(bytes.subarray(start, start + length));
}

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
export function utf8Decoder(): TextDecoder {
  if (knownDecoder === undefined) {
    const Decoder = typeof TextDecoder === "undefined" ? nodeModule("node:util")?.TextDecoder : TextDecoder;
    knownDecoder = new (Decoder ?? TextDecoder)("utf-8", { fatal: true, ignoreBOM: true }) as TextDecoder;
  }
  return knownDecoder;
}

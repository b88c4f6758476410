/** UTF-8 of ids. Jest's jsdom hides TextEncoder and TextDecoder; Node has them in a module as well. */
import { nodeModule } from "./node-modules.ts";

export function createEncoder(): TextEncoder {
  const Encoder = typeof TextEncoder === "undefined" ? nodeModule("node:util")?.TextEncoder : TextEncoder;
  return new (Encoder ?? TextEncoder)() as TextEncoder;
}

/** Refuses what is not UTF-8, and keeps a byte order mark. */
export function createDecoder(): TextDecoder {
  const Decoder = typeof TextDecoder === "undefined" ? nodeModule("node:util")?.TextDecoder : TextDecoder;
  return new (Decoder ?? TextDecoder)("utf-8", { fatal: true, ignoreBOM: true }) as TextDecoder;
}

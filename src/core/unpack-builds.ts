/** Unpacks the WebAssembly inside the library. */
import { decodeLzma } from "./lzma.ts";
import { PACKED_BUILDS, RELAXED_BYTES, SIMD_BYTES } from "./wasm-bytes.js";

export interface UnpackedBuilds {
  simd: Uint8Array<ArrayBuffer>;
  relaxed: Uint8Array<ArrayBuffer>;
}

/** Takes about 40 ms of CPU time. Called once per process. */
export function unpackBuilds(): UnpackedBuilds {
  const both = decodeLzma(decodeBase64(PACKED_BUILDS), SIMD_BYTES + RELAXED_BYTES);
  return { simd: both.slice(0, SIMD_BYTES), relaxed: both.slice(SIMD_BYTES) };
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

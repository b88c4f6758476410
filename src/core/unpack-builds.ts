/** The WebAssembly inside the library, as bytes. */
import { inflateSync } from "fflate";
import { BLOCK_BYTES, PACKED_BUILDS, RELAXED_BYTES, SIMD_BYTES } from "./wasm-bytes.js";

export interface UnpackedBuilds {
  simd: Uint8Array<ArrayBuffer>;
  relaxed: Uint8Array<ArrayBuffer>;
}

/** Takes some milliseconds; called once a process. */
export function unpackBuilds(): UnpackedBuilds {
  const both = inflateSync(decodeBase64(PACKED_BUILDS), { out: new Uint8Array(SIMD_BYTES + RELAXED_BYTES) });
  const simd = new Uint8Array(SIMD_BYTES);
  const relaxed = new Uint8Array(RELAXED_BYTES);
  let from = 0;
  for (let at = 0; from < both.length; at += BLOCK_BYTES) {
    for (const build of [simd, relaxed]) {
      const length = Math.max(0, Math.min(BLOCK_BYTES, build.length - at));
      build.set(both.subarray(from, from + length), Math.min(at, build.length));
      from += length;
    }
  }
  return { simd, relaxed };
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

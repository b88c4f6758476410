/**
 * Packs both builds of the core into one text for the library, one after the other: they have most of their code in
 * common, which LZMA finds at any distance. Deflate looks back no further than 32 kB, and packs both into 41 kB in place
 * of 22: the library would be 57 kB in place of 37.
 * src/core/unpack-builds.ts decodes it.
 */
import { compress } from "lzma1";

/**
 * Literals by 3 bits of the byte before, positions modulo 4: what the decoder knows. Behind this byte: the size
 * of the dictionary, 4 bytes, and the length, 8.
 */
const PROPERTIES = 0x5d;
const HEADER_BYTES = 13;

/** @returns the text of dist/core/wasm-bytes.js. */
export function packedBuildsModule(simd, relaxed) {
  const packed = Buffer.from(compress(Buffer.concat([simd, relaxed]), 9));
  if (packed[0] !== PROPERTIES) throw new Error(`The encoder used the properties ${packed[0]}; the decoder knows ${PROPERTIES}.`);
  return [
    `export const PACKED_BUILDS = "${packed.subarray(HEADER_BYTES).toString("base64")}";`,
    `export const SIMD_BYTES = ${simd.length};`,
    `export const RELAXED_BYTES = ${relaxed.length};`,
    "",
  ].join("\n");
}

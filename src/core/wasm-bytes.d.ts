/**
 * The builds of assembly/, packed. scripts/build.mjs writes dist/core/wasm-bytes.js. That file is not
 * committed, which is why this is a declaration and the import ends in .js.
 */

/** LZMA of both builds, one after the other, in base64 (scripts/packed-builds.mjs says why). */
export declare const PACKED_BUILDS: string;
export declare const SIMD_BYTES: number;
export declare const RELAXED_BYTES: number;

// Imported under the name of the file that it declares:
// ignore unused exports

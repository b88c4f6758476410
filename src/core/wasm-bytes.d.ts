/** The builds of assembly/, base64. scripts/build.mjs writes dist/core/wasm-bytes.js; it is not committed, which is why this is a declaration and the import ends in .js. */
export declare const SIMD_WASM: string;
export declare const RELAXED_WASM: string;

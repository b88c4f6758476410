/**
 * assembly/ with SIMD, as runtimes that import WebAssembly give it. scripts/library-package.mjs puts it beside
 * the file that imports it.
 */
declare const core: WebAssembly.Module;
export default core;

// Imported under the name of the file that it declares:
// ignore unused exports

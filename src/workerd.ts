/**
 * The library for workerd (Cloudflare Workers), which compiles no WebAssembly at run time: it is imported,
 * compiled ahead, and handed to the core. Packages resolve to this file by the condition `workerd`.
 */
import core from "./core.wasm";
import { provideModule } from "./index.ts";

provideModule(core);

export * from "./index.ts";

/** What the library exports; runs in browsers and Node. */
export { LodestoneError } from "./errors.ts";

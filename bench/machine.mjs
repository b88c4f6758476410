/** What a figure was measured on. */
import { cpus, totalmem } from "node:os";
import { YARDSTICK } from "./native-scan.mjs";

/** @param program  of compileNativeScan. */
export function describeMachine(program) {
  return {
    cpu: cpus()[0]?.model ?? "unknown CPU",
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    yardstick: program ? YARDSTICK : null,
  };
}

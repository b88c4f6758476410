/** Reads what slice-meter.mjs measures in a server: the longest time that its event loop let nobody else in. */
import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** The environment of a server that is to be measured. @param file  that it writes to. */
export const meterEnvironment = (file) => ({
  LODESTONE_SLICES: file,
  NODE_OPTIONS: `--import ${new URL("slice-meter.mjs", import.meta.url).href}`,
});

/** Of the longest slice since the last call, in milliseconds of CPU. */
export async function longestSlice(pid, file) {
  rmSync(file, { force: true });
  process.kill(pid, "SIGUSR2");
  for (;;) {
    await sleep(10);
    try {
      const text = readFileSync(file, "utf8");
      if (text !== "") return Number(text);
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
}

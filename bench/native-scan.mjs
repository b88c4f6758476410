/** Compiles and runs scan.c. Without a C compiler there is no yardstick, and the bench says so. */
import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const METRICS = { cosineSimilarity: 0, l2: 1, l1: 2 };

const FLAGS = ["-O3", "-march=native", "-ffast-math"];

/** The yardstick's name in the documents. */
export const YARDSTICK = `gcc ${FLAGS.join(" ")}`;

/** @returns {string | undefined} the program's path. */
export function compileNativeScan(directory) {
  const program = join(directory, "scan");
  try {
    const source = fileURLToPath(new URL("scan.c", import.meta.url));
    execFileSync(process.env.CC ?? "gcc", [...FLAGS, source, "-o", program], { stdio: "pipe" });
    return program;
  } catch (error) {
    console.error(
      `No native scan: ${error.code === "ENOENT" ? "no C compiler (gcc, or CC) here" : String(error.stderr ?? error)}. Ratios are left out.`,
    );
    return undefined;
  }
}

/** Writes vectors to a file in the form that the native scan and the peers read. */
export function writeVectors(path, data) {
  const file = openSync(path, "w");
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at < bytes.length; at += 1 << 26) writeSync(file, bytes.subarray(at, at + (1 << 26)));
  closeSync(file);
}

/**
 * Starts the native scan. The data are rows followed by queries: a Float32Array, or the path of a file that
 * contains it.
 */
export function startNativeScan(program, data, rows, dimension, queries) {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
  const path = typeof data === "string" ? data : join(directory, "data.f32");
  if (typeof data !== "string") writeVectors(path, data);
  const child = spawn(program, [path, rows, dimension, queries].map(String), { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    /** @returns {Promise<{ms: number, rows: number[]}>} */
    async scan(query, similarity) {
      child.stdin.write(`${query} ${METRICS[similarity]}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error("the native scan ended early");
      const [ms, ...best] = value.split(" ").map(Number);
      return { ms, rows: best };
    },
    stop() {
      child.stdin.end();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

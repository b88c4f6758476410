/** The file of a snapshot, while it is written. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SnapshotWriter } from "../../src/search/snapshot/snapshot-file.ts";

const MODULE = fileURLToPath(new URL("../../dist/search/snapshot/snapshot-file.js", import.meta.url));
/** In these `ulimit -f` counts. */
const BLOCK_BYTES = 512;

/** Writes a snapshot, or says why it could not. */
const PROGRAM = `
  const [module, path, message] = process.argv.slice(1);
  const { SnapshotWriter } = await import(module);
  const writer = await SnapshotWriter.create(path, path + ".draft");
  try {
    await writer.write(message);
    console.log(await writer.finish());
  } catch (error) {
    await writer.abandon();
    console.log(error.message);
  }`;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lodestone-snapshot-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const sizeOf = async (message: string): Promise<number> => {
  const path = join(directory, "measured");
  const writer = await SnapshotWriter.create(path, `${path}.draft`);
  await writer.write(message);
  return writer.finish();
};

test("a snapshot whose last byte was not written never gets its name", async () => {
  const size = await sizeOf("x".repeat(1_000));
  const message = "x".repeat(1_000 + BLOCK_BYTES - (size % BLOCK_BYTES) + 1);
  const blocks = Math.floor((await sizeOf(message)) / BLOCK_BYTES);
  expect(await sizeOf(message)).toBe(blocks * BLOCK_BYTES + 1);
  const write = (path: string, most: number): string =>
    execFileSync(
      "sh",
      ["-c", `ulimit -f ${most} && exec "$@"`, "sh", process.execPath, "--input-type=module", "-e", PROGRAM, MODULE, path, message],
      {
        encoding: "utf8",
      },
    );
  // The system writes what still fits, and reports no error.
  const path = join(directory, "cut-off");
  expect(write(path, blocks)).toMatch(/^Of (\d+) bytes \d+ could be written\.$/m);
  expect(existsSync(path)).toBe(false);
  expect(write(path, blocks + 1)).toBe(`${blocks * BLOCK_BYTES + 1}\n`);
  expect(existsSync(path)).toBe(true);
});

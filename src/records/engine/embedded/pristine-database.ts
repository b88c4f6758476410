/**
 * The database with which every data directory begins. The build makes it with initdb and packs it
 * (scripts/pristine-database.mjs); a first start unpacks it and gives it an identity of its own.
 *
 * The file is brotli of: the index's length as uint32 (little-endian), the index as JSON, the contents. A file
 * is `length` bytes of the contents from `at`, and zeros up to `size`. Directories come before what they contain.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { brotliDecompressSync } from "node:zlib";
import { crashPoint } from "../../../files/fault-points.ts";
import { syncDirectory } from "../../../files/replace-file.ts";
import { newSystemIdentifier, setSystemIdentifier } from "./system-identifier.ts";

interface Index {
  readonly directories: readonly string[];
  readonly files: readonly { readonly path: string; readonly size: number; readonly at: number; readonly length: number }[];
}

const ARCHIVE = new URL("./pristine-database.br", import.meta.url);
/** Zeros are written, never skipped: the log needs blocks that exist before it is written. */
const ZEROS = new Uint8Array(2 ** 20);

/**
 * Fills `folder`, which is empty, with a new database, synced to disk.
 *
 * Cost: 39 MB are written in some thousand files.
 */
export async function unpackDatabase(folder: string): Promise<void> {
  const bytes = brotliDecompressSync(readFileSync(ARCHIVE));
  const contentsAt = 4 + bytes.readUInt32LE(0);
  const { directories, files } = JSON.parse(bytes.toString("utf8", 4, contentsAt)) as Index;
  const contents = bytes.subarray(contentsAt);
  for (const path of directories) mkdirSync(join(folder, path), { mode: 0o700 });
  const identifier = newSystemIdentifier();
  for (const { path, size, at, length } of files) {
    const content = contents.subarray(at, at + length);
    setSystemIdentifier(path, content, identifier);
    writeWhole(join(folder, path), content, size);
    // With a slow disk this takes long: what says so gets a turn.
    await setImmediate();
  }
  crashPoint("first-start-building");
  for (const path of directories) await syncDirectory(join(folder, path));
  await syncDirectory(folder);
}

function writeWhole(path: string, content: Uint8Array, size: number): void {
  const descriptor = openSync(path, "wx", 0o600);
  try {
    for (let written = 0; written < size; ) {
      const piece = written < content.length ? content.subarray(written) : ZEROS.subarray(0, size - written);
      written += writeSync(descriptor, piece);
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The database with which every data directory begins. The build makes it with initdb and packs it
 * (scripts/pristine-database.mjs); a first start unpacks it and gives it an identity of its own.
 *
 * The file is brotli of: the index's length as uint32 (little-endian), the index as JSON, the contents. A file
 * is `length` bytes of the contents from `at`, and zeros up to `size`. Directories come before what they contain.
 */

import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { brotliDecompressSync } from "node:zlib";
import { crashPoint } from "../../../files/fault-points.ts";
import { syncDirectory } from "../../../files/replace-file.ts";

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

/**
 * A cluster's system identifier, by which PostgreSQL tells log files of another cluster from its own, and Lodestone
 * one life of a database from another (catalog/meta-schema.ts). initdb makes it once, and no tool changes it. It
 * stands at two places (PostgreSQL 18, pg_control.h and xlog_internal.h): at the start of global/pg_control, whose
 * fields end with their CRC-32C, and in the first page header of each file of the log.
 */
const CONTROL_FILE = "global/pg_control";
const LOG_FILE = /^pg_wal\/[0-9A-F]{24}$/;
const AT_IN_LOG_FILE = 24;
/** The shortest and longest length that the fields of pg_control may have, without their CRC. */
const [LEAST_FIELDS, MOST_FIELDS] = [128, 508];

/** As initdb makes it: the seconds since 1970, and 32 bits that differ. */
function newSystemIdentifier(): bigint {
  return (BigInt(Math.floor(Date.now() / 1000)) << 32n) | BigInt(randomBytes(4).readUInt32LE());
}

/**
 * @param path  of a file within the database's directory.
 * @param content  of that file; changed in place where it holds the identifier.
 * @throws when this is not the pg_control that it expects.
 */
function setSystemIdentifier(path: string, content: Buffer, identifier: bigint): void {
  if (LOG_FILE.test(path)) content.writeBigUInt64LE(identifier, AT_IN_LOG_FILE);
  if (path !== CONTROL_FILE) return;
  const crcAt = fieldsEnd(content);
  content.writeBigUInt64LE(identifier, 0);
  content.writeUInt32LE(crc32c(content.subarray(0, crcAt)), crcAt);
}

function fieldsEnd(control: Buffer): number {
  for (let end = LEAST_FIELDS; end <= MOST_FIELDS && end + 4 <= control.length; end += 4)
    if (crc32c(control.subarray(0, end)) === control.readUInt32LE(end)) return end;
  throw new Error("The new database's pg_control has no valid checksum.");
}

/** The Castagnoli polynomial, as in RFC 3720. */
function crc32c(bytes: Uint8Array): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0);
  }
  return ~crc >>> 0;
}

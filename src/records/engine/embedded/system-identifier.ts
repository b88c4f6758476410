/**
 * A cluster's system identifier, by which PostgreSQL tells log files of another cluster from its own, and Lodestone
 * one life of a database from another (catalog/meta-schema.ts). initdb makes it once, and no tool changes it. It
 * stands at two places (PostgreSQL 18, pg_control.h and xlog_internal.h): at the start of global/pg_control, whose
 * fields end with their CRC-32C, and in the first page header of each file of the log.
 */
import { randomBytes } from "node:crypto";

const CONTROL_FILE = "global/pg_control";
const LOG_FILE = /^pg_wal\/[0-9A-F]{24}$/;
const AT_IN_LOG_FILE = 24;
/** The shortest and longest length that the fields of pg_control may have, without their CRC. */
const [LEAST_FIELDS, MOST_FIELDS] = [128, 508];

/** As initdb makes it: the seconds since 1970, and 32 bits that differ. */
export function newSystemIdentifier(): bigint {
  return (BigInt(Math.floor(Date.now() / 1000)) << 32n) | BigInt(randomBytes(4).readUInt32LE());
}

/**
 * @param path  of a file within the database's directory.
 * @param content  of that file; changed in place where it holds the identifier.
 * @throws when this is not the pg_control that it expects.
 */
export function setSystemIdentifier(path: string, content: Buffer, identifier: bigint): void {
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

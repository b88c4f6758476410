/**
 * Parts of a table: a record is in part hash(id) mod n, where the hash is the first four bytes of the SHA-256
 * of the id's UTF-8, big-endian. We define it ourselves, so that PostgreSQL and JavaScript agree in every
 * version, and snapshots of a part stay valid when PostgreSQL is upgraded.
 */
import { createHash } from "node:crypto";

export interface Part {
  /** From 0. */
  readonly index: number;
  readonly of: number;
}

const HASH_BYTES = 4;

/** The index of the part that the record is in. */
export function partIndexOf(id: string, of: number): number {
  return createHash("sha256").update(id, "utf8").digest().readUInt32BE(0) % of;
}

/**
 * As SQL: whether the record of column "id" is in the part.
 *
 * PostgreSQL knows no statistics of the hash. It takes an equality for true of one row in 200, and then reads each
 * page of a table with parallel workers, or sorts the table for it. It takes an inequality for true of one in
 * three, and walks along the index.
 */
export function partCondition({ index, of }: Part): string {
  const hash = `encode(substr(sha256(convert_to("id", 'UTF8')), 1, ${HASH_BYTES}), 'hex')`;
  return `abs(('x' || ${hash})::bit(32)::int8 % ${whole(of)} - ${whole(index)}) < 1`;
}

/** It becomes SQL. */
function whole(count: number): number {
  if (!Number.isSafeInteger(count) || count < 0) throw new TypeError(`Expected a count, got ${count}.`);
  return count;
}

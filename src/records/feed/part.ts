/**
 * What only servers that hold parts of the vectors need of the feed: the records of one part, and one moment of
 * the database that several servers read (PostgreSQL's exported snapshots).
 *
 * Parts of a table: a record is in part hash(id) mod n, where the hash is the first four bytes of the SHA-256
 * of the id's UTF-8, big-endian. We define it ourselves, so that PostgreSQL and JavaScript agree in every
 * version, and snapshots of a part stay valid when PostgreSQL is upgraded.
 */
import { createHash } from "node:crypto";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import type { Part, SharedSnapshot } from "./feed-types.ts";

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

/** As pg_export_snapshot names them: the backend, its transaction, a count. */
const SNAPSHOT_ID = /^[0-9A-F]{8}-[0-9A-F]{8}-\d{1,9}$/;
/** A snapshot that nobody ends is held no longer than this. */
const LIFE_MS = 15_000;

/** The transaction that exports it stays open until `end`. */
export async function shareSnapshot(engine: Engine): Promise<SharedSnapshot & { end(): Promise<void> }> {
  if (engine.isExclusive) throw new LodestoneError("INVALID", "Only a PostgreSQL server can share a snapshot.");
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let ended: Promise<unknown> = Promise.resolve();
  const snapshot = await new Promise<SharedSnapshot>((resolve, reject) => {
    const work = async (connection: Connection): Promise<void> => {
      const { rows } = await connection.query<SharedSnapshot>("SELECT pg_export_snapshot() AS id, pg_current_snapshot()::text AS position");
      resolve(rows[0]!);
      await released;
    };
    ended = engine.transaction(work, { readOnly: true, isolation: "repeatable read", urgent: true, timeoutMs: LIFE_MS });
    ended.catch(reject);
  });
  return {
    ...snapshot,
    async end() {
      release();
      // It was held past its time, or the database went away: whoever read at it has been told.
      await ended.catch(() => {});
    },
  };
}

/**
 * The first statement of a transaction that is "repeatable read".
 * @throws {LodestoneError} UNAVAILABLE when the snapshot no longer exists.
 */
export async function readAtSnapshot(connection: Connection, { id }: SharedSnapshot): Promise<void> {
  if (!SNAPSHOT_ID.test(id)) throw new LodestoneError("INVALID", "This is not the name of a snapshot.");
  try {
    // It takes a literal only, which the pattern has vetted.
    await connection.query(`SET TRANSACTION SNAPSHOT '${id}'`);
  } catch (error) {
    if (!["22023", "42704", "58P01"].includes((error as { code?: string }).code ?? "")) throw error;
    throw new LodestoneError("UNAVAILABLE", "The shared snapshot has ended.", { cause: error, retryAfterSeconds: 1 });
  }
}

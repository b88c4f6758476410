/** One moment of a database server, read by several processes: PostgreSQL's exported snapshots. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import type { SharedSnapshot } from "./feed-types.ts";

/** As pg_export_snapshot names them: the backend, its transaction, a count. */
const SNAPSHOT_ID = /^[0-9A-F]{8}-[0-9A-F]{8}-\d{1,9}$/;
/** A snapshot that nobody ends is held no longer than this. */
const LIFE_MS = 15_000;

/** The transaction that exports it stays open until `end`. */
export async function shareSnapshot(engine: Engine): Promise<SharedSnapshot & { end(): Promise<void> }> {
  if (engine.kind !== "server") throw new LodestoneError("INVALID", "Only a PostgreSQL server can share a snapshot.");
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

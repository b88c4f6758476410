/**
 * Whether a connection is a session of its own. A pooler between (PgBouncer, pgcat, a provider's) may lend
 * server sessions for a transaction or a statement at a time: then LISTEN hears nothing, settings go to whoever
 * comes next, and advisory locks are nobody's. Nothing of this fails loudly, so it is asked for.
 */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { LodestoneError } from "../../../errors.ts";

const MARK = "lodestone.session";

/**
 * @param a  @param b  two open connections, idle.
 * @throws {LodestoneError} UNAVAILABLE when one of them does not keep its session, or both have the same.
 */
export async function requireSessions(a: pg.ClientBase, b: pg.ClientBase): Promise<void> {
  const marks = [randomUUID(), randomUUID()] as const;
  // One after the other: a pooler that lends would give both the session that was given back last.
  const first = [await mark(a, marks[0]), await mark(b, marks[1])];
  const second = [await look(a), await look(b)];
  const areKept = first.every((pid, i) => pid === second[i]!.pid && second[i]!.mark === marks[i]);
  if (areKept && first[0] !== first[1]) return;
  throw new LodestoneError(
    "UNAVAILABLE",
    "The database is reached through a connection pooler that lends its connections by the transaction or the statement. " +
      "Lodestone needs sessions (LISTEN, settings, locks): give it pool_mode = session, or the URL of PostgreSQL itself.",
  );
}

async function mark(client: pg.ClientBase, value: string): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid, set_config($1, $2, false)", [MARK, value]);
  return rows[0]!.pid;
}

async function look(client: pg.ClientBase): Promise<{ pid: number; mark: string | null }> {
  const { rows } = await client.query<{ pid: number; mark: string | null }>(
    "SELECT pg_backend_pid() AS pid, current_setting($1, true) AS mark",
    [MARK],
  );
  return rows[0]!;
}

/**
 * Checks that a connection has a session of its own. A pooler in between (PgBouncer, pgcat, a provider's) may
 * lend server sessions for one transaction or statement at a time. Then LISTEN hears nothing, settings reach
 * whoever comes next, and advisory locks belong to nobody. None of this fails loudly, hence the check.
 */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";

const MARK = "lodestone.session";

/**
 * @param a  an open, idle connection.
 * @param b  another one.
 * @throws {LodestoneError} UNAVAILABLE when one of them does not keep its session, or both share one.
 */
export async function requireSessions(a: pg.ClientBase, b: pg.ClientBase): Promise<void> {
  const marks = [randomUUID(), randomUUID()] as const;
  // One after the other: a pooler that lends sessions would give both the one that was returned last.
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

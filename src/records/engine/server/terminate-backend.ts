/**
 * Ends a session of a branch's role from outside. statement_timeout and client_connection_check_interval
 * belong to the session, and a statement that got past the first wall may have disabled them. Then breaking
 * the connection ends nothing.
 */
import pg from "pg";
import { quoteIdentifier } from "../../identifiers.ts";
import type { Connection } from "../engine.ts";

const NOT_ALLOWED = "42501";
const WAIT_MS = 2_000;
/** Limit for the whole attempt; a server that does not answer is not waited for. */
const LIMIT_MS = 5_000;

/**
 * Resolves with true when the session is gone, and with false after LIMIT_MS or when that is not known. Uses a
 * connection of its own: those of the pool may all be busy.
 *
 * @param config     connects as our own user.
 * @param processId  as PostgreSQL reports it, not a pooler.
 */
export async function terminateBackend(config: pg.ClientConfig, processId: number, roleName: string): Promise<boolean> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: WAIT_MS });
  client.on("error", () => {});
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), LIMIT_MS);
  });
  const terminate = async (): Promise<boolean> => {
    // By now the number may belong to another session, so require one of this role.
    const { rows } = await client.query<{ ended: boolean }>(
      "SELECT pg_terminate_backend(pid, $3) AS ended FROM pg_stat_activity WHERE pid = $1 AND usename = $2",
      [processId, roleName, WAIT_MS],
    );
    return rows.every(({ ended }) => ended);
  };
  const work = async (): Promise<boolean> => {
    await client.connect();
    try {
      return await terminate();
    } catch (error) {
      if ((error as { code?: string }).code !== NOT_ALLOWED) throw error;
      // The user that made the role may become a member of it, and members may end its sessions.
      await client.query(`GRANT ${quoteIdentifier(roleName)} TO CURRENT_USER`);
      return await terminate();
    }
  };
  // If it cannot be ended, the caller breaks the connection off, and the session ends when the server
  // notices.
  const hasEnded = await Promise.race([work().catch(() => false), limit]);
  clearTimeout(timer);
  void client.end().catch(() => {});
  return hasEnded;
}

/**
 * Back ends that still run a users' statement although they were told to end: PostgreSQL looks at an
 * interruption between rows and pages, not inside one long expression. Until such a back end is gone it uses a
 * processor and a connection of the database.
 */
const LOOK_EVERY_MS = 500;

/** Identifies a back end: a number alone may be given to another one later. */
export interface BackEnd {
  readonly processId: number;
  readonly roleName: string;
}

/**
 * Resolves once the back end has ended. Looks again and again, also after an error: while the database cannot
 * be reached nothing is known about it.
 *
 * @param isOver  true when nobody needs to know any more (the engine was closed).
 */
export async function untilEnded(owner: Connection, { processId, roleName }: BackEnd, isOver: () => boolean): Promise<void> {
  for (;;) {
    if (isOver()) return;
    const isGone = await owner
      .query<{ n: number }>("SELECT 1 AS n FROM pg_stat_activity WHERE pid = $1 AND usename = $2", [processId, roleName])
      .then(({ rows }) => rows.length === 0)
      .catch(() => false);
    if (isGone) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS).unref());
  }
}

/**
 * Whether a database can be used, and why not: for the operator who starts the server, with what it said and what to
 * do. Never shows a password.
 */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { LodestoneError } from "../../../errors/lodestone-error.ts";

/** @param place  host and database, as the URL names them. */
export function describeStartError(error: unknown, place: string, user: string): LodestoneError {
  if (error instanceof LodestoneError) return error;
  const { code = "", message } = error as { code?: string; message: string };
  return new LodestoneError("UNAVAILABLE", `The database at ${place} ${reasonOf(code, message, user)}`, { cause: error });
}

function reasonOf(code: string, message: string, user: string): string {
  switch (code) {
    case "28P01":
      return `refuses the password of the user "${user}". Check the URL's user and password.`;
    case "28000":
      return `does not let the user "${user}" log in (${message}). Check that the role exists, may log in, and has a line in pg_hba.conf.`;
    case "3D000":
      return `does not exist (${message}). Create it first: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.`;
    case "53300":
      return `has no connection left (${message}). Raise its max_connections, or lower --database-connections of the servers that share it.`;
    case "57P03":
      return `is starting or shutting down (${message}). Try again in a moment.`;
    case "ECONNREFUSED":
      return "cannot be reached: nothing listens there. Is PostgreSQL running, and are host and port right?";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "cannot be reached: its host name cannot be resolved. Check the URL's host.";
    case "ENOENT":
      return `cannot be reached: there is no such socket (${message}). Is PostgreSQL running?`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `cannot be reached (${message}). Check host, port and firewalls.`;
  }
  if (/timeout/i.test(message)) return "cannot be reached: it does not answer. Check host, port and firewalls.";
  if (/client password must be a/.test(message))
    return `requires a password for the user "${user}". Put it into the URL: postgres://user:password@host/database.`;
  if (message === "Connection terminated unexpectedly")
    return "closes connections before they are open. Is it PostgreSQL that listens there?";
  return `refused: ${message}`;
}

// Checks that a connection has a session of its own. A pooler in between (PgBouncer, pgcat, a provider's) may
// lend server sessions for one transaction or statement at a time. Then LISTEN hears nothing, settings reach
// whoever comes next, and advisory locks belong to nobody. None of this fails loudly, hence the check.

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

const MINIMUM_MAJOR = 15;

/** @throws {LodestoneError} UNAVAILABLE: too old, or another encoding. */
export async function requireUsable(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string }>(
    "SELECT current_setting('server_version_num')::int4 AS version, current_setting('server_encoding') AS encoding",
  );
  const { version, encoding } = rows[0]!;
  if (encoding !== "UTF8") throw new LodestoneError("UNAVAILABLE", `The database has the encoding ${encoding}; Lodestone needs UTF8.`);
  if (version < MINIMUM_MAJOR * 10_000) {
    throw new LodestoneError(
      "UNAVAILABLE",
      `The database is PostgreSQL ${Math.floor(version / 10_000)}; Lodestone needs PostgreSQL ${MINIMUM_MAJOR} or later.`,
    );
  }
}

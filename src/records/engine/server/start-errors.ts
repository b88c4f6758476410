/**
 * Explains to the operator who starts the server why a database cannot be used: what it said, and what to do.
 * Never shows a password.
 */
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

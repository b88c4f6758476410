/** Errors of the search database, as searches report them. */
import pg from "pg";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { DatabaseAwayError } from "../../records/database-away.ts";

export function searchDatabaseAway(cause: unknown): DatabaseAwayError {
  return new DatabaseAwayError(cause, "search database");
}

/**
 * A lost connection becomes UNAVAILABLE, and a time limit TIMEOUT. Other errors of the database are returned
 * unchanged.
 */
export function asSearchError(error: unknown): unknown {
  if (error instanceof LodestoneError) return error;
  if (!(error instanceof pg.DatabaseError)) return searchDatabaseAway(error);
  const code = error.code ?? "";
  if (code === "57014") {
    return new LodestoneError(
      "TIMEOUT",
      "The search ran past its time limit and was ended. Ask for fewer rows, or raise --statement-timeout.",
      {
        cause: error,
      },
    );
  }
  // A connection that broke, a server that shuts down or starts up, no free connection, a primary that became
  // a standby.
  if (code.startsWith("08") || code.startsWith("57P") || code === "53300" || code === "25006") return searchDatabaseAway(error);
  return error;
}

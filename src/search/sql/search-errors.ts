/** What goes wrong with the search database, as searches tell of it. */
import pg from "pg";
import { LodestoneError } from "../../errors.ts";
import { DatabaseAwayError } from "../../records/database-away.ts";

export function searchDatabaseAway(cause: unknown): DatabaseAwayError {
  return new DatabaseAwayError(cause, "The search database");
}

/** What the database said stays what it is, for whoever knows what to do about it; a connection that is lost is UNAVAILABLE. */
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
  // Of the connection, shutting down, starting up, a primary that became a standby.
  if (code.startsWith("08") || code.startsWith("57P") || code === "53300" || code === "25006") return searchDatabaseAway(error);
  return error;
}

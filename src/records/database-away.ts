/** The error for a database that is away, for callers that would otherwise wait for it. */
import { LodestoneError } from "../errors/lodestone-error.ts";

/** No connection to the database could be made: nothing was sent to it, and waiting a little would not help. */
export class DatabaseAwayError extends LodestoneError {
  /** The one that holds the records, or the one of `--search-url`. */
  readonly database: "database" | "search database";

  constructor(cause?: unknown, database: DatabaseAwayError["database"] = "database") {
    super("UNAVAILABLE", `The ${database} cannot be reached at the moment. Nothing was changed: try again.`, {
      retryAfterSeconds: 1,
      cause,
    });
    this.database = database;
  }
}

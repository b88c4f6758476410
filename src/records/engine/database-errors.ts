/**
 * Database errors that no particular request is to blame for, worded the same in whichever layer they occur.
 * All others stay as PostgreSQL gives them (`code` is the SQLSTATE).
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";

const DISK_FULL = "53100";
const IO_ERROR = "58030";
const OUT_OF_MEMORY = "53200";

/** PostgreSQL's own limit of 1 GB for one value, or for one row on its way out. */
const isBeyondOneValue = (code = "", message = ""): boolean =>
  (code === "54000" && ["out of memory", "tuple is too big"].includes(message)) ||
  (code === "XX000" && message.startsWith("invalid memory alloc request size"));

export function asServiceError(error: unknown): unknown {
  const { code, message } = error as { code?: string; message?: string };
  // The statement was rolled back and the session continues: this request asked for too much.
  if (code === OUT_OF_MEMORY || isBeyondOneValue(code, message)) {
    return new LodestoneError(
      "INVALID",
      `The statement needs too much memory: ${message}. Nothing was changed. Send or request less at once.`,
      { cause: error },
    );
  }
  if (code !== DISK_FULL && code !== IO_ERROR) return error;
  return new LodestoneError("UNAVAILABLE", "The database cannot write: its disk is full or failing. Nothing was changed.", {
    cause: error,
  });
}

const CONTENTION: ReadonlySet<unknown> = new Set(["40001", "40P01"]); // serialization failure, deadlock

/** The database has rolled it back because of another transaction: it may succeed when it is done again. */
export const isContention = (error: unknown): boolean => CONTENTION.has((error as { code?: unknown } | null | undefined)?.code);

const UNDEFINED_TABLE = "42P01";
const UNDEFINED_COLUMN = "42703";
const UNDEFINED_SCHEMA = "3F000";
const UNDEFINED = [UNDEFINED_TABLE, UNDEFINED_COLUMN, UNDEFINED_SCHEMA];

/** The database says that a schema, a table or a column does not exist. */
export function isMissingRelation(error: unknown): boolean {
  const cause = error instanceof LodestoneError ? error.cause : error;
  return UNDEFINED.includes(String((cause as { code?: unknown } | null | undefined)?.code));
}

/**
 * Made only when needed: an error's stack costs more than a short statement's share of the event loop.
 *
 * @param cause  the database's own error, if it is the database that ended the statement.
 */
export function timedOut(limitMs: number, cause?: unknown): LodestoneError {
  return new LodestoneError("TIMEOUT", `The statement ran longer than ${limitMs / 1000} seconds; it was cancelled and rolled back.`, {
    cause,
  });
}

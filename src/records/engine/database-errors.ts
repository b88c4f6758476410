/** Errors of the database that are nobody's request: said the same way whichever layer meets them. The rest stays as PostgreSQL gives it (`code` is its SQLSTATE). */
import { LodestoneError } from "../../errors.ts";

const DISK_FULL = "53100";
const IO_ERROR = "58030";

export function asServiceError(error: unknown): unknown {
  const code = (error as { code?: string }).code;
  if (code !== DISK_FULL && code !== IO_ERROR) return error;
  return new LodestoneError("UNAVAILABLE", "The database cannot write: its disk is full or failing. Nothing was changed.", {
    cause: error,
  });
}

/**
 * Translates PostgreSQL's errors about a user's statement: nearly always INVALID with PostgreSQL's own words.
 */
import { DatabaseError } from "pg";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { MAX_JSON_DEPTH } from "../json-depth.ts";

export function translateError(error: unknown): unknown {
  if (error instanceof LodestoneError || !(error instanceof DatabaseError)) return error;
  const code = error.code ?? "";
  // Class 53: out of disk, too many connections (the engine has already translated out of memory).
  if (code === "53400" || code === "54000")
    return new LodestoneError("INVALID", `The statement needs too much: ${error.message}.`, { cause: error });
  if (code.startsWith("53") || code.startsWith("58") || code === "XX001" || code === "XX002") {
    return new LodestoneError("UNAVAILABLE", "The database cannot run the statement at the moment.", { cause: error });
  }
  if (code === "23514" && /\.json$/.test(error.constraint ?? "")) {
    return new LodestoneError("INVALID", `json columns hold JSON of at most ${MAX_JSON_DEPTH} levels; a value is nested deeper.`, {
      cause: error,
    });
  }
  const detail = error.detail === undefined || error.detail === "" ? "" : ` ${error.detail}`;
  const hint = error.hint === undefined || error.hint === "" ? "" : ` Hint: ${error.hint}`;
  const position = error.position === undefined ? "" : ` (at character ${error.position})`;
  return new LodestoneError("INVALID", `${error.message}${position}.${detail}${hint}`, { cause: error });
}

/**
 * Turns what PostgreSQL says when a write breaks a rule of the schema into the words of the API: the column by
 * the user's name, what is wrong, and the fix.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import { MAX_JSON_DEPTH } from "../../catalog/json-limits.ts";
import type { ColumnInfo, TableInfo } from "../../schema.ts";

/** A rule that a write broke. `value` is the text of the offending value where PostgreSQL tells it. */
export interface ConstraintFault {
  readonly error: LodestoneError;
  readonly column: ColumnInfo | "id" | undefined;
  readonly value: string | undefined;
}

interface PostgresError {
  readonly code: string;
  readonly message: string;
  readonly detail?: string;
  readonly column?: string;
  readonly constraint?: string;
}

/**
 * Runs a write, and turns PostgreSQL's errors about the data into a LodestoneError. Other errors pass unchanged
 * (the engine retries some).
 */
export async function explained<Result>(table: TableInfo, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    throw explain(table, error)?.error ?? error;
  }
}

/** undefined when the error is not about the data of a write to `table`. */
export function explain(table: TableInfo, error: unknown): ConstraintFault | undefined {
  if (!isPostgresError(error)) return undefined;
  const key = /\((.+?)\)=\(([\s\S]*)\)/.exec(error.detail ?? "");
  const value = key?.[2];
  const named = columnOf(table, error.column ?? unquoted(key?.[1]) ?? constraintColumn(error.constraint));
  const fault = (code: "INVALID" | "CONFLICT", message: string): ConstraintFault => ({
    error: new LodestoneError(code, message, { cause: error }),
    column: named,
    value,
  });
  const where = named === undefined ? `table ${quoted(table.name)}` : named === "id" ? "id" : `column ${quoted(named.name)}`;
  switch (error.code) {
    case "23505":
      return named === "id"
        ? fault(
            "CONFLICT",
            `Table ${quoted(table.name)} has a record with the id ${quoted(value ?? "")} already; update or replace it, or choose another id.`,
          )
        : // Not CONFLICT: the SDK takes a conflict of an update for "another version" and returns null, which would hide the error.
          fault(
            "INVALID",
            `${upper(where)} is unique, and another record has ${value === undefined ? "that value" : quoted(value)} already; choose another value.`,
          );
    case "23503":
      if (named !== undefined && named !== "id" && named.type === "link") {
        return fault(
          "INVALID",
          `${upper(where)} links to table ${quoted(named.link!.table)}, which has no record with the id ${quoted(value ?? "")}; create that first.`,
        );
      }
      return fault("CONFLICT", `The record is still linked to: ${error.message}.`);
    case "23502":
      return fault("INVALID", `${upper(where)} is notNull and has no default; give it a value.`);
    case "23514":
      if (named !== undefined && named !== "id" && named.type === "json")
        return fault("INVALID", `${upper(where)} holds JSON of at most ${MAX_JSON_DEPTH} levels; the value is nested deeper.`);
      return fault("INVALID", `${upper(where)} refuses the value: ${error.message}.`);
    // A number or time that the column's type cannot hold, text in another encoding, JSON that jsonb cannot hold.
    case "22003":
    case "22007":
    case "22008":
    case "22021":
    case "22P02":
    case "22P05":
      return fault("INVALID", `A value cannot be stored in table ${quoted(table.name)}: ${error.message}.`);
    case "22012":
      return fault("INVALID", "$divide: division by 0; divide by another number.");
    case "54000":
      return fault("INVALID", `A value is too long for the index of a unique or link column (about 2,700 bytes): ${error.message}.`);
    default:
      return undefined;
  }
}

function isPostgresError(error: unknown): error is PostgresError {
  return (
    error instanceof Error && !(error instanceof LodestoneError) && /^[0-9A-Z]{5}$/.test(String((error as Partial<PostgresError>).code))
  );
}

function columnOf(table: TableInfo, physicalName: string | undefined): ColumnInfo | "id" | undefined {
  if (physicalName === "id") return "id";
  for (const column of table.columns.values()) if (column.physicalName === physicalName) return column;
  return undefined;
}

/** Constraints are named `table.column.kind`; a truncated name says nothing. */
function constraintColumn(constraint: string | undefined): string | undefined {
  return /^[^.]*\.(.+)\.(?:unique|email|vector|link|json|key)$/.exec(constraint ?? "")?.[1];
}

function unquoted(name: string | undefined): string | undefined {
  return name?.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}

function upper(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}

/**
 * POST …/bulk: up to 1,000 new records, all or nothing, in one statement. Each column travels as one array
 * (`unnest`), and all vectors of a column as one binary parameter that the statement cuts into rows.
 * bench/records.mjs shows the gain.
 */
import { LodestoneError, type OperationError } from "../../../errors/lodestone-error.ts";
import { COLUMN_TRAITS } from "../../column-traits.ts";
import type { Connection } from "../../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import { getRecords } from "../read/read-records.ts";
import { compileProjection, decodeRecords } from "../sql-parts/projection.ts";
import { isFlat, readSelection } from "../sql-parts/selection.ts";
import { quotedColumn, ROW, relation, WriteParameters } from "../sql-parts/statement-parts.ts";
import { allWithLongJson } from "../values/long-json.ts";
import { type EncodedRecord, encodeRecord } from "../values/sent-record.ts";
import { explain } from "./constraint-errors.ts";
import type { Session } from "./record-writer.ts";

/**
 * @throws {LodestoneError} INVALID or CONFLICT, with `errors[{index, message}]` for every record that is
 *   invalid by itself, or for the one that PostgreSQL refused.
 */
export async function insertRecords(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  records: readonly JsonObject[],
  options: ReadOptions = {},
): Promise<JsonObject[]> {
  const selection = readSelection(branch, table, options.columns);
  const encoded = readRecords(table, await allWithLongJson(table, records));
  if (encoded.length === 0) return [];
  const groups = groupByDefaults(table, encoded);
  const flat = isFlat(selection);
  const work = async (connection: Connection): Promise<JsonObject[]> => {
    // Between groups a link may point ahead; within a statement PostgreSQL checks links at its end.
    if (groups.length > 1) await connection.query("SET CONSTRAINTS ALL DEFERRED");
    const projection = compileProjection(branch, selection, ROW, options);
    const written = new Map<string, string>();
    for (const group of groups) {
      const parameters = new WriteParameters(connection);
      const statement = bulkStatement(branch, table, group, parameters);
      const { rows } = await connection.query<{ id: string; record: string }>(
        `${statement} RETURNING ${ROW}."id", ${flat ? projection.sql : "''"} AS record`,
        parameters.values,
      );
      for (const row of rows) written.set(row.id, row.record);
    }
    if (groups.length > 1) await connection.query("SET CONSTRAINTS ALL IMMEDIATE");
    if (!flat)
      return getRecords(
        connection,
        branch,
        table,
        encoded.map((record) => record.id),
        options,
      );
    const texts = encoded.map(({ id }) => written.get(id)!);
    return decodeRecords(connection, projection, texts);
  };
  try {
    // The answer is read, and charged, before the commit.
    const oneStatement = groups.length === 1 && options.columns === undefined;
    return await (oneStatement || !("transaction" in session) ? work(session) : session.transaction(work));
  } catch (error) {
    throw explainBulk(table, encoded, error);
  }
}

function readRecords(table: TableInfo, records: readonly unknown[]): EncodedRecord[] {
  const errors: OperationError[] = [];
  const encoded: EncodedRecord[] = [];
  const seen = new Map<string, number>();
  records.forEach((record, index) => {
    try {
      const one = encodeRecord(table, record as object, `records[${index}]`);
      const before = seen.get(one.id);
      const remedy = "give each record an id of its own, or none";
      if (before !== undefined)
        throw new LodestoneError("INVALID", `records[${index}].id is the id of records[${before}] as well; ${remedy}.`);
      seen.set(one.id, index);
      encoded.push(one);
    } catch (error) {
      if (!(error instanceof LodestoneError)) throw error;
      errors.push({ index, code: error.code, message: error.message, status: 400 });
    }
  });
  if (errors.length === 0) return encoded;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more, see errors)` : "";
  throw new LodestoneError("INVALID", `${errors[0]!.message}${more}`, { errors });
}

/**
 * All rows of a statement have the same columns; where a column has a default, omitting it and null are
 * different.
 */
function groupByDefaults(table: TableInfo, records: readonly EncodedRecord[]): EncodedRecord[][] {
  const defaulted = [...table.columns.values()].filter((column) => column.defaultValue !== undefined);
  const groups = new Map<string, EncodedRecord[]>();
  for (const record of records) {
    const key = defaulted.map((column) => (record.values.has(column) ? "1" : "0")).join("");
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [record]);
    else group.push(record);
  }
  return [...groups.values()];
}

/** INSERT … SELECT … FROM unnest(…), in the order of `records`. */
export function bulkStatement(
  branch: BranchInfo,
  table: TableInfo,
  records: readonly EncodedRecord[],
  parameters: WriteParameters,
): string {
  const columns = [...table.columns.values()].filter((column) => records.some((record) => record.values.has(column)));
  const arrays = [`${parameters.add(records.map((record) => record.id))}::text[]`];
  const names = ["id"];
  const selected = ["u.id"];
  for (const column of columns) {
    if (column.type === "vector") {
      selected.push(vectorSlices(column, records, arrays, names, parameters));
      continue;
    }
    const name = `c${names.length}`;
    // A list of lists would have to be rectangular, so text[] values travel as one text each.
    const type = column.type === "multiple" ? "text" : COLUMN_TRAITS[column.type].parameterType;
    arrays.push(`${parameters.add(records.map((record) => (record.values.get(column) ?? null) as string | null) as string[])}::${type}[]`);
    names.push(name);
    selected.push(column.type === "multiple" ? `u.${name}::text[]` : `u.${name}`);
  }
  return (
    `INSERT INTO ${relation(branch, table)} AS ${ROW} (${['"id"', ...columns.map(quotedColumn)].join(", ")}) ` +
    `SELECT ${selected.join(", ")} FROM unnest(${arrays.join(", ")}) WITH ORDINALITY AS u(${names.join(", ")}, ordinal) ORDER BY u.ordinal`
  );
}

/** The expression that cuts a row's vector out of all of them; a row without a vector has a null slot. */
function vectorSlices(
  column: ColumnInfo,
  records: readonly EncodedRecord[],
  arrays: string[],
  names: string[],
  parameters: WriteParameters,
): string {
  const dimension = column.vector!.dimension;
  const rows: Float32Array[] = [];
  const slots = records.map((record) => {
    const value = record.values.get(column);
    return value === undefined || value === null ? null : rows.push(value as Float32Array);
  });
  const { vectors } = parameters;
  const all = parameters.add(vectors.encode(rows));
  let slot = "u.ordinal";
  if (rows.length < records.length) {
    const name = `c${names.length}`;
    arrays.push(`${parameters.add(slots as unknown as string[])}::int8[]`);
    names.push(name);
    slot = `u.${name}`;
  }
  const nth = vectors.nthSql(all, slot, dimension);
  return rows.length < records.length ? `CASE WHEN ${slot} IS NOT NULL THEN ${nth} END` : nth;
}

/** Finds the record that PostgreSQL refused, by the value in its message. */
export function explainBulk(table: TableInfo, records: readonly EncodedRecord[], error: unknown): unknown {
  const fault = explain(table, error);
  if (fault === undefined) return error;
  const { column, value } = fault;
  const index = records.findIndex((record) => {
    if (column === undefined || value === undefined) return false;
    return column === "id" ? record.id === value : String(record.values.get(column) ?? "") === value;
  });
  const { code, message } = fault.error;
  const errors = index === -1 ? [] : [{ index, code, message, status: code === "CONFLICT" ? 422 : 400 }];
  return new LodestoneError(code, index === -1 ? message : `records[${index}]: ${message}`, {
    ...(errors.length > 0 ? { errors } : {}),
    cause: error,
  });
}

/**
 * The vectors of a column in bulk, as binary: for clients that search them elsewhere (a page, a notebook). One
 * statement per page, bounded in rows and bytes.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import type { Engine } from "../../engine/engine.ts";
import type { VectorPage, VectorsRequest } from "../../requests.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import { compileFilter, Parameters, quotedColumn, ROW, relation } from "../sql-parts/statement-parts.ts";

/** Of the elements of a page, as float32. */
const PAGE_BYTES = 1_000_000;
const MAX_PAGE_ROWS = 4_000;
const VALUE_CHARACTERS = 200;

/** Types whose values can have any size. */
const NO_VALUES: ReadonlySet<string> = new Set(["vector", "json", "multiple"]);

/** @throws {LodestoneError} NOT_FOUND: no such column. INVALID: a column of another type, or the filter. */
export async function readVectors(engine: Engine, branch: BranchInfo, table: TableInfo, request: VectorsRequest): Promise<VectorPage> {
  const column = requireColumn(table, request.column);
  if (column.vector === undefined)
    throw new LodestoneError("INVALID", `column: ${quoted(column.name)} is of type ${column.type}; expected a column of type vector.`);
  const { dimension } = column.vector;
  const rowsWanted = Math.min(request.limit ?? MAX_PAGE_ROWS, MAX_PAGE_ROWS, Math.max(1, Math.floor(PAGE_BYTES / (4 * dimension))));
  const parameters = new Parameters();
  const vector = `${ROW}.${quotedColumn(column)}`;
  const conditions = [compileFilter(branch, table, request.filter, ROW, parameters), `${vector} IS NOT NULL`];
  if (request.after !== undefined) conditions.push(`${ROW}."id" > ${parameters.add(request.after)}`);
  const statement =
    `SELECT ${ROW}."id", ${engine.vectors.textSql(vector)}, ${valueText(table, request.values)} FROM ${relation(branch, table)} AS ${ROW} ` +
    `WHERE ${conditions.join(" AND ")} ORDER BY ${ROW}."id" LIMIT ${rowsWanted + 1}`;
  const { rows } = await engine.query<[string, string, string | null]>(statement, parameters.values, { raw: true, rowMode: "array" });
  const hasMore = rows.length > rowsWanted;
  if (hasMore) rows.pop();
  return {
    dimension,
    ids: rows.map(([id]) => id),
    elements: engine.vectors.decode(
      dimension,
      rows.map(([, text]) => text),
    ),
    values: request.values === undefined ? undefined : rows.map(([, , value]) => value),
    hasMore,
  };
}

function requireColumn(table: TableInfo, name: string): ColumnInfo {
  const column = table.columns.get(name);
  if (column === undefined) throw new LodestoneError("NOT_FOUND", `Column ${quoted(name)} does not exist in table ${quoted(table.name)}.`);
  return column;
}

function valueText(table: TableInfo, name: string | undefined): string {
  if (name === undefined) return "NULL";
  const column = requireColumn(table, name);
  if (NO_VALUES.has(column.type))
    throw new LodestoneError(
      "INVALID",
      `values: ${quoted(name)} is of type ${column.type}; expected a column of one value, such as a string.`,
    );
  return `left(${ROW}.${quotedColumn(column)}::text, ${VALUE_CHARACTERS})`;
}

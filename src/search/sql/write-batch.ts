/**
 * Writes a batch of the change feed to the tables of the search database, as `SearchTable.apply` does in
 * memory.
 */
import { squares } from "../../core/exact.ts";
import { VALUE_KINDS } from "../../filter/column-path.ts";
import type { FeedBatch, FeedColumn } from "../../records/feed/feed-types.ts";
import type { FollowedColumn, FollowedTable } from "../followed-schema.ts";
import { rowKind } from "./error-bounds.ts";
import type { SearchDatabase, Statements } from "./search-database.ts";
import { allColumns, kindColumn, omittedTable, tableName, unsearchableColumn, valueColumn, vectorColumns } from "./table-layout.ts";
import { vectorArray } from "./vector-array.ts";

/** The number of searchable vectors by column id, or the change of that number. */
export type VectorCounts = Map<number, number>;

/**
 * The length of the text that replaces one that is too large to keep. It is longer than any operand of a
 * filter, so it exists but equals none.
 */
const OMITTED_TEXT_LENGTH = 100_001;

/**
 * One column of the statement: its name, the type of its array, an expression over an element called `x`, and
 * the array.
 */
interface Written {
  readonly name: string;
  readonly type: string;
  readonly value: (x: string) => string;
  readonly values: unknown;
}

/** Skips columns that the table does not have. Adds the changes to `counts`. */
export async function writeBatch(
  statements: Statements,
  database: SearchDatabase,
  generation: string,
  table: FollowedTable,
  batch: FeedBatch,
  counts: VectorCounts,
): Promise<void> {
  const name = tableName(generation, table.id);
  const ids = [...batch.deleted, ...batch.ids];
  if (ids.length === 0) return;
  const before = await countVectors(statements, name, table, ids);
  if (batch.deleted.length > 0) await statements.query(`DELETE FROM ${name} WHERE id = ANY ($1::text[])`, [batch.deleted]);
  const columns = allColumns(table).filter((column) => batch.columns.has(column.name));
  await writeOmitted(statements, generation, table, columns, batch);
  if (batch.ids.length > 0) {
    const written = columns.flatMap((column) => columnsOf(column, batch.columns.get(column.name)!, batch.ids.length, database));
    const names = ["id", ...written.map((column) => column.name)];
    const values = ["x0", ...written.map((column, i) => column.value(`x${i + 1}`))];
    const arrays = ["$1::text[]", ...written.map((column, i) => `$${i + 2}::${column.type}[]`)];
    const updates = written.map((column) => `${column.name} = excluded.${column.name}`);
    await statements.query(
      `INSERT INTO ${name} (${names.join(", ")}) SELECT ${values.join(", ")} FROM unnest(${arrays.join(", ")}) AS rows(${names.map((_, i) => `x${i}`).join(", ")})
       ON CONFLICT (id) DO ${updates.length === 0 ? "NOTHING" : `UPDATE SET ${updates.join(", ")}`}`,
      [batch.ids, ...written.map((column) => column.values)],
    );
  }
  const after = await countVectors(statements, name, table, ids);
  for (const [column, count] of after) counts.set(column, (counts.get(column) ?? 0) + count - (before.get(column) ?? 0));
}

async function countVectors(statements: Statements, name: string, table: FollowedTable, ids: readonly string[]): Promise<VectorCounts> {
  const columns = vectorColumns(table).map(({ id }) => id);
  if (columns.length === 0) return new Map();
  const counted = columns.map((id, i) => `count(${valueColumn(id)})::int4 AS n${i}`);
  const [row] = await statements.query<Record<string, number>>(`SELECT ${counted.join(", ")} FROM ${name} WHERE id = ANY ($1::text[])`, [
    ids,
  ]);
  return new Map(columns.map((id, i) => [id, row![`n${i}`]!]));
}

/** Replaces the list of these records' values that are not kept. It is almost always empty. */
async function writeOmitted(
  statements: Statements,
  generation: string,
  table: FollowedTable,
  columns: readonly FollowedColumn[],
  batch: FeedBatch,
): Promise<void> {
  const omitted = omittedTable(generation);
  const columnIds = columns.map(({ id }) => id);
  await statements.query(
    `DELETE FROM ${omitted} WHERE table_id = $1 AND (id = ANY ($2::text[]) OR (id = ANY ($3::text[]) AND column_id = ANY ($4::int8[])))`,
    [table.id, batch.deleted, batch.ids, columnIds],
  );
  for (const { id, name } of columns) {
    const places = omittedOf(batch.columns.get(name)!);
    if (places === undefined || places.size === 0) continue;
    const ids = [...places].map((place) => batch.ids[place]!);
    await statements.query(`INSERT INTO ${omitted} SELECT $1, $2, unnest($3::text[])`, [table.id, id, ids]);
  }
}

function omittedOf(column: FeedColumn): ReadonlySet<number> | undefined {
  return "omitted" in column ? column.omitted : undefined;
}

const same = (x: string): string => x;

function columnsOf(column: FollowedColumn, from: FeedColumn, count: number, database: SearchDatabase): Written[] {
  const name = valueColumn(column.id);
  const kind = VALUE_KINDS[column.type];
  if (from.kind !== kind) throw new TypeError(`A column of kind ${kind} gets values of kind ${from.kind}.`);
  switch (from.kind) {
    case "text":
      return [
        { name, type: "text", value: same, values: withOmitted(from.values, omittedOf(from), () => "x".repeat(OMITTED_TEXT_LENGTH)) },
      ];
    case "multiple": {
      const texts = from.values.map((value) => (value === null ? null : JSON.stringify(value)));
      const value = (x: string): string =>
        `CASE WHEN ${x} IS NOT NULL THEN ARRAY(SELECT item FROM jsonb_array_elements_text(${x}::jsonb) WITH ORDINALITY AS items(item, n) ORDER BY n) END`;
      return [{ name, type: "text", value, values: withOmitted(texts, omittedOf(from), () => "[]") }];
    }
    case "json":
      return [{ name, type: "text", value: (x) => `${x}::jsonb`, values: from.values }];
    case "int":
    case "datetime":
      return [{ name, type: "int8", value: same, values: from.values }];
    case "float":
      return [{ name, type: "float8", value: same, values: from.values }];
    case "bool":
      return [{ name, type: "bool", value: same, values: from.values }];
    case "vector":
      return vectorColumnsOf(column, from, count, database);
  }
}

function withOmitted(values: (string | null)[], omitted: ReadonlySet<number> | undefined, stand: () => string): (string | null)[] {
  return omitted === undefined ? values : values.map((value, i) => (omitted.has(i) ? stand() : value));
}

function vectorColumnsOf(
  { id, vector }: FollowedColumn,
  from: Extract<FeedColumn, { kind: "vector" }>,
  count: number,
  database: SearchDatabase,
): Written[] {
  const { dimension, elements, rows } = from;
  const isSearchable: boolean[] = [];
  const unsearchable: (boolean | null)[] = new Array(count).fill(null);
  const kinds: (number | null)[] = new Array(count).fill(null);
  rows.forEach((row, n) => {
    // The sum is finite exactly if all elements are.
    const sum = squares(elements, n * dimension, dimension);
    isSearchable[n] = dimension === vector!.dimension && Number.isFinite(sum);
    if (isSearchable[n]) kinds[row] = rowKind(sum);
    else unsearchable[row] = true;
  });
  const values = vectorArray(from, count, database.vectorOid, (n) => isSearchable[n]!);
  return [
    { name: valueColumn(id), type: `${database.vectorSchema}.vector`, value: same, values },
    { name: unsearchableColumn(id), type: "bool", value: same, values: unsearchable },
    { name: kindColumn(id), type: "int2", value: same, values: kinds },
  ];
}

/**
 * The key property of filters: SQL over the records and the mask over the search store's columns select the
 * same records.
 */
import { PGlite } from "@electric-sql/pglite";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createColumn } from "../../src/columns/stored-column.ts";
import { RowDirectory } from "../../src/core/row-directory.ts";
import { foldFunctionSql } from "../../src/filter/fold.ts";
import { compileToMask } from "../../src/filter/mask.ts";
import { parseFilter } from "../../src/filter/parse.ts";
import { compileToSql, type SqlContext } from "../../src/filter/sql-condition.ts";
import type { FilterColumnType, FilterTable } from "../../src/filter/tree.ts";
import { SearchTable } from "../../src/search/table-index.ts";
import { runs } from "../support/random-runs.ts";
import { filterArbitrary, type Row, rowsArbitrary, SCHEMA } from "./filter-arbitrary.ts";

const TYPES: Record<Exclude<FilterColumnType, "vector">, string> = {
  string: `text COLLATE "C"`,
  text: `text COLLATE "C"`,
  email: `text COLLATE "C"`,
  link: `text COLLATE "C"`,
  int: "int8",
  float: "float8",
  bool: "bool",
  datetime: "timestamptz",
  multiple: "text[]",
  json: "jsonb",
};

const SYSTEM = [
  ["xata.version", "int"],
  ["xata.createdAt", "datetime"],
  ["xata.updatedAt", "datetime"],
] as const;

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const CONTEXT: SqlContext = {
  alias: "t",
  firstParameter: 1,
  column: (alias, _table, column) => `${alias}.${quote(column)}`,
  relation: (table) => quote(table),
};

function columnsOf(table: FilterTable): (readonly [string, Exclude<FilterColumnType, "vector">])[] {
  return [...SYSTEM, ...[...table.columns.values()].map((c) => [c.name, c.type as Exclude<FilterColumnType, "vector">] as const)];
}

describe("SQL and mask", () => {
  let database: PGlite;
  beforeAll(async () => {
    database = await PGlite.create();
    await database.exec(`CREATE SCHEMA lodestone; ${foldFunctionSql()}`);
    for (const table of SCHEMA.values()) {
      const columns = columnsOf(table).map(([name, type]) => `${quote(name)} ${TYPES[type]}`);
      await database.exec(`CREATE TABLE ${quote(table.name)} ("id" text COLLATE "C" PRIMARY KEY, ${columns.join(", ")})`);
    }
  });
  afterAll(() => database.close());

  /**
   * Everything is written as text, so that PostgreSQL's own input functions read NaN, infinities and int8.
   */
  const store = async (table: FilterTable, rows: readonly Row[]): Promise<void> => {
    await database.exec(`TRUNCATE ${quote(table.name)}`);
    if (rows.length === 0) return;
    const columns = columnsOf(table);
    const values: (string | null)[] = [];
    const tuples = rows.map((row) => {
      const cells = [["id", "string"] as const, ...columns].map(([name, type]) => {
        values.push(cellText(row[name] ?? null, type));
        return `$${values.length}::text::${TYPES[type].replace(' COLLATE "C"', "")}`;
      });
      return `(${cells.join(", ")})`;
    });
    await database.query(`INSERT INTO ${quote(table.name)} VALUES ${tuples.join(", ")}`, values);
  };

  const load = async (table: FilterTable): Promise<SearchTable> => {
    const kept = new SearchTable(new RowDirectory());
    for (const [name, type] of columnsOf(table)) kept.addColumn(name, createColumn(type));
    // Rows are added, changed and removed first, so that masks meet freed rows and reused codes.
    const gone = ["gone-1", "gone-2", "gone-3"];
    kept.apply({ table: table.name, ids: gone, columns: new Map(), deleted: [] });
    kept.apply({ table: table.name, ids: [], columns: new Map(), deleted: gone.slice(1) });
    const { rows } = await database.query<Row>(
      `SELECT "id", ${columnsOf(table).map(([name, type]) => selectCell(name, type))} FROM ${quote(table.name)} ORDER BY "id"`,
    );
    kept.apply({
      table: table.name,
      ids: rows.map((row) => row.id as string),
      columns: new Map(
        columnsOf(table).map(
          ([name, type]) =>
            [
              name,
              feedColumn(
                type,
                rows.map((row) => (row[name] ?? null) as string | null),
              ),
            ] as const,
        ),
      ),
      deleted: ["gone-1"],
    });
    return kept;
  };

  test("select the same records, whatever the data and the filter", async () => {
    let selected = 0;
    let filters = 0;
    await fc.assert(
      fc.asyncProperty(rowsArbitrary, fc.array(filterArbitrary, { minLength: 30, maxLength: 30 }), async (data, expressions) => {
        const tables = new Map<string, SearchTable>();
        for (const table of SCHEMA.values()) {
          await store(table, data[table.name]!);
          tables.set(table.name, await load(table));
        }
        const items = tables.get("items")!;
        for (const expression of expressions) {
          const node = parseFilter(expression, SCHEMA.get("items")!, SCHEMA);
          const { text, values } = compileToSql(node, CONTEXT);
          const { rows } = await database.query<{ id: string }>(`SELECT "id" FROM "items" AS t WHERE ${text} ORDER BY "id"`, values);
          const mask = compileToMask(node, "items", { table: (name) => tables.get(name)! });
          const ids = [...items.rows.entries()].filter(([, row]) => ((mask[row >> 5]! >> (row & 31)) & 1) === 1).map(([id]) => id);
          filters++;
          selected += rows.length > 0 && rows.length < data.items!.length ? 1 : 0;
          expect(ids.sort(), `filter ${JSON.stringify(expression)}\nSQL ${text}\nvalues ${JSON.stringify(values)}`).toEqual(
            rows.map((row) => row.id).sort(),
          );
        }
      }),
      { numRuns: runs(40) },
    );
    // The generator must not degenerate into filters that select all or nothing.
    if (process.env.LODESTONE_RUNS) console.log(`${filters} filters, ${selected} select some but not all`);
    expect(selected / filters).toBeGreaterThan(0.2);
  });
});

function cellText(value: Row[string], type: FilterColumnType): string | null {
  if (value === null) return null;
  if (type === "json") return JSON.stringify(value);
  if (type === "multiple") {
    return `{${(value as (string | null)[]).map((v) => (v === null ? "NULL" : `"${v.replaceAll(/[\\"]/g, "\\$&")}"`)).join(",")}}`;
  }
  return String(value);
}

function selectCell(name: string, type: FilterColumnType): string {
  const column = quote(name);
  if (type === "datetime") return `(extract(epoch FROM ${column}) * 1000000)::int8::text AS ${column}`;
  if (type === "multiple") return `array_to_json(${column})::text AS ${column}`;
  return `${column}::text AS ${column}`;
}

function feedColumn(type: FilterColumnType, values: (string | null)[]) {
  const map = <T>(parse: (value: string) => T) => values.map((value) => (value === null ? null : parse(value)));
  switch (type) {
    case "int":
    case "datetime":
      return { kind: type, values: map(BigInt) };
    case "float":
      return { kind: "float" as const, values: map((v) => Number(v)) };
    case "bool":
      return { kind: "bool" as const, values: map((v) => v === "true") };
    case "multiple":
      return { kind: "multiple" as const, values: map((v) => JSON.parse(v) as (string | null)[]) };
    case "json":
      return { kind: "json" as const, values };
    default:
      return { kind: "text" as const, values };
  }
}

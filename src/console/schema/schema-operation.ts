/** Schema changes as `schema/apply` and `schema/compare` represent them: each one in words, and its consequences, shown before it is made. */
import type { SchemaOperation } from "../../records/schema.ts";
import { branchPath, call, type Place, tablePath } from "../api/client.ts";
import { counted } from "../parts/numbers.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";

export type { SchemaOperation };

/** The types of columns, to choose from. */
export const TYPE_WORDS: Readonly<Record<ColumnSchema["type"], string>> = {
  string: "string",
  text: "text, for long texts",
  email: "email",
  int: "int, 64 bits",
  float: "float, 64 bits",
  bool: "bool",
  datetime: "datetime",
  multiple: "multiple, a list of strings",
  json: "json",
  link: "link to a record",
  vector: "vector, for search",
};

/** "vector · 384", "link to makers". */
export function typeInWords({ type, vector, link }: ColumnSchema): string {
  if (vector !== undefined) return `vector · ${vector.dimension}`;
  return link === undefined ? type : `link to ${link.table}`;
}

export function rulesOf({ notNull, unique, defaultValue }: ColumnSchema): readonly string[] {
  return [
    ...(notNull === true ? ["not null"] : []),
    ...(unique === true ? ["unique"] : []),
    ...(defaultValue === undefined || defaultValue === null ? [] : [`default ${defaultValue}`]),
  ];
}

/** As a line of a difference. */
export function inWords(operation: SchemaOperation): { readonly sign: "+" | "−" | "→"; readonly text: string } {
  if ("addTable" in operation) return { sign: "+", text: `table ${operation.addTable.table}` };
  if ("removeTable" in operation) return { sign: "−", text: `table ${operation.removeTable.table}` };
  if ("renameTable" in operation) {
    return { sign: "→", text: `table ${operation.renameTable.oldName} becomes ${operation.renameTable.newName}` };
  }
  if ("addColumn" in operation) {
    const { table, column } = operation.addColumn;
    const rules = rulesOf(column).map((rule) => `, ${rule}`);
    return { sign: "+", text: `column ${table}.${column.name}: ${typeInWords(column)}${rules.join("")}` };
  }
  if ("removeColumn" in operation) return { sign: "−", text: `column ${operation.removeColumn.table}.${operation.removeColumn.column}` };
  const { table, oldName, newName } = operation.renameColumn;
  return { sign: "→", text: `column ${table}.${oldName} becomes ${newName}` };
}

export const isDestructive = (operation: SchemaOperation): boolean => "removeTable" in operation || "removeColumn" in operation;

/** Each line needs a request for its numbers; beyond this many lines the text omits them. */
const MOST_COUNTED = 50;

/** Counts a table's records, and those with a value in `column` if it is given. */
export async function countRecords(place: Place, table: string, column?: string): Promise<{ all: number; filled: number }> {
  const filled = column === undefined ? {} : { filled: { count: { filter: { $exists: column } } } };
  const { aggs } = await call<{ aggs: { all: number; filled?: number } }>("POST", `${tablePath(place, table)}/aggregate`, {
    aggs: { all: { count: "*" }, ...filled },
  });
  return { all: aggs.all, filled: aggs.filled ?? 0 };
}

/**
 * @param tables  the branch's current tables.
 * @returns a sentence or two for each operation.
 * @throws {ApiError} the server's objection to the operations, which it rehearses on the schema.
 */
export async function consequencesOf(
  place: Place,
  tables: readonly TableSchema[],
  operations: readonly SchemaOperation[],
): Promise<readonly string[]> {
  await call("POST", `${branchPath(place)}/schema/preview`, { edits: { operations } });
  const isThere = (table: string): boolean => tables.some(({ name }) => name === table);
  return Promise.all(
    operations.map((operation, i) =>
      i < MOST_COUNTED ? consequenceOf(place, tables, isThere, operation) : `${inWords(operation).sign} ${inWords(operation).text}`,
    ),
  );
}

async function consequenceOf(
  place: Place,
  tables: readonly TableSchema[],
  isThere: (table: string) => boolean,
  operation: SchemaOperation,
): Promise<string> {
  if ("addTable" in operation) return `The table ${operation.addTable.table} will be created.`;
  if ("removeTable" in operation) {
    const { table } = operation.removeTable;
    const { all } = await countRecords(place, table);
    return `The table ${table} will be deleted, with its ${counted(all, "record")}. This cannot be undone.`;
  }
  if ("renameTable" in operation) {
    const { oldName, newName } = operation.renameTable;
    const { all } = await countRecords(place, oldName);
    const links = tables.flatMap(({ columns }) => columns.filter(({ link }) => link?.table === oldName)).length;
    const said = links === 0 ? "" : ` Links to it, in ${counted(links, "column")}, will point to ${newName}.`;
    return `The table ${oldName}, with its ${counted(all, "record")}, will be renamed to ${newName}.${said} Requests and SQL that use the old name will fail.`;
  }
  if ("addColumn" in operation) {
    const { table, column } = operation.addColumn;
    const what = `${table} will get a new column, ${column.name} (${typeInWords(column)}).`;
    if (!isThere(table)) return what;
    const { all } = await countRecords(place, table);
    if (all === 0) return what;
    const value = column.defaultValue === undefined ? "be empty" : `have the value ${column.defaultValue}`;
    return `${what} It will ${value} in the ${counted(all, "record")} that are there already.`;
  }
  if ("removeColumn" in operation) {
    const { table, column } = operation.removeColumn;
    const { all, filled } = await countRecords(place, table, column);
    return `The column ${column} of ${table} will be deleted. ${filled.toLocaleString("en")} of ${counted(all, "record")} have a value in it, which will be lost. This cannot be undone.`;
  }
  const { table, oldName, newName } = operation.renameColumn;
  const { all, filled } = await countRecords(place, table, oldName);
  return (
    `The column ${oldName} of ${table} will be renamed to ${newName}. Its values stay (${filled.toLocaleString("en")} of ${counted(all, "record")} have one). ` +
    `Requests and SQL that use the old name will fail.`
  );
}

/** "3 tables with 1,234 records". */
export async function contentOf(place: Place): Promise<string> {
  const { schema } = await call<{ schema: { tables: TableSchema[] } }>("GET", branchPath(place));
  const counts = await Promise.all(schema.tables.slice(0, MOST_COUNTED).map(({ name }) => countRecords(place, name)));
  const records = counts.reduce((sum, { all }) => sum + all, 0);
  const more = schema.tables.length > MOST_COUNTED ? "more than " : "";
  return `${counted(schema.tables.length, "table")} with ${more}${counted(records, "record")}`;
}

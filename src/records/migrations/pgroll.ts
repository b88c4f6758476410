/**
 * The newest form of schema changes that the SDK can send, that of pgroll (`migrations/apply`): PostgreSQL's
 * own types, one object per table or column. What has a meaning for tables of the API is translated to
 * operations; everything else (raw SQL, indexes, constraints over several columns) is rejected by name.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../errors/value-in-words.ts";
import { SYSTEM_COLUMN_TYPES, systemColumnNamed } from "../../filter/system-columns.ts";
import { isObject } from "../../text/json-object.ts";
import type { ColumnType } from "../schema.ts";

/** PostgreSQL's names for the types of columns, and the API's own. */
const TYPES: Readonly<Record<string, ColumnType>> = {
  text: "text",
  varchar: "string",
  "character varying": "string",
  string: "string",
  email: "email",
  int: "int",
  int2: "int",
  int4: "int",
  int8: "int",
  smallint: "int",
  integer: "int",
  bigint: "int",
  float: "float",
  float4: "float",
  float8: "float",
  real: "float",
  "double precision": "float",
  bool: "bool",
  boolean: "bool",
  datetime: "datetime",
  timestamptz: "datetime",
  "timestamp with time zone": "datetime",
  multiple: "multiple",
  "text[]": "multiple",
  json: "json",
  jsonb: "json",
};

/** As operations whose form is yet to be checked. `path` names the list in messages. */
export function operationsOfPgroll(given: unknown, path: string): unknown[] {
  if (!Array.isArray(given)) throw invalid(`${path} has to be a list of operations.`);
  return given.flatMap((operation: unknown, i) => translate(operation, `${path}[${i}]`));
}

function translate(operation: unknown, path: string): unknown[] {
  const [entry] = isObject(operation) ? Object.entries(operation) : [];
  const [kind, value] = entry ?? [];
  if (kind === undefined || !isObject(operation) || Object.keys(operation).length !== 1 || !isObject(value)) {
    throw invalid(`${path} has to be an object with one operation, as in {"create_table": {"name": "posts", "columns": []}}.`);
  }
  const at = `${path}.${kind}`;
  switch (kind) {
    case "create_table": {
      const { name: table, columns = [] } = value;
      if (!Array.isArray(columns)) throw invalid(`${at}.columns has to be a list.`);
      return [{ addTable: { table } }, ...columns.flatMap((column: unknown, i) => addColumn(table, column, `${at}.columns[${i}]`))];
    }
    case "drop_table":
      return [{ removeTable: { table: value.name } }];
    case "rename_table":
      return [{ renameTable: { oldName: value.from, newName: value.to } }];
    case "add_column":
      return addColumn(value.table, value.column, `${at}.column`);
    case "drop_column":
      return [{ removeColumn: { table: value.table, column: value.column } }];
    case "rename_column":
      return [{ renameColumn: { table: value.table, oldName: value.from, newName: value.to } }];
    case "alter_column":
      if (typeof value.name !== "string" || Object.keys(value).some((key) => !["table", "column", "name"].includes(key))) {
        throw invalid(
          `${at}: of a column only the name can be changed; add a column with another name, copy the values, and drop this one.`,
        );
      }
      return [{ renameColumn: { table: value.table, oldName: value.column, newName: value.name } }];
    default:
      throw invalid(
        `${at} is not possible; expected one of create_table, drop_table, rename_table, add_column, drop_column, rename_column, alter_column.`,
      );
  }
}

/** Columns that every table of the API has are skipped, if they are what those are: pgroll's own descriptions list them. */
function addColumn(table: unknown, given: unknown, path: string): unknown[] {
  if (!isObject(given)) throw invalid(`${path} has to be an object like {"name": "title", "type": "text"}.`);
  const { name, type, nullable, unique, references, check, pk } = given;
  const known = typeof type === "string" ? TYPES[type.toLowerCase()] : undefined;
  const system = typeof name === "string" ? systemColumnNamed(name) : undefined;
  if (system !== undefined) {
    const own = SYSTEM_COLUMN_TYPES[system];
    if (known === own || (known === "text" && own === "string")) return [];
    throw invalid(
      `${path}.type is ${inWords(type)}; every table has a column ${quoted(system)} of type ${own === "string" ? "text" : own}, which the service fills. Leave this one out, or give it another name.`,
    );
  }
  if (pk === true) {
    throw invalid(
      `${path}.pk: the primary key of every table is "id", a text. Leave pk out; for other values that are all different, use unique: true.`,
    );
  }
  if (check !== undefined) throw invalid(`${path}.check is not possible.`);
  if (known === undefined) throw invalid(`${path}.type is ${inWords(type)}; expected one of ${Object.keys(TYPES).join(", ")}.`);
  const target = isObject(references) ? references.table : undefined;
  const column = {
    name,
    ...(target === undefined ? { type: known } : { type: "link", link: { table: target } }),
    // pgroll's columns are not null unless they say so.
    ...(nullable === true ? {} : { notNull: true }),
    ...(unique === true ? { unique: true } : {}),
    ...(given.default === undefined ? {} : { defaultValue: literal(given.default, `${path}.default`) }),
  };
  return [{ addColumn: { table, column } }];
}

/** A default is SQL in pgroll; only literals are accepted. */
function literal(given: unknown, path: string): string {
  const text = String(given).trim();
  const quoted = /^'((?:[^']|'')*)'(?:::[\w ]+)?$/.exec(text);
  if (quoted !== null) return (quoted[1] ?? "").replaceAll("''", "'");
  if (/^[+-]?\d+(\.\d+)?$/.test(text) || text === "true" || text === "false") return text;
  if (/^now\(\)$/i.test(text)) return "now";
  throw invalid(`${path} is ${inWords(given)}; expected a literal like 'new', 0, true, or now().`);
}

const invalid = (message: string): LodestoneError => new LodestoneError("INVALID", message);

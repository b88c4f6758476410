/**
 * Finds the column that a name means, in filters and wherever else a request names one: a column of the table,
 * a system column, a column behind links (`team.name`), a path inside json (`config->a`), or an object (the
 * `address` of `address.city`).
 */

import type { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../errors/value-in-words.ts";
import { checkText } from "./check-text.ts";
import { fault, type Place } from "./fault.ts";
import { MAX_JSON_STEPS, MAX_LINKS } from "./filter-limits.ts";
import { SYSTEM_COLUMN_TYPES, SYSTEM_COLUMNS, systemColumnNamed } from "./system-columns.ts";
import type { ColumnPath, FilterColumnType, FilterTable, FilterTableColumn, LinkStep, ValueKind } from "./tree.ts";

/**
 * Where names are looked up: a table, the links that led there, and the object that names are inside of ("" or
 * "address.").
 */
export interface Scope {
  readonly table: FilterTable;
  readonly links: readonly LinkStep[];
  readonly prefix: string;
  /** What the user wrote to get here, ending in a dot, or "". */
  readonly text: string;
}

export type Tables = ReadonlyMap<string, FilterTable>;

export type Resolved =
  /**
   * `type` is that of the value before any steps into json; `link`: the table that a link column, or the id
   * behind one, points into.
   */
  | { readonly column: ColumnPath; readonly type: FilterColumnType; readonly link: FilterTable | null }
  /** A name that only prefixes dotted names: `xata`, or an object of the old type. */
  | { readonly object: Scope };

/** How values of each column type are compared. */
export const VALUE_KINDS: Readonly<Record<FilterTableColumn["type"], ValueKind>> = {
  string: "text",
  text: "text",
  email: "text",
  link: "text",
  int: "int",
  float: "float",
  bool: "bool",
  datetime: "datetime",
  multiple: "multiple",
  json: "json",
  vector: "vector",
};

const SYSTEM_KINDS: ReadonlyMap<string, ValueKind> = new Map(SYSTEM_COLUMNS.map((name) => [name, VALUE_KINDS[SYSTEM_COLUMN_TYPES[name]]]));

/** The names of all columns of a table that a filter can use, its own and the system's, with how they are compared. */
function filterableColumns(table: FilterTable): Map<string, ValueKind> {
  const kinds = new Map(SYSTEM_KINDS);
  for (const [name, column] of table.columns) kinds.set(name, VALUE_KINDS[column.type]);
  return kinds;
}

/** @throws {LodestoneError} INVALID: no such column, not a link, not json, or more steps than are allowed. */
export function resolveName(name: string, scope: Scope, tables: Tables, place: Place): Resolved {
  const { base, json } = splitJsonPath(name, place);
  return resolveIn(scope.table, scope.links, scope.prefix + base, json, scope.text + name, tables, place);
}

function resolveIn(
  table: FilterTable,
  links: readonly LinkStep[],
  name: string,
  json: readonly string[],
  text: string,
  tables: Tables,
  place: Place,
): Resolved {
  const own = table.columns.get(name);
  if (own !== undefined) {
    if (json.length > 0) requireJson(own, place);
    const link = own.type === "link" ? linkTarget(own, tables, place) : null;
    return {
      column: { text, links, table: table.name, column: name, kind: VALUE_KINDS[own.type], json, item: false },
      type: own.type,
      link,
    };
  }
  const system = systemColumnNamed(name);
  if (system !== undefined && json.length === 0) {
    const type = SYSTEM_COLUMN_TYPES[system];
    const last = links.at(-1);
    // The id behind a link is the link's own value, as its foreign key guarantees. No join is needed.
    if (system === "id" && last !== undefined) {
      const column = { text, links: links.slice(0, -1), table: last.table, column: last.column, kind: "text", json, item: false } as const;
      return { column, type, link: table };
    }
    return { column: { text, links, table: table.name, column: system, kind: VALUE_KINDS[type], json, item: false }, type, link: null };
  }
  const step = followLink(table, name, tables, links.length, place);
  if (step !== undefined) {
    const { column, target, rest } = step;
    return resolveIn(target, [...links, { table: table.name, column: column.name, target: target.name }], rest, json, text, tables, place);
  }
  if (json.length === 0 && isObjectName(table, name)) return { object: { table, links, prefix: `${name}.`, text: `${text}.` } };
  throw unknownColumn(table, name, place);
}

/** The column of a table by its full type, which may know more than filters ask for. */
type ColumnOf<Table extends FilterTable> = Table["columns"] extends ReadonlyMap<string, infer Column> ? Column : never;

/**
 * The first link of a dotted name: `team.owner.name` is the link `team`, the table that it points into, and
 * `owner.name` in there.
 *
 * @param followed  links that were followed to get to the table.
 * @returns undefined when no part of the name before a dot is a column.
 * @throws {LodestoneError} INVALID: that column is not a link, or it is one link too many.
 */
export function followLink<Table extends FilterTable>(
  table: Table,
  name: string,
  tables: ReadonlyMap<string, Table>,
  followed: number,
  place: Place,
): { column: ColumnOf<Table>; target: Table; rest: string } | undefined {
  for (let dot = name.lastIndexOf("."); dot > 0; dot = name.lastIndexOf(".", dot - 1)) {
    const column = table.columns.get(name.slice(0, dot));
    if (column === undefined) continue;
    const rest = name.slice(dot + 1);
    if (column.type !== "link") {
      const remedy = column.type === "json" ? ` (paths into json are written ${quoted(`${column.name}->${rest}`)})` : "";
      throw fault(place, `column ${quoted(column.name)} of table ${quoted(table.name)} is of type ${column.type}, not a link${remedy}`);
    }
    requireLinksLeft(followed, place);
    return { column: column as ColumnOf<Table>, target: linkTarget(column, tables, place), rest };
  }
  return undefined;
}

/**
 * @param followed  links that the path follows already.
 * @throws {LodestoneError} INVALID when it may not follow another.
 */
export function requireLinksLeft(followed: number, place: Place): void {
  if (followed >= MAX_LINKS) throw fault(place, `the path follows more than ${MAX_LINKS} links`);
}

/** @throws {LodestoneError} INVALID. */
export function linkTarget<Table extends FilterTable>(column: FilterTableColumn, tables: ReadonlyMap<string, Table>, place: Place): Table {
  const target = column.link === undefined ? undefined : tables.get(column.link.table);
  if (target === undefined) throw fault(place, `link column ${quoted(column.name)} points to a table that does not exist`);
  return target;
}

/** `config->a->b` as `config` and the steps a and b; a name without arrows has none. */
export function splitJsonPath(name: string, place: Place): { base: string; json: readonly string[] } {
  const arrow = name.indexOf("->");
  return arrow === -1 ? { base: name, json: [] } : { base: name.slice(0, arrow), json: jsonSteps(name.slice(arrow + 2), place) };
}

/** `a->b` as the steps a and b. */
export function jsonSteps(path: string, place: Place): string[] {
  const steps = path.split("->");
  if (steps.length > MAX_JSON_STEPS)
    throw fault(place, `the path has ${steps.length} steps into json; at most ${MAX_JSON_STEPS} are allowed`);
  for (const step of steps) checkText(step, place);
  return steps;
}

/** @throws {LodestoneError} INVALID unless there are paths into the column. */
export function requireJson(column: FilterTableColumn, place: Place): void {
  if (column.type === "json") return;
  throw fault(place, `column ${quoted(column.name)} is of type ${column.type}; only json columns have paths with "->"`);
}

export function unknownColumn(table: FilterTable, name: string, place: Place): LodestoneError {
  const names = quotedNames(["id", ...table.columns.keys()], "");
  return fault(place, `table ${quoted(table.name)} has no column ${quoted(name)}; it has ${names}`);
}

/** The scope of names inside the table that a link column points into. */
export function linkScope(column: ColumnPath, target: FilterTable, place: Place): Scope {
  requireLinksLeft(column.links.length, place);
  const step: LinkStep = { table: column.table, column: column.column, target: target.name };
  return { table: target, links: [...column.links, step], prefix: "", text: `${column.text}.` };
}

/** The columns that an object name stands for. */
export function objectColumns(scope: Scope): ColumnPath[] {
  const paths: ColumnPath[] = [];
  for (const [name, kind] of filterableColumns(scope.table)) {
    if (!name.startsWith(scope.prefix)) continue;
    paths.push({ text: name, links: scope.links, table: scope.table.name, column: name, kind, json: [], item: false });
  }
  return paths;
}

function isObjectName(table: FilterTable, name: string): boolean {
  if (name === "xata") return true;
  for (const column of table.columns.keys()) if (column.startsWith(`${name}.`)) return true;
  return false;
}

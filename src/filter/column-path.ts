/** Finds the column that a name in a filter means: the table's own, one of the system's, behind links (`team.name`), inside json (`config->a`), or inside an object (`address` of `address.city`). */

import { checkText } from "./check-text.ts";
import { fault, type Place, show } from "./fault.ts";
import { MAX_FILTER_LINKS, MAX_JSON_STEPS } from "./filter-limits.ts";
import { SYSTEM_COLUMN_TYPES, SYSTEM_COLUMNS, systemColumnNamed } from "./system-columns.ts";
import type { ColumnPath, FilterTable, FilterTableColumn, LinkStep, ValueKind } from "./tree.ts";

/** Where names are looked up: a table, the links that led there, and the object that names are inside of ("" or "address."). */
export interface Scope {
  readonly table: FilterTable;
  readonly links: readonly LinkStep[];
  readonly prefix: string;
  /** What the user wrote to get here, ending in a dot, or "". */
  readonly text: string;
}

export type Tables = ReadonlyMap<string, FilterTable>;

export type Resolved =
  | { readonly column: ColumnPath; readonly link: FilterTable | null }
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

export function resolveName(name: string, scope: Scope, tables: Tables, place: Place): Resolved {
  const arrow = name.indexOf("->");
  const base = scope.prefix + (arrow === -1 ? name : name.slice(0, arrow));
  const json = arrow === -1 ? [] : name.slice(arrow + 2).split("->");
  if (json.length > MAX_JSON_STEPS)
    throw fault(place, `the path has ${json.length} steps into json; at most ${MAX_JSON_STEPS} are allowed`);
  return resolveIn(scope.table, scope.links, base, json, scope.text + name, tables, place);
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
    if (json.length > 0 && own.type !== "json") {
      throw fault(place, `column ${show(name)} is of type ${own.type}; only json columns have paths with "->"`);
    }
    const link = own.type === "link" ? linkTarget(own, tables, place) : null;
    return { column: { text, links, table: table.name, column: name, kind: VALUE_KINDS[own.type], json, item: false }, link };
  }
  const system = systemColumnNamed(name);
  if (system !== undefined && json.length === 0) {
    const last = links.at(-1);
    // The id behind a link is the link's own value: the foreign key sees to that. No join is needed.
    if (system === "id" && last !== undefined) {
      const column = { text, links: links.slice(0, -1), table: last.table, column: last.column, kind: "text", json, item: false } as const;
      return { column, link: table };
    }
    const kind = VALUE_KINDS[SYSTEM_COLUMN_TYPES[system]];
    return { column: { text, links, table: table.name, column: system, kind, json, item: false }, link: null };
  }
  for (let dot = name.lastIndexOf("."); dot > 0; dot = name.lastIndexOf(".", dot - 1)) {
    const prefix = name.slice(0, dot);
    const column = table.columns.get(prefix);
    if (column === undefined) continue;
    if (column.type !== "link") {
      const remedy = column.type === "json" ? ` (paths into json are written ${show(`${prefix}->${name.slice(dot + 1)}`)})` : "";
      throw fault(place, `column ${show(prefix)} of table ${show(table.name)} is of type ${column.type}, not a link${remedy}`);
    }
    if (links.length >= MAX_FILTER_LINKS) throw fault(place, `the path follows more than ${MAX_FILTER_LINKS} links`);
    const target = linkTarget(column, tables, place);
    const steps = [...links, { table: table.name, column: prefix, target: target.name }];
    return resolveIn(target, steps, name.slice(dot + 1), json, text, tables, place);
  }
  if (json.length === 0 && isObjectName(table, name)) return { object: { table, links, prefix: `${name}.`, text: `${text}.` } };
  throw fault(place, `table ${show(table.name)} has no column ${show(name)}; it has ${listColumns(table)}`);
}

/** `a->b` as the steps a and b. */
export function jsonSteps(path: string, place: Place): string[] {
  const steps = path.split("->");
  if (steps.length > MAX_JSON_STEPS)
    throw fault(place, `the path has ${steps.length} steps into json; at most ${MAX_JSON_STEPS} are allowed`);
  for (const step of steps) checkText(step, place);
  return steps;
}

/** The scope of names inside the table that a link column points into. */
export function linkScope(column: ColumnPath, target: FilterTable, place: Place): Scope {
  if (column.links.length >= MAX_FILTER_LINKS) throw fault(place, `the path follows more than ${MAX_FILTER_LINKS} links`);
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

function linkTarget(column: FilterTableColumn, tables: Tables, place: Place): FilterTable {
  const target = column.link === undefined ? undefined : tables.get(column.link.table);
  if (target === undefined) throw fault(place, `link column ${show(column.name)} points to a table that is not there`);
  return target;
}

function isObjectName(table: FilterTable, name: string): boolean {
  if (name === "xata") return true;
  for (const column of table.columns.keys()) if (column.startsWith(`${name}.`)) return true;
  return false;
}

function listColumns(table: FilterTable): string {
  const names = ["id", ...table.columns.keys()];
  const shown = names.slice(0, 20).map((name) => show(name));
  return names.length > shown.length ? `${shown.join(", ")} and ${names.length - shown.length} more` : shown.join(", ");
}

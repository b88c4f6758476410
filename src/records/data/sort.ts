/**
 * `sort` of a request in all its forms: "name", {"name": "desc"}, {"column": "name", "direction": "desc"}, lists of these, {"*": "random"};
 * over columns, links (`team.name`), json paths and `xata.*`. The order is total: what is equal is ordered by id.
 */
import { LodestoneError } from "../../errors.ts";
import type { BranchInfo, ColumnInfo, ColumnType, TableInfo } from "../schema.ts";
import { jsonSteps } from "./json-text.ts";
import { columnsBelow, unknownColumn } from "./record-fields.ts";
import { quoted, showValue } from "./show-value.ts";

export type SortDirection = "asc" | "desc";

export interface SortColumn {
  /** Links to follow from the record, from the record's table on. */
  readonly links: readonly ColumnInfo[];
  /** In the table at the end of the links. */
  readonly column: string;
  readonly physicalName: string;
  readonly type: ColumnType;
  /** Steps into a json column; empty: the column itself. */
  readonly json: readonly string[];
  /** Only over a column that cannot be null may the order be read off an index without a word on nulls. */
  readonly nullable: boolean;
  readonly direction: SortDirection;
}

export type SortKey = SortColumn | "random";

export const MAX_SORT_KEYS = 16;
const MAX_SORT_LINKS = 8;

export function readSort(branch: BranchInfo, table: TableInfo, sort: unknown, place = "sort"): SortKey[] {
  if (sort === undefined || sort === null) return [];
  const keys: SortKey[] = [];
  const items: readonly unknown[] = Array.isArray(sort) ? sort : [sort];
  items.forEach((item, index) => {
    const at = Array.isArray(sort) ? `${place}[${index}]` : place;
    for (const [name, direction] of readItem(item, at)) {
      if (name === "*") {
        if (direction !== "random") throw badDirection(direction, at, '"random", the only direction of "*"');
        keys.push("random");
      } else {
        if (direction !== "asc" && direction !== "desc") throw badDirection(direction, at, '"asc" or "desc"');
        keys.push({ ...resolveColumn(branch, table, name, at), direction });
      }
    }
  });
  if (keys.length > MAX_SORT_KEYS)
    throw new LodestoneError("INVALID", `${place} has ${keys.length} keys; at most ${MAX_SORT_KEYS} are allowed.`);
  return keys;
}

function readItem(item: unknown, place: string): [string, unknown][] {
  if (typeof item === "string") return [[item, item === "*" ? "random" : "asc"]];
  if (typeof item === "object" && item !== null && !Array.isArray(item)) {
    const entries = Object.entries(item);
    const named = new Map<string, unknown>(entries);
    const column = named.get("column");
    // {"column": "name", "direction" or "order": "desc"}, unless a column is really called "column".
    if (typeof column === "string" && column !== "asc" && column !== "desc") {
      return [[column, named.get("direction") ?? named.get("order") ?? (column === "*" ? "random" : "asc")]];
    }
    if (entries.length > 0) return entries;
  }
  throw new LodestoneError("INVALID", `${place} is ${showValue(item)}; expected a column name or an object such as {"name": "desc"}.`);
}

function badDirection(direction: unknown, place: string, expected: string): LodestoneError {
  return new LodestoneError("INVALID", `${place}: the direction is ${showValue(direction)}; expected ${expected}.`);
}

const SYSTEM: ReadonlyMap<string, ColumnType> = new Map([
  ["id", "string"],
  ["xata.version", "int"],
  ["xata.createdAt", "datetime"],
  ["xata.updatedAt", "datetime"],
]);

export function resolveColumn(branch: BranchInfo, table: TableInfo, name: string, place: string): Omit<SortColumn, "direction"> {
  const links: ColumnInfo[] = [];
  const arrow = name.indexOf("->");
  const json = arrow === -1 ? [] : jsonSteps(name.slice(arrow + 2), place);
  let at = table;
  let rest = arrow === -1 ? name : name.slice(0, arrow);
  for (;;) {
    const own = at.columns.get(rest);
    if (own !== undefined) {
      if (json.length > 0) {
        if (own.type !== "json") {
          throw new LodestoneError(
            "INVALID",
            `${place}: column ${quoted(rest)} is of type ${own.type}; only json columns have paths with "->".`,
          );
        }
        return { links, column: rest, physicalName: own.physicalName, type: own.type, json, nullable: true };
      }
      if (own.type === "json" || own.type === "vector" || own.type === "multiple") {
        throw new LodestoneError(
          "INVALID",
          `${place}: column ${quoted(rest)} is of type ${own.type}, which has no order; sort by another column.`,
        );
      }
      return {
        links,
        column: rest,
        physicalName: own.physicalName,
        type: own.type,
        json,
        nullable: links.length > 0 || own.notNull !== true,
      };
    }
    const system = SYSTEM.get(rest);
    if (system !== undefined && json.length === 0)
      return { links, column: rest, physicalName: rest, type: system, json, nullable: links.length > 0 };
    const step = followLink(branch, at, rest);
    if (step === undefined) {
      if (columnsBelow(at, rest).length > 0) {
        throw new LodestoneError(
          "INVALID",
          `${place}: ${quoted(rest)} is an object; sort by one of its columns, such as ${quoted(columnsBelow(at, rest)[0]!.name)}.`,
        );
      }
      throw unknownColumn(at, rest, place);
    }
    links.push(step.column);
    if (links.length > MAX_SORT_LINKS) throw new LodestoneError("INVALID", `${place} follows more than ${MAX_SORT_LINKS} links in a row.`);
    at = step.table;
    rest = step.rest;
  }
}

function followLink(
  branch: BranchInfo,
  table: TableInfo,
  name: string,
): { column: ColumnInfo; table: TableInfo; rest: string } | undefined {
  for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const column = table.columns.get(name.slice(0, dot));
    const target = column?.type === "link" ? branch.tables.get(column.link?.table ?? "") : undefined;
    if (column !== undefined && target !== undefined) return { column, table: target, rest: name.slice(dot + 1) };
  }
  return undefined;
}

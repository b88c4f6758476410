/**
 * A free text search, checked against the schema: the words, and for each table where to look for them and what
 * boosts a record.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { unknownColumn } from "../../../filter/column-path.ts";
import { parseTimestamp } from "../../../filter/datetime.ts";
import { rootPlace } from "../../../filter/fault.ts";
import { NUMBER_TYPES, PLAIN_TYPES, TEXT_TYPES } from "../../column-traits.ts";
import type { BranchSearchRequest, TextQuery, TextSearchScope } from "../../requests.ts";
import type { BranchInfo, ColumnInfo, ColumnType, TableInfo } from "../../schema.ts";
import { type ColumnReference, resolveColumn } from "../sql-parts/column-reference.ts";
import { type ColumnValue, toColumnValue } from "../values/column-value.ts";
import { notExpected, parseDurationMs, withoutNulls } from "../values/request-parts.ts";
import { type Term, termsOf } from "./words.ts";

export interface SearchPlan {
  /** undefined: no words were given. Every record that passes the filter is found, in the order of its boosts. */
  readonly terms: readonly Term[] | undefined;
  readonly highlight: boolean;
  readonly encodeHtml: boolean;
  readonly size: number;
  readonly offset: number;
}

export interface TablePlan {
  readonly table: TableInfo;
  readonly filter: unknown;
  readonly targets: readonly { readonly column: ColumnInfo; readonly weight: number }[];
  readonly boosters: readonly Booster[];
  readonly place: string;
}

export type Modifier = "none" | "log" | "log1p" | "ln" | "ln1p" | "square" | "sqrt" | "reciprocal";

export type Booster = { readonly column: ColumnReference; readonly factor: number; readonly filter: unknown; readonly place: string } & (
  | { readonly kind: "value"; readonly value: ColumnValue }
  | { readonly kind: "numeric"; readonly modifier: Modifier }
  | { readonly kind: "date"; readonly originMs: number; readonly scaleMs: number; readonly decay: number }
);

const MAX_QUERY_LENGTH = 2_000;
const MAX_TERMS = 64;
export const MAX_BOOSTERS = 32;
export const MAX_SEARCHED_TABLES = 1_000;
export const DEFAULT_FOUND = 25;
export const MAX_FOUND = 200;
export const MAX_FOUND_OFFSET = 800;
const SEARCHED_TYPES: readonly ColumnType[] = [...TEXT_TYPES, "multiple"];
const MODIFIERS: readonly string[] = ["none", "log", "log1p", "ln", "ln1p", "square", "sqrt", "reciprocal"];
const BOOSTERS = ["valueBooster", "numericBooster", "dateBooster"] as const;

export function readTextQuery({ query, fuzziness = 1, prefix, highlight, page }: TextQuery): SearchPlan {
  return {
    terms: query === undefined || query === "" ? undefined : readTerms(query, fuzziness, prefix === "phrase"),
    highlight: highlight?.enabled ?? true,
    encodeHtml: highlight?.encodeHTML ?? true,
    size: page?.size ?? DEFAULT_FOUND,
    offset: page?.offset ?? 0,
  };
}

function readTerms(query: string, fuzziness: number, isPrefix: boolean): Term[] {
  if (query.length > MAX_QUERY_LENGTH)
    throw new LodestoneError("INVALID", `query has ${query.length} characters; at most ${MAX_QUERY_LENGTH} are allowed.`);
  const terms = termsOf(query, fuzziness, isPrefix);
  if (terms.length > MAX_TERMS)
    throw new LodestoneError("INVALID", `query has ${terms.length} different words; at most ${MAX_TERMS} are allowed.`);
  return terms;
}

export function readTables(branch: BranchInfo, tables: BranchSearchRequest["tables"]): TablePlan[] {
  if (tables === undefined) return [...branch.tables.values()].map((table) => readScope(branch, table, {}, ""));
  const plans = new Map<string, TablePlan>();
  tables.forEach((item, index) => {
    const place = `tables[${index}]`;
    const scope = typeof item === "string" ? { table: item } : item;
    const table = branch.tables.get(scope.table);
    if (table === undefined) {
      throw new LodestoneError(
        "NOT_FOUND",
        `${place}: there is no table ${quoted(scope.table)}; the branch has ${quotedNames([...branch.tables.keys()], "no tables")}.`,
      );
    }
    if (plans.has(table.name)) throw new LodestoneError("INVALID", `${place}: table ${quoted(table.name)} is given twice; give it once.`);
    plans.set(table.name, readScope(branch, table, scope, `${place}.`));
  });
  return [...plans.values()];
}

/** @param place What messages put before the names of members: "" or `tables[0].`. */
export function readScope(branch: BranchInfo, table: TableInfo, scope: TextSearchScope, place: string): TablePlan {
  return {
    table,
    filter: scope.filter,
    targets: readTargets(table, scope.target, `${place}target`),
    boosters: readBoosters(branch, table, scope.boosters, `${place}boosters`),
    place,
  };
}

function readTargets(table: TableInfo, target: TextSearchScope["target"], place: string): TablePlan["targets"] {
  if (target === undefined) {
    return [...table.columns.values()].filter((column) => SEARCHED_TYPES.includes(column.type)).map((column) => ({ column, weight: 1 }));
  }
  return target.map((item, index) => {
    const at = `${place}[${index}]`;
    const { column: name, weight = 1 } = typeof item === "string" ? { column: item } : member(item, at);
    if (typeof name !== "string") throw notExpected(`${at}.column`, name, "the name of a column");
    const column = table.columns.get(name);
    if (column === undefined) throw unknownColumn(table, name, rootPlace(at));
    if (!SEARCHED_TYPES.includes(column.type)) {
      throw new LodestoneError(
        "INVALID",
        `${at}: column ${quoted(name)} is of type ${column.type}; words are in columns of type ${SEARCHED_TYPES.join(", ")}.`,
      );
    }
    if (typeof weight !== "number" || !(weight >= 1 && weight <= 10)) throw notExpected(`${at}.weight`, weight, "a weight from 1 to 10");
    return { column, weight };
  });
}

function readBoosters(branch: BranchInfo, table: TableInfo, boosters: TextSearchScope["boosters"], place: string): Booster[] {
  return (boosters ?? []).map((item, index) => {
    const at = `${place}[${index}]`;
    const outer = member(item, at);
    const keys = Object.keys(outer);
    const kind = BOOSTERS.find((key) => keys.length === 1 && keys[0] === key);
    if (kind === undefined) throw notExpected(at, item, `an object with one of the keys ${quotedNames(BOOSTERS, "")}`);
    return readBooster(branch, table, kind, member(outer[kind], `${at}.${kind}`), `${at}.${kind}`);
  });
}

function readBooster(
  branch: BranchInfo,
  table: TableInfo,
  kind: (typeof BOOSTERS)[number],
  given: Record<string, unknown>,
  place: string,
): Booster {
  if (typeof given.column !== "string") throw notExpected(`${place}.column`, given.column, "the name of a column");
  const column = resolveColumn(branch, table, given.column, `${place}.column`);
  const requireType = (...types: ColumnType[]): void => {
    if (column.json.length > 0 || !types.includes(column.type)) {
      throw new LodestoneError(
        "INVALID",
        `${place}.column: ${quoted(column.column)} is of type ${column.type}; expected ${types.join(", ")}.`,
      );
    }
  };
  const factor = given.factor ?? (kind === "dateBooster" ? 1 : undefined);
  if (typeof factor !== "number" || !Number.isFinite(factor)) throw notExpected(`${place}.factor`, given.factor, "a number");
  const common = { column, factor, filter: given.ifMatchesFilter, place };
  switch (kind) {
    case "valueBooster": {
      requireType(...PLAIN_TYPES);
      if (given.value === undefined || given.value === null)
        throw notExpected(`${place}.value`, given.value, `a value of type ${column.type}`);
      return { ...common, kind: "value", value: toColumnValue({ name: column.column, type: column.type }, given.value, `${place}.value`) };
    }
    case "numericBooster": {
      requireType(...NUMBER_TYPES);
      const { modifier = "none" } = given;
      if (typeof modifier !== "string" || !MODIFIERS.includes(modifier))
        throw notExpected(`${place}.modifier`, modifier, `one of ${MODIFIERS.join(", ")}`);
      return { ...common, kind: "numeric", modifier: modifier as Modifier };
    }
    case "dateBooster": {
      requireType("datetime");
      const { origin, scale, decay } = given;
      const micros = origin === undefined ? BigInt(Date.now()) * 1000n : typeof origin === "string" ? parseTimestamp(origin) : undefined;
      if (micros === undefined) throw notExpected(`${place}.origin`, origin, "an RFC 3339 time");
      const scaleMs = parseDurationMs(scale);
      if (scaleMs === undefined || scaleMs === 0)
        throw notExpected(`${place}.scale`, scale, 'a number above 0 with a unit of d, h, m, s or ms, such as "10d"');
      if (typeof decay !== "number" || !(decay > 0 && decay <= 1))
        throw notExpected(`${place}.decay`, decay, "a number above 0, at most 1");
      return { ...common, kind: "date", originMs: Number(micros / 1000n), scaleMs, decay };
    }
  }
}

function member(value: unknown, place: string): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw notExpected(place, value, "an object");
  return withoutNulls(value);
}

/**
 * A search for words, checked against the schema: what to look for, and for each table where to look and what
 * boosts a record.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../errors/value-in-words.ts";
import { unknownColumn } from "../../filter/column-path.ts";
import { parseTimestamp } from "../../filter/datetime.ts";
import { rootPlace } from "../../filter/fault.ts";
import type { Fusion } from "../../full-text/fusion.ts";
import { parseQuery, queryTerms, type Syntax } from "../../full-text/query.ts";
import type { Term } from "../../full-text/terms.ts";
import { NUMBER_TYPES, PLAIN_TYPES } from "../../records/column-traits.ts";
import { resolveColumn } from "../../records/data/sql-parts/column-reference.ts";
import { toColumnValue } from "../../records/data/values/column-value.ts";
import { notExpected, parseDurationMs, withoutNulls } from "../../records/data/values/request-parts.ts";
import type { JsonValue } from "../../records/requests.ts";
import type { BranchInfo, ColumnInfo, ColumnType, TableInfo } from "../../records/schema.ts";
import { type Language, type LanguageOrNone, NO_LANGUAGE } from "../../text/languages.ts";
import { checkSearch } from "../request-check.ts";
import type { QueryVector, SimilarityFunction } from "../search-store.ts";
import type { Booster, Modifier } from "./boosts.ts";
import type { TextJob } from "./search-texts.ts";
import { isSearchedType, SEARCHED_TYPES } from "./table-texts.ts";
import type { VectorHalf } from "./vector-half.ts";

export interface TextQuery {
  /** Without words every record is found that passes the filter. */
  query?: string;
  /** How many edits may be between a word of the query and one of a record: 0, 1 (the default) or 2. */
  fuzziness?: number;
  /** "phrase": the last word may be the beginning of one. Default "disabled". */
  prefix?: "phrase" | "disabled";
  /** "websearch": "phrases" and -words. Default "words": a query is words and nothing else. */
  syntax?: Syntax;
  /** Words with the same stem match as well. Default: for each column its own. "none": none. */
  language?: LanguageOrNone;
  highlight?: { enabled?: boolean; encodeHTML?: boolean };
  /** Default size 25, at most 200; offset at most 800. */
  page?: { size?: number; offset?: number };
  /** Results with a lower score are left out; totalCount counts them. */
  minScore?: number;
  /** What made each score. */
  explain?: boolean;
  consistency?: "strong" | "eventual";
}

/** Where in a table. */
export interface TextSearchScope {
  filter?: JsonValue;
  /** Columns, with a weight of 1 to 10: `"name"` or `{column, weight}`; `"*"`: all others. Default: all with text, of weight 1. */
  target?: readonly JsonValue[];
  boosters?: readonly JsonValue[];
}

export interface TextSearchRequest extends TextQuery, TextSearchScope {
  /** Records near this vector are found as well, and both scores made one. */
  vector?: { column: string; queryVector: QueryVector; similarityFunction?: SimilarityFunction };
  fusion?: Partial<Fusion>;
}

export interface BranchSearchRequest extends TextQuery {
  /** Default: all of the branch. */
  tables?: readonly (string | (TextSearchScope & { table: string }))[];
}

export interface TextPlan {
  readonly terms: readonly Term[] | undefined;
  /** In place of those of the columns. */
  readonly language: LanguageOrNone | undefined;
  readonly job: Omit<TextJob, "tables" | "maxBytes">;
  readonly highlight: boolean;
  readonly encodeHtml: boolean;
  readonly size: number;
  readonly offset: number;
  readonly consistency: "strong" | "eventual";
}

export interface TablePlan {
  readonly table: TableInfo;
  readonly filter: unknown;
  readonly targets: readonly { readonly column: ColumnInfo; readonly weight: number }[];
  readonly boosters: readonly Booster[];
  readonly place: string;
  readonly vector: VectorHalf | undefined;
}

/** A query of a page of text is searched for its rarest words (full-text/query.ts). */
const MAX_QUERY_LENGTH = 20_000;
const MAX_PHRASES = 32;
export const MAX_BOOSTERS = 32;
export const MAX_SEARCHED_TABLES = 1_000;
export const DEFAULT_FOUND = 25;
export const MAX_FOUND = 200;
export const MAX_FOUND_OFFSET = 800;
const MODIFIERS: readonly string[] = ["none", "log", "log1p", "ln", "ln1p", "square", "sqrt", "reciprocal"];
const BOOSTERS = ["valueBooster", "numericBooster", "dateBooster"] as const;
const ALL_OTHERS = "*";

/** @throws {LodestoneError} INVALID. */
export function readTextQuery(request: TextQuery): TextPlan {
  const {
    query = "",
    fuzziness = 1,
    prefix,
    syntax = "words",
    language,
    highlight,
    page,
    explain = false,
    minScore,
    consistency,
  } = request;
  if (query.length > MAX_QUERY_LENGTH)
    throw new LodestoneError("INVALID", `query has ${query.length} characters; at most ${MAX_QUERY_LENGTH} are allowed.`);
  const parsed = parseQuery(query, syntax);
  const phrases = parsed.required.length + parsed.excluded.length;
  if (phrases > MAX_PHRASES)
    throw new LodestoneError("INVALID", `query has ${phrases} phrases and -words; at most ${MAX_PHRASES} are allowed.`);
  const terms = query === "" ? undefined : queryTerms(parsed, { fuzziness, prefix: prefix === "phrase" });
  const size = page?.size ?? DEFAULT_FOUND;
  const offset = page?.offset ?? 0;
  const { required, excluded } = parsed;
  return {
    terms,
    language,
    job: { terms, required, excluded, size: offset + size, minScore, explain },
    highlight: highlight?.enabled ?? true,
    encodeHtml: highlight?.encodeHTML ?? true,
    size,
    offset,
    // As it has always been: a search sees what was written before it.
    consistency: consistency ?? "strong",
  };
}

/** What the words of a column are looked for in: the language that the search names, or the column's own. */
export function searchedLanguage({ language }: Pick<TextPlan, "language">, column: ColumnInfo): Language | undefined {
  return language === NO_LANGUAGE ? undefined : (language ?? column.language);
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
export function readScope(
  branch: BranchInfo,
  table: TableInfo,
  scope: TextSearchScope & Pick<TextSearchRequest, "vector" | "fusion">,
  place: string,
): TablePlan {
  return {
    table,
    filter: scope.filter,
    targets: readTargets(table, scope.target, `${place}target`),
    boosters: readBoosters(branch, table, scope.boosters, `${place}boosters`),
    place,
    vector: scope.vector === undefined ? undefined : readVector(branch, table, scope.vector, scope.fusion),
  };
}

function readVector(
  branch: BranchInfo,
  table: TableInfo,
  { column, queryVector, similarityFunction }: NonNullable<TextSearchRequest["vector"]>,
  { method = "standardized", vectorWeight = 0.5, k = 60 }: Partial<Fusion> = {},
): VectorHalf {
  try {
    const request = { column, ...(similarityFunction !== undefined && { similarityFunction }) };
    const { columnId, queries, similarity } = checkSearch(branch, table.name, request, [{ name: "queryVector", vector: queryVector }]);
    return { columnId, query: queries, similarity, fusion: { method, vectorWeight, k } };
  } catch (error) {
    if (!(error instanceof LodestoneError) || error.code !== "INVALID") throw error;
    throw new LodestoneError("INVALID", `vector.${error.message}`);
  }
}

function readTargets(table: TableInfo, target: TextSearchScope["target"], place: string): TablePlan["targets"] {
  const targets = new Map<string, { column: ColumnInfo; weight: number }>();
  /** Of the columns that no other item names. */
  let otherWeight = target === undefined ? 1 : undefined;
  target?.forEach((item, index) => {
    const at = `${place}[${index}]`;
    const { column: name, weight = 1 } = typeof item === "string" ? { column: item } : member(item, at);
    if (typeof name !== "string") throw notExpected(`${at}.column`, name, "the name of a column");
    if (typeof weight !== "number" || !(weight >= 1 && weight <= 10)) throw notExpected(`${at}.weight`, weight, "a weight from 1 to 10");
    if (name === ALL_OTHERS) {
      otherWeight = weight;
      return;
    }
    const column = table.columns.get(name);
    if (column === undefined) throw unknownColumn(table, name, rootPlace(at));
    if (!isSearchedType(column.type)) {
      throw new LodestoneError(
        "INVALID",
        `${at}: column ${quoted(name)} is of type ${column.type}; words are in columns of type ${SEARCHED_TYPES.join(", ")}.`,
      );
    }
    if (targets.has(name)) throw new LodestoneError("INVALID", `${at}: column ${quoted(name)} is given twice; give it once.`);
    targets.set(name, { column, weight });
  });
  const others =
    otherWeight === undefined ? [] : [...table.columns.values()].filter(({ name, type }) => isSearchedType(type) && !targets.has(name));
  for (const column of others) targets.set(column.name, { column, weight: otherWeight! });
  return [...targets.values()];
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
  const common = { column: given.column, factor, filter: given.ifMatchesFilter, place };
  switch (kind) {
    case "valueBooster": {
      requireType(...PLAIN_TYPES);
      if (given.value === undefined || given.value === null)
        throw notExpected(`${place}.value`, given.value, `a value of type ${column.type}`);
      toColumnValue({ name: column.column, type: column.type }, given.value, `${place}.value`);
      return { ...common, kind: "value", value: given.value };
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

/** A `summarize` request, checked against the schema. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { isObject } from "../../../text/json-object.ts";
import { wholeNumber } from "../../../text/whole-number.ts";
import { NUMBER_TYPES, ORDERED_TYPES } from "../../column-traits.ts";
import { MAX_PAGE_SIZE } from "../../request-limits.ts";
import type { SummarizeRequest } from "../../requests.ts";
import type { BranchInfo, ColumnType, TableInfo } from "../../schema.ts";
import { DEFAULT_PAGE_SIZE } from "../read/page-request.ts";
import { type ColumnReference, resolveColumn } from "../sql-parts/column-reference.ts";
import { readSortItems, type SortDirection } from "../sql-parts/sort.ts";
import { columnsBelow } from "../values/sent-record.ts";

export interface GroupColumn {
  /** As the request names it. */
  readonly name: string;
  readonly reference: ColumnReference;
}

export interface Summary {
  readonly name: string;
  readonly kind: "count" | "min" | "max" | "sum" | "average";
  /** undefined: `count` of "*". */
  readonly reference: ColumnReference | undefined;
  /** Of the value. */
  readonly type: ColumnType;
}

export interface SummarizePlan {
  readonly columns: readonly GroupColumn[];
  readonly summaries: readonly Summary[];
  /** `c0` … of columns and `s0` … of summaries. */
  readonly sort: readonly { readonly by: string; readonly direction: SortDirection }[];
  readonly size: number;
}

const MAX_SUMMARIES = 100;
const MAX_GROUP_COLUMNS = 100;
const KINDS = ["count", "min", "max", "sum", "average"] as const;
const TYPES: Readonly<Record<Summary["kind"], readonly ColumnType[] | undefined>> = {
  count: undefined,
  min: ORDERED_TYPES,
  max: ORDERED_TYPES,
  sum: NUMBER_TYPES,
  average: NUMBER_TYPES,
};

export function readSummarizeRequest(branch: BranchInfo, table: TableInfo, request: SummarizeRequest): SummarizePlan {
  const columns = readColumns(branch, table, request.columns ?? []);
  const summaries = readSummaries(branch, table, request.summaries ?? {}, columns);
  if (columns.length === 0 && summaries.length === 0) {
    throw new LodestoneError("INVALID", 'summarize needs columns to group by, or summaries such as {"total": {"count": "*"}}.');
  }
  const page: unknown = request.page ?? {};
  if (!isObject(page)) throw new LodestoneError("INVALID", `page is ${inWords(page)}; expected an object such as {"size": 20}.`);
  return {
    columns,
    summaries,
    sort: readSort(request.sort, columns, summaries),
    size: wholeNumber(page.size, DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE, "page.size"),
  };
}

function readColumns(branch: BranchInfo, table: TableInfo, given: unknown): GroupColumn[] {
  if (!Array.isArray(given)) throw new LodestoneError("INVALID", `columns is ${inWords(given)}; expected an array of column names.`);
  const columns = new Map<string, GroupColumn>();
  given.forEach((name: unknown, index) => {
    const place = `columns[${index}]`;
    if (typeof name !== "string") throw new LodestoneError("INVALID", `${place} is ${inWords(name)}; expected the name of a column.`);
    for (const expanded of expand(branch, table, name, place)) {
      columns.set(expanded, { name: expanded, reference: resolveColumn(branch, table, expanded, place) });
    }
  });
  if (columns.size > MAX_GROUP_COLUMNS)
    throw new LodestoneError("INVALID", `columns has ${columns.size} columns; at most ${MAX_GROUP_COLUMNS} can make a group.`);
  return [...columns.values()];
}

/** "*", "address.*" and "team.*" stand for the columns there. */
function expand(branch: BranchInfo, table: TableInfo, name: string, place: string): string[] {
  if (name === "*") return [...table.columns.keys()];
  if (table.columns.has(name)) return [name];
  const object = name.endsWith(".*") ? name.slice(0, -2) : name;
  const below = columnsBelow(table, object);
  if (below.length > 0) return below.map((column) => column.name);
  if (object === name) return [name];
  const { type, target, json } = resolveColumn(branch, table, object, place);
  const linked = type === "link" && json.length === 0 ? branch.tables.get(target ?? "") : undefined;
  if (linked === undefined)
    throw new LodestoneError("INVALID", `${place}: ${quoted(object)} is not a link, so there is no ${quoted(name)}.`);
  return [...linked.columns.keys()].map((column) => `${object}.${column}`);
}

function readSummaries(branch: BranchInfo, table: TableInfo, given: unknown, columns: readonly GroupColumn[]): Summary[] {
  if (!isObject(given))
    throw new LodestoneError("INVALID", `summaries is ${inWords(given)}; expected an object such as {"total": {"count": "*"}}.`);
  const entries = Object.entries(given);
  if (entries.length > MAX_SUMMARIES)
    throw new LodestoneError("INVALID", `summaries has ${entries.length} entries; at most ${MAX_SUMMARIES} are allowed.`);
  return entries.map(([name, summary]) => {
    const place = `summaries.${name}`;
    if (columns.some((column) => column.name === name || column.name.startsWith(`${name}.`))) {
      throw new LodestoneError("INVALID", `${place} has the name of a selected column; give it another name.`);
    }
    const keys = isObject(summary) ? Object.keys(summary) : [];
    const kind = KINDS.find((key) => keys.length === 1 && keys[0] === key);
    if (!isObject(summary) || kind === undefined) {
      throw new LodestoneError(
        "INVALID",
        `${place} is ${inWords(summary)}; expected an object with one of the keys ${quotedNames(KINDS, "")}.`,
      );
    }
    const column = summary[kind];
    if (typeof column !== "string")
      throw new LodestoneError("INVALID", `${place}.${kind} is ${inWords(column)}; expected the name of a column.`);
    if (kind === "count" && column === "*") return { name, kind, reference: undefined, type: "int" };
    const reference = resolveColumn(branch, table, column, `${place}.${kind}`);
    const types = TYPES[kind];
    if (types !== undefined && (reference.json.length > 0 || !types.includes(reference.type))) {
      throw new LodestoneError(
        "INVALID",
        `${place}.${kind}: column ${quoted(column)} is of type ${reference.type}; expected ${types.join(", ")}.`,
      );
    }
    return { name, kind, reference, type: kind === "count" ? "int" : kind === "average" ? "float" : reference.type };
  });
}

function readSort(sort: unknown, columns: readonly GroupColumn[], summaries: readonly Summary[]): SummarizePlan["sort"] {
  return readSortItems(sort, "sort").map(({ name, direction, place }) => {
    if (direction === "random")
      throw new LodestoneError("INVALID", `${place}: summaries cannot be sorted randomly; expected "asc" or "desc".`);
    const column = columns.findIndex((candidate) => candidate.name === name);
    const summary = summaries.findIndex((candidate) => candidate.name === name);
    if (column === -1 && summary === -1) {
      const names = [...columns.map((candidate) => candidate.name), ...summaries.map((candidate) => candidate.name)];
      throw new LodestoneError("INVALID", `${place}: ${quoted(name)} is not among the selected names: ${quotedNames(names, "nothing")}.`);
    }
    return { by: summary === -1 ? `c${column}` : `s${summary}`, direction };
  });
}

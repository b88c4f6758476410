/**
 * `columns` of a request, read once against the schema into a tree: which columns of the record, which links to
 * follow and what to read there, and which records that link here come with it. `id` and `xata` are always
 * included.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { followLink, linkTarget, requireJson, requireLinksLeft, splitJsonPath, unknownColumn } from "../../../filter/column-path.ts";
import { rootPlace } from "../../../filter/fault.ts";
import { systemColumnNamed, systemColumnType } from "../../../filter/system-columns.ts";
import { isObject } from "../../../text/json-object.ts";
import { MAX_PAGE_OFFSET, MAX_PAGE_SIZE, MAX_SELECTED } from "../../request-limits.ts";
import type { JsonObject, Selection } from "../../requests.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import { columnsBelow, notExpected, wholeNumber } from "../values/request-parts.ts";
import { readSort, type SortKey } from "./sort.ts";

/** What is read of the records of one table. */
export interface RecordSelection {
  readonly table: TableInfo;
  readonly columns: Set<ColumnInfo>;
  /** Links that are followed: by link column, what is read behind it. */
  readonly links: Map<ColumnInfo, RecordSelection>;
  /** `config->a->b` as written. */
  readonly json: Map<string, { readonly column: ColumnInfo; readonly steps: readonly string[] }>;
  /** By the name that they have in the answer. */
  readonly reverse: Map<string, ReverseLink>;
}

/** Records of another table that link here, at most `limit` of them. */
export interface ReverseLink {
  readonly column: ColumnInfo;
  readonly selection: RecordSelection;
  readonly sort: readonly SortKey[];
  readonly limit: number;
  readonly offset: number;
}

/** Some hundred kilobytes when printed. */
const MAX_FIXED_DIMENSIONS = 20_000;
const DEFAULT_REVERSE_LIMIT = 20;

export const ALL_COLUMNS: Selection = ["*"];

export function readSelection(branch: BranchInfo, table: TableInfo, selection: Selection | undefined, place = "columns"): RecordSelection {
  const root = emptySelection(table);
  if (selection !== undefined) new SelectionReader(branch).list(root, selection, place, 0);
  return root;
}

function emptySelection(table: TableInfo): RecordSelection {
  return { table, columns: new Set(), links: new Map(), json: new Map(), reverse: new Map() };
}

/** True when only the record's own row is read, so that RETURNING of a write can answer it. */
export function isFlat(selection: RecordSelection): boolean {
  return selection.links.size === 0 && selection.reverse.size === 0;
}

/** True when its records are small and about equally large: no texts, no lists, no JSON. */
export function isOfFixedSize(selection: RecordSelection): boolean {
  if (!isFlat(selection) || selection.json.size > 0) return false;
  let dimensions = 0;
  for (const { type, vector } of selection.columns) {
    if (vector !== undefined) dimensions += vector.dimension;
    else if (type !== "int" && type !== "float" && type !== "bool" && type !== "datetime") return false;
  }
  return dimensions <= MAX_FIXED_DIMENSIONS;
}

class SelectionReader {
  readonly #branch: BranchInfo;
  #count = 0;

  constructor(branch: BranchInfo) {
    this.#branch = branch;
  }

  list(into: RecordSelection, items: unknown, place: string, depth: number): void {
    if (!Array.isArray(items)) throw notExpected(place, items, 'an array such as ["*", "team.name"]');
    this.#count += items.length;
    if (this.#count > MAX_SELECTED)
      throw new LodestoneError("INVALID", `${place} selects more than ${MAX_SELECTED} names; select "*" or fewer.`);
    items.forEach((item: unknown, index) => {
      const at = `${place}[${index}]`;
      if (typeof item === "string") this.name(into, item, at, depth);
      else if (isObject(item)) this.object(into, item as JsonObject, at, depth);
      else throw notExpected(at, item, "a column name, or an object with a name");
    });
  }

  name(into: RecordSelection, name: string, place: string, depth: number): void {
    const { table } = into;
    if (name === "*") {
      for (const column of table.columns.values()) into.columns.add(column);
      return;
    }
    const own = table.columns.get(name);
    if (own !== undefined) {
      into.columns.add(own);
      // A named link brings its whole record; under "*" it is an id.
      if (own.type === "link") this.name(this.#follow(into, own, place, depth), "*", place, depth + 1);
      return;
    }
    if (name === "xata" || name === "xata.*" || systemColumnNamed(name) !== undefined) return;
    const at = rootPlace(place);
    const { base, json } = splitJsonPath(name, at);
    if (json.length > 0) {
      const column = table.columns.get(base);
      if (column === undefined) throw unknownColumn(table, base, at);
      requireJson(column, at);
      into.json.set(name, { column, steps: json });
      return;
    }
    const step = followLink(table, name, this.#branch.tables, depth, at);
    if (step !== undefined) {
      this.name(this.#follow(into, step.column, place, depth), step.rest, place, depth + 1);
      return;
    }
    const below = columnsBelow(table, name.endsWith(".*") ? name.slice(0, -2) : name);
    if (below.length === 0) throw unknownColumn(table, name, at);
    for (const column of below) into.columns.add(column);
  }

  #follow(into: RecordSelection, column: ColumnInfo, place: string, depth: number): RecordSelection {
    requireLinksLeft(depth, rootPlace(place));
    let target = into.links.get(column);
    if (target === undefined) {
      target = emptySelection(linkTarget(column, this.#branch.tables, rootPlace(place)));
      into.links.set(column, target);
    }
    return target;
  }

  /** `{name: "<-posts.author", columns, as, sort, limit, offset}`, or the same of a link that is followed forward. */
  object(into: RecordSelection, item: JsonObject, place: string, depth: number): void {
    const { name, columns } = item;
    if (typeof name !== "string") throw notExpected(`${place}.name`, name, 'a column name, or "<-table.column"');
    if (!name.startsWith("<-")) {
      const column = into.table.columns.get(name);
      if (column?.type !== "link") {
        if (columns !== undefined)
          throw new LodestoneError("INVALID", `${place}.name: ${quoted(name)} is not a link, so it takes no columns.`);
        this.name(into, name, place, depth);
        return;
      }
      this.list(this.#follow(into, column, place, depth), columns ?? ALL_COLUMNS, `${place}.columns`, depth + 1);
      return;
    }
    const column = this.#reverseColumn(into.table, name, `${place}.name`);
    requireLinksLeft(depth, rootPlace(place));
    const alias = item.as ?? column.table.name + column.column.name;
    if (
      typeof alias !== "string" ||
      alias === "" ||
      alias === "id" ||
      alias === "xata" ||
      into.table.columns.has(alias) ||
      into.reverse.has(alias)
    ) {
      throw notExpected(`${place}.as`, alias, "a name that the record does not have yet");
    }
    const selection = emptySelection(column.table);
    this.list(selection, columns ?? ALL_COLUMNS, `${place}.columns`, depth + 1);
    into.reverse.set(alias, {
      column: column.column,
      selection,
      sort: readSort(this.#branch, column.table, item.sort ?? namingMetadata(column.table, item.order), `${place}.sort`),
      limit: wholeNumber(item.limit, DEFAULT_REVERSE_LIMIT, 1, MAX_PAGE_SIZE, `${place}.limit`),
      offset: wholeNumber(item.offset, 0, 0, MAX_PAGE_OFFSET, `${place}.offset`),
    });
  }

  #reverseColumn(target: TableInfo, name: string, place: string): { table: TableInfo; column: ColumnInfo } {
    const path = name.slice(2);
    for (let dot = path.indexOf("."); dot !== -1; dot = path.indexOf(".", dot + 1)) {
      const table = this.#branch.tables.get(path.slice(0, dot));
      const column = table?.columns.get(path.slice(dot + 1));
      if (table === undefined || column === undefined) continue;
      if (column.link?.table === target.name) return { table, column };
      throw new LodestoneError("INVALID", `${place}: column ${quoted(path)} does not link to table ${quoted(target.name)}.`);
    }
    throw new LodestoneError(
      "INVALID",
      `${place}: there is no column ${quoted(path)}; a reverse link is written "<-table.column", with a table of ${quotedNames([...this.#branch.tables.keys()], "none")}.`,
    );
  }
}

/** `order` of a reverse link calls metadata by its last name: `{"column": "createdAt", "order": "desc"}`. */
function namingMetadata(table: TableInfo, order: unknown): unknown {
  if (!Array.isArray(order)) return order;
  return order.map((item: unknown) => {
    const column: unknown = typeof item === "object" && item !== null ? (item as { column?: unknown }).column : undefined;
    if (typeof column !== "string" || table.columns.has(column) || systemColumnType(`xata.${column}`) === undefined) return item;
    return { ...(item as object), column: `xata.${column}` };
  });
}

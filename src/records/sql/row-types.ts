/**
 * The part of PostgreSQL's type system needed to tell columns from calls: which values are rows, and what
 * columns they have.
 *
 * Deny by default: null means "not known", and nothing can be read from it.
 */
import { strings, type Tree, unwrapAll } from "./statement-tree.ts";
import type { Steps } from "./steps.ts";

export type ValueType =
  /** Certainly not a row. */
  | { readonly kind: "scalar" }
  | { readonly kind: "array"; readonly of: ValueType }
  /**
   * `isTable`: the row type of a table, which is kept through arrays and functions. PostgreSQL knows any
   * other row only where it can see how it was made.
   */
  | { readonly kind: "row"; readonly columns: readonly Column[]; readonly isTable: boolean }
  | null;

export interface Column {
  readonly name: string;
  readonly type: ValueType;
}

/** The columns of a relation, in order. If not complete, there may be others at unknown places. */
export interface ColumnList {
  readonly columns: readonly Column[];
  readonly isComplete: boolean;
}

export const SCALAR: ValueType = { kind: "scalar" };
export const UNKNOWN_COLUMNS: ColumnList = { columns: [], isComplete: false };

export const complete = (columns: readonly Column[]): ColumnList => ({ columns, isComplete: true });
export const scalars = (...names: string[]): Column[] => names.map((name) => ({ name, type: SCALAR }));

/** Below this many columns an index costs more than it saves. */
const INDEXED_COLUMNS = 8;
const indexes = new WeakMap<readonly Column[], ReadonlyMap<string, Column>>();

/** The first column of that name. The first search in a long list makes an index of it. */
export function columnNamed(columns: readonly Column[], name: string, steps: Steps): Column | undefined {
  if (columns.length <= INDEXED_COLUMNS) {
    steps.spend(columns.length);
    return columns.find((column) => column.name === name);
  }
  steps.spend(1);
  let index = indexes.get(columns);
  if (index === undefined) {
    steps.spend(columns.length);
    // Of several columns with one name the first counts.
    index = new Map(columns.toReversed().map((column) => [column.name, column]));
    indexes.set(columns, index);
  }
  return index.get(name);
}

/** `AS x(a, b)`: gives the first columns other names. */
export function renamed(list: ColumnList, names: readonly string[], steps: Steps): ColumnList {
  if (names.length === 0) return list;
  steps.spend(list.columns.length + names.length);
  if (!list.isComplete) return { columns: names.map((name) => ({ name, type: null })), isComplete: false };
  return complete(list.columns.map((column, index) => (index < names.length ? { name: names[index]!, type: column.type } : column)));
}

export function joined(lists: readonly ColumnList[], steps: Steps): ColumnList {
  steps.spend(lists.reduce((sum, list) => sum + 1 + list.columns.length, 0));
  return { columns: lists.flatMap((list) => list.columns), isComplete: lists.every((list) => list.isComplete) };
}

/**
 * The allowed functions that name their output columns; the alias of the call does not rename these. All
 * others (except unnest) return one unnamed value.
 */
const NAMED_OUTPUTS: ReadonlyMap<string, readonly string[]> = new Map([
  ["json_each", ["key", "value"]],
  ["jsonb_each", ["key", "value"]],
  ["json_each_text", ["key", "value"]],
  ["jsonb_each_text", ["key", "value"]],
  ["json_array_elements", ["value"]],
  ["jsonb_array_elements", ["value"]],
  ["json_array_elements_text", ["value"]],
  ["jsonb_array_elements_text", ["value"]],
]);

/** Functions that return an argument, or a list of it. */
const KEEPING = new Set(["first_value", "last_value", "nth_value", "lag", "lead", "any_value"]);
const SCALAR_ARRAYS = new Set(["string_to_array", "regexp_split_to_array", "regexp_match", "regexp_matches"]);

/**
 * What is left of a type when a value passes through a subquery, an array or a function: there PostgreSQL
 * knows the columns of a table's row, and of no other.
 */
export const kept = (type: ValueType | undefined): ValueType =>
  type === undefined || type === null || (type.kind === "row" && !type.isTable) ? null : type;

export const arrayOf = (type: ValueType | undefined): ValueType => ({ kind: "array", of: kept(type) });

/**
 * The type of a call as a value.
 * @param args  the types of its arguments.
 */
export function callType(name: string, args: readonly ValueType[]): ValueType {
  const outputs = NAMED_OUTPUTS.get(name);
  if (outputs !== undefined) return outputs.length === 1 ? SCALAR : { kind: "row", columns: scalars(...outputs), isTable: false };
  if (name === "array_agg") return arrayOf(args[0]);
  if (name === "unnest") return args[0]?.kind === "array" ? args[0].of : null;
  if (KEEPING.has(name)) return kept(args[0]);
  if (SCALAR_ARRAYS.has(name)) return { kind: "array", of: SCALAR };
  return null;
}

/**
 * The columns that a call in FROM returns.
 *
 * @param alias  name of a single unnamed value, when the call stands alone in its FROM item.
 */
export function callColumns(name: string, args: readonly ValueType[], alias: string | undefined): ColumnList {
  const outputs = NAMED_OUTPUTS.get(name);
  if (outputs !== undefined) return complete(scalars(...outputs));
  if (name !== "unnest") return complete(scalars(alias ?? name));
  // Of an array. unnest of a text search vector or of a multirange returns other columns, so if the type is
  // not known, neither are the columns.
  const [argument] = args;
  if (argument?.kind !== "array" || argument.of === null) return UNKNOWN_COLUMNS;
  if (argument.of.kind === "row") return complete(argument.of.columns);
  return complete([{ name: alias ?? name, type: argument.of }]);
}

/** `AS x(a int, b text)`. */
export const definedColumns = (definitions: unknown): ColumnList =>
  complete(unwrapAll(definitions).map(([, definition]) => ({ name: String(definition.colname), type: typeOfCast(definition.typeName) })));

/** Every type that users may name is a scalar or an array of scalars. */
export function typeOfCast(typeName: unknown): ValueType {
  return (typeName as Tree | undefined)?.arrayBounds === undefined ? SCALAR : { kind: "array", of: SCALAR };
}

/** The names in an alias's column list. */
export const aliasColumns = (alias: Tree | undefined): string[] => strings(alias?.colnames);

/**
 * Parses a filter of the API, checked against the schema, into one tree. The grammar is that of the
 * SDK's `FilterExpression`:
 *
 *   expression  {name: condition, $any|$all|$none|$not: expression | [expression], $exists|$notExists|$existsNot: name}   members ANDed
 *   condition   value | [condition] (any of) | {operator: operand, ...} (ANDed) | on a link, a json column or an object: {name: condition}
 *   operators   $is $isNot (value or list) · $lt $le $gt $ge (also $lte $gte) · $contains $iContains $startsWith $endsWith $pattern $iPattern
 *               $includes $includesAny $includesNone (condition on the item), $includesAll (each of a list of them) · $any $all $none $not (condition, list, or object)
 *
 * `$none: x` is `$not: {$any: x}`; `$any` of an object means any of its members; `$not` of an object, or of a
 * list of expressions, denies that all hold, and of a list of conditions (on a column: `{$not: ["a", "b"]}`)
 * that any holds, as such a list means any of everywhere. On a link column a condition is about the id; on a
 * `multiple` column a plain value means that the array includes it. Keys are only ever looked up in maps, so
 * `__proto__` is a name like others.
 */

import { inWords, quoted } from "../errors/value-in-words.ts";
import { isObject } from "../text/json-object.ts";
import { checkText } from "./check-text.ts";
import { jsonSteps, linkScope, objectColumns, resolveName, type Scope, type Tables } from "./column-path.ts";
import { at, fault, type Place, rootPlace } from "./fault.ts";
import { MAX_FILTER_CONDITIONS, MAX_FILTER_DEPTH, MAX_FILTER_VALUES } from "./filter-limits.ts";
import { fold } from "./fold.ts";
import { parseOperand, parseRange } from "./operand.ts";
import { parsePattern } from "./pattern.ts";
import {
  type ColumnPath,
  FALSE,
  type FilterNode,
  type FilterTable,
  type Operand,
  type RangeOperator,
  type TextOperator,
  TRUE,
} from "./tree.ts";

/**
 * @param filter  What the request holds; undefined (no filter) selects everything.
 * @param table  The table whose records are selected.
 * @param tables  All tables of the branch by name, for links.
 * @param name  What messages call the filter.
 * @throws {LodestoneError} INVALID; the message begins with the path to the fault: `filter.$any[1].price.$gt:
 *   expected a number, got "abc"`.
 */
export function parseFilter(filter: unknown, table: FilterTable, tables: Tables, name = "filter"): FilterNode {
  if (filter === undefined) return TRUE;
  return new Parser(tables).expression(filter, { table, links: [], prefix: "", text: "" }, rootPlace(name), 0);
}

const RANGES: ReadonlyMap<string, RangeOperator> = new Map([
  ["$lt", "lt"],
  ["$le", "le"],
  ["$lte", "le"],
  ["$gt", "gt"],
  ["$ge", "ge"],
  ["$gte", "ge"],
]);

const TEXTS: ReadonlyMap<string, { operator: TextOperator | "pattern"; fold: boolean }> = new Map([
  ["$contains", { operator: "contains", fold: false }],
  ["$iContains", { operator: "contains", fold: true }],
  ["$startsWith", { operator: "startsWith", fold: false }],
  ["$endsWith", { operator: "endsWith", fold: false }],
  ["$pattern", { operator: "pattern", fold: false }],
  ["$iPattern", { operator: "pattern", fold: true }],
]);

const INCLUDES: ReadonlyMap<string, "any" | "each" | "none"> = new Map([
  ["$includes", "any"],
  ["$includesAny", "any"],
  ["$includesAll", "each"],
  ["$includesNone", "none"],
]);

const EXISTENCE: ReadonlySet<string> = new Set(["$exists", "$notExists", "$existsNot"]);

const CONTROLS: ReadonlySet<string> = new Set(["$any", "$all", "$none", "$not"]);

/** What a condition is about: the column, and what `{name: ...}` inside it means. */
interface Subject {
  readonly column: ColumnPath;
  readonly link: FilterTable | null;
}

type ParseMember = (key: string, value: unknown, place: Place, depth: number) => FilterNode;
type ParseWhole = (value: unknown, place: Place, depth: number) => FilterNode;

class Parser {
  readonly #tables: Tables;
  #conditions = 0;
  #values = 0;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  expression(filter: unknown, scope: Scope, place: Place, depth: number): FilterNode {
    if (!isObject(filter)) throw fault(place, `expected an object of conditions, got ${inWords(filter)}`);
    this.#checkDepth(depth, place);
    return and(Object.keys(filter).map((key) => this.#member(key, filter[key], scope, at(place, key), depth + 1)));
  }

  #member(key: string, value: unknown, scope: Scope, place: Place, depth: number): FilterNode {
    this.#count(place);
    if (CONTROLS.has(key)) {
      const member: ParseMember = (name, inner, where, level) => this.#member(name, inner, scope, where, level);
      return this.#control(key, value, member, (inner, where, level) => this.expression(inner, scope, where, level), place, depth);
    }
    if (EXISTENCE.has(key)) {
      const exists = this.#exists(value, scope, place);
      return key === "$exists" ? exists : not(exists);
    }
    if (key.startsWith("$")) {
      throw fault(
        place,
        `unknown operator ${quoted(key)} here; expected a column name, $any, $all, $none, $not, $exists or $notExists (operators on a column go inside it: {column: {${quoted(key)}: …}})`,
      );
    }
    const resolved = resolveName(key, scope, this.#tables, place);
    if ("object" in resolved) {
      if (Array.isArray(value)) return or(value.map((item, i) => this.expression(item, resolved.object, at(place, i), depth + 1)));
      return this.expression(value, resolved.object, place, depth);
    }
    return this.#condition(value, resolved, place, depth);
  }

  /**
   * `$any`, `$all`, `$none` and `$not` around expressions or conditions: one, a list, or an object whose
   * members are meant.
   */
  #control(key: string, value: unknown, member: ParseMember, whole: ParseWhole, place: Place, depth: number): FilterNode {
    this.#checkDepth(depth, place);
    let nodes: FilterNode[];
    if (Array.isArray(value)) nodes = value.map((item, i) => whole(item, at(place, i), depth + 1));
    else if (isObject(value)) nodes = Object.keys(value).map((name) => member(name, value[name], at(place, name), depth + 1));
    else nodes = [whole(value, place, depth + 1)];
    const combined = key === "$any" || key === "$none" ? or(nodes) : and(nodes);
    return key === "$none" || key === "$not" ? not(combined) : combined;
  }

  #exists(value: unknown, scope: Scope, place: Place): FilterNode {
    if (typeof value !== "string") throw fault(place, `expected the name of a column, got ${inWords(value)}`);
    const resolved = resolveName(value, scope, this.#tables, place);
    if ("column" in resolved) return { kind: "exists", column: resolved.column };
    return or(objectColumns(resolved.object).map((column) => ({ kind: "exists", column })));
  }

  #condition(value: unknown, subject: Subject, place: Place, depth: number): FilterNode {
    this.#checkDepth(depth, place);
    if (Array.isArray(value)) return this.#anyOf(value, subject, place, depth);
    if (!isObject(value) || value instanceof Date) return this.#equals([value], subject.column, [place]);
    const keys = Object.keys(value);
    if (keys.length === 0) throw fault(place, "expected a condition, got an empty object");
    return and(keys.map((key) => this.#operator(key, value[key], subject, at(place, key), depth + 1)));
  }

  /** A list of conditions, one of which must hold; its plain values become one leaf. */
  #anyOf(list: readonly unknown[], subject: Subject, place: Place, depth: number): FilterNode {
    const plain: unknown[] = [];
    const places: Place[] = [];
    const nodes: FilterNode[] = [];
    // Before millions are looked at; each is counted where its value is read.
    if (list.length > MAX_FILTER_VALUES) throw fault(place, `more than ${MAX_FILTER_VALUES} values in one filter`);
    list.forEach((item, i) => {
      const where = at(place, i);
      if (Array.isArray(item) || (isObject(item) && !(item instanceof Date))) nodes.push(this.#condition(item, subject, where, depth + 1));
      else {
        plain.push(item);
        places.push(where);
      }
    });
    if (plain.length > 0) nodes.push(this.#equals(plain, subject.column, places));
    return or(nodes);
  }

  #operator(key: string, value: unknown, subject: Subject, place: Place, depth: number): FilterNode {
    this.#count(place);
    const { column } = subject;
    if (CONTROLS.has(key)) {
      const member: ParseMember = (name, inner, where, level) => this.#operator(name, inner, subject, where, level);
      // A list is a condition of its own: any of.
      if (Array.isArray(value) && key !== "$all") {
        this.#checkDepth(depth, place);
        const any = this.#anyOf(value, subject, place, depth);
        return key === "$any" ? any : not(any);
      }
      return this.#control(key, value, member, (inner, where, level) => this.#condition(inner, subject, where, level), place, depth);
    }
    if (key === "$is" || key === "$isNot") {
      const list = Array.isArray(value) ? value : [value];
      const places = Array.isArray(value) ? value.map((_, i) => at(place, i)) : [place];
      const is = list.length === 0 ? FALSE : this.#equals(list, column, places);
      return key === "$is" ? is : not(is);
    }
    const range = RANGES.get(key);
    if (range !== undefined) {
      this.#countValues(1, place);
      return parseRange(column, range, value, place);
    }
    const text = TEXTS.get(key);
    if (text !== undefined) return this.#text(text, key, value, column, place);
    const quantifier = INCLUDES.get(key);
    if (quantifier !== undefined) {
      if (column.kind !== "multiple")
        throw fault(place, `column ${quoted(column.text)} is ${kindOf(column)}; ${key} is for columns of type multiple`);
      const item: Subject = { column: { ...column, kind: "text", links: [], item: true }, link: null };
      if (quantifier === "each") return this.#includesEach(value, column, item, place, depth);
      return { kind: "includes", column, quantifier, predicate: this.#condition(value, item, place, depth) };
    }
    // Inside a link an expression may stand as well: {team: {$exists: "name"}}.
    if (key.startsWith("$") && !(subject.link !== null && EXISTENCE.has(key))) throw fault(place, `unknown operator ${quoted(key)}`);
    return this.#inside(key, value, subject, place, depth);
  }

  /**
   * `{$includesAll: ["a", {$contains: "b"}]}`: for each of the conditions there is an item, not necessarily the
   * same, that it is true of.
   */
  #includesEach(value: unknown, column: ColumnPath, item: Subject, place: Place, depth: number): FilterNode {
    const conditions = Array.isArray(value) ? value.map((each, i) => [each, at(place, i)] as const) : [[value, place] as const];
    const nodes = conditions.map(
      ([condition, where]): FilterNode => ({
        kind: "includes",
        column,
        quantifier: "any",
        predicate: this.#condition(condition, item, where, depth),
      }),
    );
    return nodes.length === 0 ? { kind: "constant", column, value: true } : and(nodes);
  }

  /** `{team: {name: "x"}}` and `{config: {a: {b: 1}}}`. */
  #inside(key: string, value: unknown, subject: Subject, place: Place, depth: number): FilterNode {
    const { column, link } = subject;
    if (link !== null) {
      // `team.id` is the link itself, which keeps naming the way to the table behind it.
      return this.#member(key, value, linkScope(column, link, place), place, depth);
    }
    if (column.kind === "json" && !column.item) {
      const json = [...column.json, ...jsonSteps(key, place)];
      return this.#condition(value, { column: { ...column, text: `${column.text}->${key}`, json }, link: null }, place, depth);
    }
    throw fault(place, `column ${quoted(column.text)} is ${kindOf(column)}, which has no member ${quoted(key)}; operators begin with $`);
  }

  #equals(values: readonly unknown[], column: ColumnPath, places: readonly Place[]): FilterNode {
    this.#countValues(values.length, places[0]!);
    const operands: Operand[] = [];
    values.forEach((value, i) => {
      const operand = parseOperand(column, value, places[i]!);
      if (operand !== undefined) operands.push(operand);
    });
    if (column.kind === "multiple") {
      const item: ColumnPath = { ...column, kind: "text", links: [], item: true };
      return { kind: "includes", column, quantifier: "any", predicate: { kind: "in", column: item, values: operands } };
    }
    return operands.length === 0 ? { kind: "constant", column, value: false } : { kind: "in", column, values: operands };
  }

  #text(
    { operator, fold: folded }: { operator: TextOperator | "pattern"; fold: boolean },
    key: string,
    value: unknown,
    column: ColumnPath,
    place: Place,
  ): FilterNode {
    this.#countValues(1, place);
    if (column.kind !== "text" && column.kind !== "json") {
      const remedy = column.kind === "multiple" ? `; write {"$includes": {"${key}": …}}` : "";
      throw fault(place, `column ${quoted(column.text)} is ${kindOf(column)}; ${key} is for text${remedy}`);
    }
    if (operator === "pattern") return { kind: "pattern", column, fold: folded, parts: parsePattern(value, folded, place) };
    const operand = checkText(value, place);
    return { kind: "text", column, operator, fold: folded, operand: folded ? fold(operand) : operand };
  }

  #checkDepth(depth: number, place: Place): void {
    if (depth > MAX_FILTER_DEPTH) throw fault(place, `nested more than ${MAX_FILTER_DEPTH} deep`);
  }

  #count(place: Place): void {
    if (++this.#conditions > MAX_FILTER_CONDITIONS) throw fault(place, `more than ${MAX_FILTER_CONDITIONS} conditions in one filter`);
  }

  #countValues(count: number, place: Place): void {
    this.#values += count;
    if (this.#values > MAX_FILTER_VALUES) throw fault(place, `more than ${MAX_FILTER_VALUES} values in one filter`);
  }
}

function kindOf(column: ColumnPath): string {
  return column.item ? "an item of a multiple column" : `of type ${column.kind}`;
}

function and(nodes: FilterNode[]): FilterNode {
  return nodes.length === 1 ? nodes[0]! : { kind: "and", nodes };
}

function or(nodes: FilterNode[]): FilterNode {
  return nodes.length === 1 ? nodes[0]! : { kind: "or", nodes };
}

function not(node: FilterNode): FilterNode {
  return { kind: "not", node };
}

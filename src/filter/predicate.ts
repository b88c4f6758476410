/**
 * Leaves as functions of one value, for texts, items of arrays and JSON. true, false, or null for unknown
 * (tree.ts).
 */
import { compareText } from "../text/code-point-order.ts";
import { endOfString, endOfValue } from "../text/json-scan.ts";
import { compareDecimals } from "./decimal.ts";
import { fold } from "./fold.ts";
import { canonicalJson } from "./json-document.ts";
import { PatternMatcher } from "./pattern.ts";
import type { FilterLeaf, FilterNode, Operand, RangeOperator } from "./tree.ts";

/** A leaf that compares; `exists`, `constant` and `includes` are not about the value's content. */
export type ContentLeaf = Extract<FilterLeaf, { kind: "in" | "range" | "text" | "pattern" }>;

export function textPredicate(leaf: ContentLeaf): (text: string) => boolean {
  switch (leaf.kind) {
    case "in": {
      const values = new Set<Operand>(leaf.values);
      return (text) => values.has(text);
    }
    case "range": {
      const bound = leaf.value as string;
      return rangeTest(leaf.operator, (text: string) => compareText(text, bound));
    }
    case "pattern": {
      const matcher = new PatternMatcher(leaf.parts);
      return leaf.fold ? (text) => matcher.matches(fold(text)) : (text) => matcher.matches(text);
    }
    case "text": {
      const { operand, operator } = leaf;
      if (operator === "startsWith") return (text) => text.startsWith(operand);
      if (operator === "endsWith") return (text) => text.endsWith(operand);
      return leaf.fold ? (text) => fold(text).includes(operand) : (text) => text.includes(operand);
    }
  }
}

function rangeTest(operator: RangeOperator, compare: (text: string) => number): (text: string) => boolean {
  switch (operator) {
    case "lt":
      return (text) => compare(text) < 0;
    case "le":
      return (text) => compare(text) <= 0;
    case "gt":
      return (text) => compare(text) > 0;
    case "ge":
      return (text) => compare(text) >= 0;
  }
}

/** For the items that `includes` looks at. */
export function itemPredicate(node: FilterNode): (item: string | null) => boolean | null {
  switch (node.kind) {
    case "and":
    case "or": {
      const decisive = node.kind === "or";
      const predicates = node.nodes.map(itemPredicate);
      return (item) => {
        let unknown = false;
        for (const predicate of predicates) {
          const result = predicate(item);
          if (result === decisive) return decisive;
          if (result === null) unknown = true;
        }
        return unknown ? null : !decisive;
      };
    }
    case "not": {
      const predicate = itemPredicate(node.node);
      return (item) => {
        const result = predicate(item);
        return result === null ? null : !result;
      };
    }
    case "exists":
      return (item) => item !== null;
    case "constant":
      return (item) => (item === null ? null : node.value);
    case "includes":
      throw new TypeError("An item of an array has no items of its own; the parser lets none through.");
    default: {
      const predicate = textPredicate(node);
      return (item) => (item === null ? null : predicate(item));
    }
  }
}

/** Over the text of a json column's value. */
export function jsonPredicate(leaf: FilterLeaf): (document: string) => boolean | null {
  const path = leaf.column.json;
  const valueAt = (document: string): string | null => {
    const value = jsonAt(document, path);
    return value === undefined || value === "null" ? null : value;
  };
  switch (leaf.kind) {
    case "exists":
      return (document) => valueAt(document) !== null;
    case "in": {
      const tests = leaf.values.map(jsonEquals);
      return (document) => {
        const value = valueAt(document);
        return value === null ? null : tests.some((test) => test(value));
      };
    }
    case "range":
      if (typeof leaf.value === "number") {
        const bound = JSON.stringify(leaf.value);
        const test = rangeTest(leaf.operator, (text: string) => compareDecimals(text, bound));
        return (document) => {
          const value = valueAt(document);
          return value === null || !isNumber(value) ? null : test(value);
        };
      }
      return stringPredicate(leaf, valueAt);
    case "text":
    case "pattern":
      return stringPredicate(leaf, valueAt);
    default:
      throw new TypeError(`A json column has no ${leaf.kind}; the parser lets none through.`);
  }
}

function stringPredicate(leaf: ContentLeaf, valueAt: (document: string) => string | null): (document: string) => boolean | null {
  const test = textPredicate(leaf);
  return (document) => {
    const value = valueAt(document);
    return value?.startsWith('"') ? test(JSON.parse(value) as string) : null;
  };
}

function jsonEquals(operand: Operand): (value: string) => boolean {
  if (typeof operand === "object") {
    const { document } = operand;
    return (value) => value[0] === document[0] && canonicalJson(value) === document;
  }
  const text = JSON.stringify(operand as string | number | boolean);
  if (typeof operand === "number") return (value) => isNumber(value) && compareDecimals(value, text) === 0;
  if (typeof operand === "string")
    return (value) => value === text || (value.startsWith('"') && value.includes("\\") && JSON.parse(value) === operand);
  return (value) => value === text;
}

function isNumber(value: string): boolean {
  const first = value.charCodeAt(0);
  return first === 0x2d || (first >= 0x30 && first <= 0x39);
}

// Finds a value in JSON text by a path, without parsing the rest; the same as PostgreSQL's `#>` over jsonb. The
// text is valid JSON.

/** The text of the value at the path; undefined where there is none. */
function jsonAt(text: string, path: readonly string[]): string | undefined {
  let start = skipSpace(text, 0);
  for (const step of path) {
    const first = text[start];
    let found = -1;
    if (first === "{") found = findMember(text, start, step);
    else if (first === "[") found = findItem(text, start, step);
    if (found === -1) return undefined;
    start = found;
  }
  return text.slice(start, endOfValue(text, start));
}

/** Where the value of the member begins, else -1. */
function findMember(text: string, object: number, name: string): number {
  let i = skipSpace(text, object + 1);
  while (text[i] === '"') {
    const end = endOfString(text, i) + 1;
    const raw = text.slice(i + 1, end - 1);
    const value = skipSpace(text, skipSpace(text, end) + 1);
    if (raw === name ? !raw.includes("\\") : raw.includes("\\") && (JSON.parse(`"${raw}"`) as string) === name) return value;
    i = skipSpace(text, endOfValue(text, value));
    if (text[i] === ",") i = skipSpace(text, i + 1);
  }
  return -1;
}

/** What strtol accepts, as `#>` does: an index, counted from the end when negative. */
const INDEX = /^[ \t\n\v\f\r]*([+-]?[0-9]+)$/;

function findItem(text: string, array: number, step: string): number {
  const index = INDEX.exec(step)?.[1];
  if (index === undefined) return -1;
  const wanted = Number(index);
  if (wanted < -(2 ** 31) || wanted > 2 ** 31 - 1) return -1;
  const starts: number[] = [];
  let i = skipSpace(text, array + 1);
  while (i < text.length && text[i] !== "]") {
    if (starts.length === wanted) return i;
    starts.push(i);
    i = skipSpace(text, endOfValue(text, i));
    if (text[i] === ",") i = skipSpace(text, i + 1);
  }
  return wanted < 0 ? (starts[starts.length + wanted] ?? -1) : -1;
}

function skipSpace(text: string, i: number): number {
  while (i < text.length && text.charCodeAt(i) <= 0x20) i++;
  return i;
}

/**
 * Leaves as functions of one value, for texts, items of arrays and JSON. true, false, or null for unknown
 * (tree.ts).
 */
import { compareText } from "../text/code-point-order.ts";
import { compareDecimals } from "./decimal.ts";
import { fold } from "./fold.ts";
import { canonicalJson } from "./json-document.ts";
import { jsonAt } from "./json-lookup.ts";
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

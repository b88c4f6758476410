/**
 * What each form of a filter selects, written out. (sql-and-mask.test.ts shows that both compilers agree; they
 * would agree about a filter that was read wrongly, too.)
 */
import { describe, expect, test } from "vitest";
import { createColumn } from "../../src/columns/stored-column.ts";
import { RowDirectory } from "../../src/core/row-directory.ts";
import { parseTimestamp } from "../../src/filter/datetime.ts";
import { compileToMask } from "../../src/filter/mask.ts";
import { parseFilter } from "../../src/filter/parse.ts";
import type { FilterColumnType } from "../../src/filter/tree.ts";
import type { FeedColumn } from "../../src/records/feed/feed-types.ts";
import { SearchTable } from "../../src/search/table-index.ts";
import { SCHEMA } from "./filter-arbitrary.ts";

type Values = Readonly<Record<string, unknown>>;

const LARGE = 9_007_199_254_740_993n;

/** Records by table and id. `d` has no value at all. */
const RECORDS: Readonly<Record<string, Readonly<Record<string, Values>>>> = {
  items: {
    a: {
      title: "red",
      "settings.plan": "free",
      "settings.dark": true,
      count: 1n,
      price: 0.5,
      sold: "2024-01-01T00:00:00Z",
      labels: ["x", "yy"],
      config: '{"a":{"b":1},"s":"Tea","hot":true,"list":[10,20,30],"n":-0.5,"nine":9,"q":"say \\"hi\\" \\\\ é\\n"}',
      team: "t1",
    },
    b: {
      title: "Red wine",
      "settings.plan": "paid",
      "settings.dark": false,
      count: 2n,
      price: 1.5,
      sold: "2024-06-01T00:00:00Z",
      labels: ["yy"],
      config: '{"a":{"b":"1"},"s":"coffee"}',
      team: "t2",
      parent: "a",
    },
    c: { title: "50%_*?", count: LARGE, price: -2, labels: [], config: "[1,2]", parent: "b" },
    d: {},
  },
  teams: { t1: { name: "alpha", size: 3n, tags: ["x"], org: "o1" }, t2: { name: "beta" } },
  orgs: { o1: { name: "acme", score: 4 } },
};

function column(type: FilterColumnType, values: readonly unknown[]): FeedColumn {
  const given = values.map((value) => value ?? null);
  if (type === "datetime")
    return { kind: "datetime", values: given.map((value) => (value === null ? null : parseTimestamp(value as string)!)) };
  const kind = type === "int" || type === "float" || type === "bool" || type === "multiple" || type === "json" ? type : "text";
  return { kind, values: given } as FeedColumn;
}

const TABLES = new Map(
  [...SCHEMA.values()].map((table) => {
    const kept = new SearchTable(new RowDirectory());
    const records = RECORDS[table.name]!;
    const types = [...table.columns.values()].map(({ name, type }) => [name, type] as const);
    for (const [name, type] of types) kept.addColumn(name, createColumn(type as Exclude<FilterColumnType, "vector">));
    const columns = new Map(
      types.map(([name, type]) => [
        name,
        column(
          type,
          Object.values(records).map((record) => record[name]),
        ),
      ]),
    );
    kept.apply({ table: table.name, ids: Object.keys(records), columns, deleted: [] });
    return [table.name, kept] as const;
  }),
);

function selected(filter: unknown): string {
  const node = parseFilter(filter, SCHEMA.get("items")!, SCHEMA);
  const mask = compileToMask(node, "items", { table: (name) => TABLES.get(name)! });
  const rows = [...TABLES.get("items")!.rows.entries()];
  return rows
    .flatMap(([id, row]) => (((mask[row >> 5]! >> (row & 31)) & 1) === 1 ? [id] : []))
    .sort()
    .join("");
}

describe("a filter selects", () => {
  test.each<[unknown, string]>([
    [{}, "abcd"],
    // Plain values and lists of them.
    [{ title: "red" }, "a"],
    [{ title: ["red", "Red wine"] }, "ab"],
    [{ title: ["red", { $startsWith: "Red" }] }, "ab"],
    [{ title: [{ $startsWith: "Red" }] }, "b"],
    [{ count: 1, title: "red" }, "a"],
    [{ count: 2, title: "red" }, ""],
    [{ count: 1.5 }, ""],
    [{ count: `${LARGE}` }, "c"],
    [{ count: `+${LARGE}` }, "c"],
    [{ count: `${LARGE - 1n}` }, ""],
    [{ count: "9223372036854775808" }, ""],
    [{ count: [1, "9223372036854775808"] }, "a"],
    [{ "settings.dark": true }, "a"],
    [{ labels: "yy" }, "ab"],
    [{ labels: ["x", "z"] }, "a"],
    // As in SQL, neither a condition nor its opposite holds for a record without the value.
    [{ title: { $is: "red" } }, "a"],
    [{ title: { $is: ["red", "Red wine"] } }, "ab"],
    [{ title: { $isNot: "red" } }, "bc"],
    [{ title: { $isNot: ["red", "Red wine"] } }, "c"],
    [{ title: { $is: [] } }, ""],
    [{ title: { $isNot: [] } }, "abcd"],
    // Ranges.
    [{ count: { $gt: 1 } }, "bc"],
    [{ count: { $ge: 2 } }, "bc"],
    [{ count: { $gte: 2, $lt: 3 } }, "b"],
    [{ count: { $lt: 2 } }, "a"],
    [{ count: { $le: 2 } }, "ab"],
    [{ count: { $lt: 1.5 } }, "a"],
    [{ count: { $gt: 1.5 } }, "bc"],
    [{ count: { $le: 0.5 } }, ""],
    [{ count: { $lt: "9223372036854775808" } }, "abc"],
    [{ count: { $gt: "9223372036854775808" } }, ""],
    [{ count: { $gt: "-9223372036854775809" } }, "abc"],
    [{ count: { $lt: "-9223372036854775809" } }, ""],
    [{ count: { $le: "9223372036854775807" } }, "abc"],
    [{ count: { $ge: "-9223372036854775808" } }, "abc"],
    [{ price: { $lt: 0 } }, "c"],
    [{ sold: { $ge: "2024-06-01T00:00:00Z" } }, "b"],
    [{ sold: { $lt: new Date("2024-06-01") } }, "a"],
    [{ title: { $lt: "a" } }, "bc"],
    [{ title: { $ge: "Red" } }, "ab"],
    [{ title: { $ge: "red" } }, "a"],
    [{ title: { $gt: "red" } }, ""],
    [{ title: { $gt: "Red wine" } }, "a"],
    [{ title: { $le: "Red wine" } }, "bc"],
    [{ title: { $lt: "Red wine" } }, "c"],
    // Texts and patterns.
    [{ title: { $contains: "ed" } }, "ab"],
    [{ title: { $contains: "ED" } }, ""],
    [{ title: { $iContains: "RED" } }, "ab"],
    [{ title: { $startsWith: "Red" } }, "b"],
    [{ title: { $endsWith: "ed" } }, "a"],
    [{ title: { $pattern: "r?d" } }, "a"],
    [{ title: { $pattern: "*e*" } }, "ab"],
    [{ title: { $pattern: "50%_\\*\\?" } }, "c"],
    [{ title: { $iPattern: "RED*" } }, "ab"],
    // Lists of texts.
    [{ labels: { $includes: "yy" } }, "ab"],
    [{ labels: { $includesAny: ["x", "z"] } }, "a"],
    [{ labels: { $includesAll: ["x", "yy"] } }, "a"],
    [{ labels: { $includesAll: "yy" } }, "ab"],
    [{ labels: { $includesAll: [] } }, "abc"],
    [{ labels: { $includesAll: [{ $contains: "x" }, { $contains: "y" }] } }, "a"],
    [{ labels: { $includesNone: "x" } }, "bc"],
    [{ labels: { $includes: { $not: { $contains: "x" } } } }, "ab"],
    [{ labels: { $includes: { $all: [{ $startsWith: "y" }, { $endsWith: "y" }] } } }, "ab"],
    [{ labels: { $includes: { $any: ["x", "z"] } } }, "a"],
    // Combinations around expressions.
    [{ $any: { title: "red", count: 2 } }, "ab"],
    [{ $any: [{ title: "red" }, { count: 2 }] }, "ab"],
    [{ $any: [{ title: "red", count: 2 }, { count: 2 }] }, "b"],
    [{ $any: [] }, ""],
    [{ $all: { title: "red", count: 2 } }, ""],
    [{ $all: [{ title: { $contains: "ed" } }, { count: 2 }] }, "b"],
    [{ $all: [] }, "abcd"],
    [{ $none: { title: "red", count: 2 } }, "c"],
    [{ $none: [{ title: "red" }, { count: 2 }] }, "c"],
    [{ $not: { title: "red", count: 1 } }, "bc"],
    [{ $not: { title: "red", count: 2 } }, "abc"],
    [{ $not: [{ title: { $contains: "ed" } }, { count: 2 }] }, "ac"],
    [{ $not: { $any: [{ title: "red" }, { count: 2 }] } }, "c"],
    // Combinations inside a column.
    [{ title: { $any: ["red", { $contains: "wine" }] } }, "ab"],
    [{ title: { $any: { $is: "red", $contains: "wine" } } }, "ab"],
    [{ title: { $all: [{ $contains: "ed" }, { $contains: "wine" }] } }, "b"],
    [{ title: { $all: { $contains: "ed", $endsWith: "d" } } }, "a"],
    [{ title: { $none: ["red", "Red wine"] } }, "c"],
    [{ title: { $none: { $is: "red", $contains: "wine" } } }, "c"],
    [{ title: { $not: "red" } }, "bc"],
    [{ title: { $not: ["red", "Red wine"] } }, "c"],
    [{ title: { $not: { $contains: "ed", $endsWith: "d" } } }, "bc"],
    [{ title: { $contains: "ed", $not: { $is: "red" } } }, "b"],
    // What is there.
    [{ $exists: "title" }, "abc"],
    [{ $notExists: "title" }, "d"],
    [{ $existsNot: "sold" }, "cd"],
    [{ $exists: "labels" }, "abc"],
    [{ $exists: "settings" }, "ab"],
    [{ $exists: "config->a" }, "ab"],
    [{ $all: [{ $exists: "title" }, { $notExists: "sold" }] }, "c"],
    // Objects of the old type.
    [{ settings: { plan: "free", dark: true } }, "a"],
    [{ settings: [{ plan: "free" }, { dark: false }] }, "ab"],
    [{ settings: { $any: [{ plan: "free" }, { plan: "paid" }] } }, "ab"],
    [{ settings: { $not: { plan: "free" } } }, "b"],
    // Links.
    [{ team: "t1" }, "a"],
    [{ team: ["t1", "t2"] }, "ab"],
    [{ "team.name": "alpha" }, "a"],
    [{ team: { name: "alpha" } }, "a"],
    [{ team: { id: "t2" } }, "b"],
    [{ team: { $any: [{ name: "alpha" }, "t2"] } }, "ab"],
    [{ team: { $exists: "size" } }, "a"],
    [{ team: { $notExists: "size" } }, "bcd"],
    [{ "team.org.score": { $gt: 3 } }, "a"],
    [{ team: { org: { name: "acme", $exists: "score" } } }, "a"],
    [{ "parent.parent.title": "red" }, "c"],
    [{ $not: { "team.name": "alpha" } }, "b"],
    // Inside json.
    [{ "config->a->b": 1 }, "a"],
    [{ "config->a->b": "1" }, "b"],
    [{ config: { a: { b: 1 } } }, "a"],
    [{ config: { a: { b: [1, "1"] } } }, "ab"],
    [{ config: { s: { $iContains: "TE" } } }, "a"],
    [{ config: { s: { $pattern: "c*e" } } }, "b"],
    [{ "config->a->b": { $ge: 1 } }, "a"],
    [{ "config->a->b": { $lt: "2" } }, "b"],
    [{ "config->hot": true }, "a"],
    [{ "config->list->0": 10 }, "a"],
    [{ "config->list->2": 30 }, "a"],
    [{ $exists: "config->list->3" }, ""],
    [{ "config->list->-1": 30 }, "a"],
    [{ "config->list->-3": 10 }, "a"],
    [{ $exists: "config->list->-4" }, ""],
    [{ $exists: "config->list->x" }, ""],
    [{ $exists: "config->list->4294967296" }, ""],
    [{ "config->0": 1 }, "c"],
    [{ "config->-1": 2 }, "c"],
    [{ "config->n": -0.5 }, "a"],
    [{ "config->n": { $lt: 0 } }, "a"],
    [{ "config->nine": [9, 10] }, "a"],
    [{ "config->nine": { $gt: 9 } }, ""],
    [{ "config->nine": { $ge: 9 } }, "a"],
    [{ "config->nine": { $le: 9 } }, "a"],
    [{ "config->nine": { $lt: 9 } }, ""],
    [{ "config->nine": "9" }, ""],
    [{ "config->nine": { $contains: "9" } }, ""],
    [{ "config->q": 'say "hi" \\ é\n' }, "a"],
    [{ "config->q": { $contains: '"hi"' } }, "a"],
    [{ "config->q": 'say "hi" \\ é' }, ""],
    [{ "config->s": "Tea" }, "a"],
    [{ "config->s": { $gt: "Tea" } }, "b"],
    [{ "config->s": { $ge: "Tea" } }, "ab"],
    [{ "config->hot": false }, ""],
    [{ config: "[1,2.0]" }, "c"],
    [{ "config->a": '{"b":1}' }, "a"],
    [{ $notExists: "config->s" }, "cd"],
  ])("%j: %s", (filter, ids) => {
    expect(selected(filter)).toBe(ids);
  });

  test("no values of a form that the column cannot have", () => {
    for (const filter of [
      { title: null },
      { count: { $lt: true } },
      { "settings.dark": { $lt: true } },
      { labels: { $gt: "a" } },
      { config: { $lt: true } },
    ])
      expect(() => selected(filter), JSON.stringify(filter)).toThrow(expect.objectContaining({ code: "INVALID" }));
  });
});

import { describe, expect, test } from "vitest";
import {
  MAX_FILTER_CONDITIONS,
  MAX_FILTER_DEPTH,
  MAX_FILTER_TEXT_LENGTH,
  MAX_FILTER_VALUES,
  MAX_JSON_STEPS,
  MAX_LINKS,
  MAX_PATTERN_LENGTH,
} from "../../src/filter/filter-limits.ts";
import { parseFilter } from "../../src/filter/parse.ts";
import type { FilterNode } from "../../src/filter/tree.ts";
import { SCHEMA } from "./filter-arbitrary.ts";

const ITEMS = SCHEMA.get("items")!;
const parse = (filter: unknown): FilterNode => parseFilter(filter, ITEMS, SCHEMA);
/** As it comes with a request, so that `__proto__` is an own key. */
const parseJson = (text: string): FilterNode => parse(JSON.parse(text));
const fault = (filter: unknown): string => {
  try {
    parse(filter);
  } catch (error) {
    expect(error).toMatchObject({ name: "LodestoneError", code: "INVALID" });
    return (error as Error).message;
  }
  throw new Error(`${JSON.stringify(filter)} was taken`);
};

describe("parseFilter", () => {
  test("accepts every form in the documents of the SDK and the old service", () => {
    for (const filter of [
      undefined,
      {},
      { title: "r2" },
      { title: { $is: "r2" } },
      { title: ["r1", "r2"] },
      { "settings.plan": "free" },
      { settings: { plan: "free", dark: true } },
      { "settings.plan": { $any: ["free", "paid"] } },
      { $any: { "settings.dark": true, "settings.plan": "free" } },
      { $any: [{ title: "r1" }, { title: "r2" }] },
      { $exists: "settings" },
      { $all: [{ $exists: "settings" }, { $exists: "title" }] },
      { $notExists: "settings" },
      { $existsNot: "title" },
      { title: { $contains: "value" } },
      { title: { $pattern: "v*alu?" } },
      { title: { $endsWith: ".gz" } },
      { count: { $ge: 0, $lt: 100 } },
      { sold: { $gt: "2019-10-12T07:20:50.52Z", $lt: "2021-10-12T07:20:50.52Z" } },
      { sold: { $gt: new Date() } },
      { $not: { title: "value1", count: 1 } },
      { $not: { $any: [{ title: "value1" }, { $all: [{ title: "value2" }, { count: 3 }] }] } },
      { $none: { title: "value1", "settings.plan": "value1" } },
      { title: { $isNot: "2019-10-12T07:20:50.52Z" } },
      { labels: { $includesAny: "value" } },
      { labels: { $includes: { $all: [{ $contains: "label" }, { $not: { $endsWith: "-debug" } }] } } },
      { labels: { $includesNone: [{ $contains: "label" }] } },
      { labels: { $includesAll: [{ $contains: "label" }] } },
      { "config->a->b": { $gt: 1 } },
      { config: { a: { b: "x" } } },
      { team: "rec_x" },
      { team: { id: "rec_x" } },
      { "team.org.name": { $iContains: "x" } },
      { team: { org: { name: "x" }, $exists: "size" } },
      { team: { $any: [{ name: "a" }, { name: "b" }, "rec_x"] } },
      { "xata.createdAt": { $gt: "2024-01-01T00:00:00Z" } },
      { xata: { version: { $ge: 1 } } },
    ]) {
      expect(() => parse(filter), JSON.stringify(filter)).not.toThrow();
    }
  });

  test("$includesAll requires an item for each of its conditions", () => {
    const any = (predicate: object) => ({ kind: "includes", quantifier: "any", predicate });
    expect(parse({ labels: { $includesAll: ["a", { $contains: "b" }] } })).toMatchObject({
      kind: "and",
      nodes: [any({ kind: "in", values: ["a"] }), any({ kind: "text", operand: "b" })],
    });
    expect(parse({ labels: { $includesAll: "a" } })).toMatchObject(any({ kind: "in", values: ["a"] }));
    expect(parse({ labels: { $includesAll: [] } })).toMatchObject({ kind: "constant", value: true });
  });

  test("merges conditions that belong together into one leaf", () => {
    expect(parse({ title: ["a", { $is: "b" }, "c"] })).toMatchObject({
      kind: "or",
      nodes: [
        { kind: "in", values: ["b"] },
        { kind: "in", values: ["a", "c"] },
      ],
    });
    expect(parse({ "team.id": "x" })).toEqual(parse({ team: { id: "x" } }));
    expect(parse({ "team.id": "x" })).toMatchObject({ kind: "in", column: { column: "team", table: "items", links: [] }, values: ["x"] });
    expect(parse({ $existsNot: "title" })).toEqual(parse({ $notExists: "title" }));
  });

  test("resolves a name to exactly the column it means", () => {
    const table = "items";
    const link = { table, column: "team", target: "teams" };
    const exists = (column: object) => ({ kind: "exists", column: { links: [], json: [], item: false, ...column } });
    expect(parse({ $exists: "xata.version" })).toEqual(exists({ text: "xata.version", table, column: "xata.version", kind: "int" }));
    expect(parse({ $exists: "id" })).toEqual(exists({ text: "id", table, column: "id", kind: "text" }));
    expect(parse({ $exists: "team.id" })).toEqual(exists({ text: "team.id", table, column: "team", kind: "text" }));
    expect(parse({ $exists: "team.xata.version" })).toEqual(
      exists({ text: "team.xata.version", links: [link], table: "teams", column: "xata.version", kind: "int" }),
    );
    expect(parse({ $exists: "config->a->b" })).toEqual(
      exists({ text: "config->a->b", table, column: "config", kind: "json", json: ["a", "b"] }),
    );
    // An object stands for its own columns and no others.
    expect(parse({ $exists: "settings" })).toEqual({
      kind: "or",
      nodes: [
        exists({ text: "settings.plan", table, column: "settings.plan", kind: "text" }),
        exists({ text: "settings.dark", table, column: "settings.dark", kind: "bool" }),
      ],
    });
    expect(fault({ "xata.version->a": 1 })).toContain('table "items" has no column "xata.version"');
    expect(fault({ "settings->a": 1 })).toContain('table "items" has no column "settings"');
  });

  test("clamps bounds of int columns to the range of int8", () => {
    expect(parse({ count: { $lt: 1.5 } })).toMatchObject({ kind: "range", operator: "le", value: 1n });
    expect(parse({ count: { $ge: -1.5 } })).toMatchObject({ kind: "range", operator: "ge", value: -1n });
    expect(parse({ count: { $gt: 1e300 } })).toMatchObject({ kind: "constant", value: false });
    expect(parse({ count: { $lt: 1e300 } })).toMatchObject({ kind: "constant", value: true });
    expect(parse({ count: "9007199254740993" })).toMatchObject({ kind: "in", values: [9007199254740993n] });
    expect(parse({ count: 1.5 })).toMatchObject({ kind: "constant", value: false });
  });

  test.each<[string, unknown, string]>([
    ["no object", "x", 'filter: expected an object of conditions, got "x"'],
    ["null", null, "filter: expected an object of conditions, got null"],
    [
      "a wrong type deep inside",
      { $any: [{ title: "x" }, { price: { $gt: "abc" } }] },
      'filter.$any[1].price.$gt: expected a number, got "abc"',
    ],
    [
      "an unknown column",
      { nope: 1 },
      'filter.nope: table "items" has no column "nope"; it has "id", "title", "settings.plan", "settings.dark", "count", "price", "sold", "labels", "config", "team", "parent"',
    ],
    [
      "an unknown column behind a link",
      { "team.nope": 1 },
      'filter.team.nope: table "teams" has no column "nope"; it has "id", "name", "size", "tags", "extra", "org"',
    ],
    [
      "an unknown column inside a link",
      { team: { nope: 1 } },
      'filter.team.nope: table "teams" has no column "nope"; it has "id", "name", "size", "tags", "extra", "org"',
    ],
    ["an unknown operator on a column", { title: { $like: "x" } }, 'filter.title.$like: unknown operator "$like"'],
    [
      "an unknown operator at the top",
      { $or: [] },
      'filter.$or: unknown operator "$or" here; expected a column name, $any, $all, $none, $not, $exists or $notExists (operators on a column go inside it: {column: {"$or": …}})',
    ],
    [
      "a value that is null",
      { title: null },
      'filter.title: null never equals anything; ask for records without a value by {"$notExists": column}',
    ],
    [
      "a null in a list",
      { title: ["a", null] },
      'filter.title[1]: null never equals anything; ask for records without a value by {"$notExists": column}',
    ],
    ["an empty condition", { title: {} }, "filter.title: expected a condition, got an empty object"],
    ["a number for text", { title: 5 }, "filter.title: expected a string, got 5"],
    ["a string for a bool", { "settings.dark": "true" }, 'filter.settings.dark: expected true or false, got "true"'],
    ["a string for a float", { price: "5" }, 'filter.price: expected a number, got "5"'],
    ["an infinite number", { price: Infinity }, "filter.price: expected a finite number, got Infinity"],
    ["text for an int", { count: { $is: [1, "x"] } }, 'filter.count.$is[1]: expected a number, got "x"'],
    [
      "a date that is none",
      { sold: "2023-02-29T00:00:00Z" },
      'filter.sold: expected a date and time in RFC 3339 form, like "2026-02-28T12:00:00Z", got "2023-02-29T00:00:00Z"',
    ],
    [
      "a range of booleans",
      { "settings.dark": { $gt: false } },
      'filter.settings.dark.$gt: column "settings.dark" is of type bool, which has no order',
    ],
    ["a range of arrays", { labels: { $gt: "a" } }, 'filter.labels.$gt: column "labels" is of type multiple, which has no order'],
    [
      "text operators on numbers",
      { count: { $contains: "1" } },
      'filter.count.$contains: column "count" is of type int; $contains is for text',
    ],
    [
      "text operators on arrays",
      { labels: { $contains: "1" } },
      'filter.labels.$contains: column "labels" is of type multiple; $contains is for text; write {"$includes": {"$contains": …}}',
    ],
    [
      "$includes on text",
      { title: { $includes: "x" } },
      'filter.title.$includes: column "title" is of type text; $includes is for columns of type multiple',
    ],
    [
      "$includes inside $includes",
      { labels: { $includes: { $includes: "x" } } },
      'filter.labels.$includes.$includes: column "labels" is an item of a multiple column; $includes is for columns of type multiple',
    ],
    [
      "a field of text",
      { title: { x: 1 } },
      'filter.title.x: column "title" is of type text, which has no member "x"; operators begin with $',
    ],
    ["a path into text", { "title.x": 1 }, 'filter.title.x: column "title" of table "items" is of type string, not a link'],
    [
      "a dotted path into json",
      { "config.a": 1 },
      'filter.config.a: column "config" of table "items" is of type json, not a link (paths into json are written "config->a")',
    ],
    ["an arrow into text", { "title->a": 1 }, 'filter.title->a: column "title" is of type string; only json columns have paths with "->"'],
    ["$exists of no name", { $exists: 5 }, "filter.$exists: expected the name of a column, got 5"],
    ["$exists of an unknown column", { $exists: "nope" }, /^filter\.\$exists: table "items" has no column "nope"/ as never],
    [
      "a pattern with a lone backslash",
      { title: { $pattern: "a\\" } },
      "filter.title.$pattern: the pattern ends in a single backslash; write two for a literal backslash",
    ],
    ["a NUL", { title: "a\0" }, "filter.title: the text contains a NUL character (\\u0000), which no stored text can have"],
    ["half a surrogate pair", { title: "\ud800" }, "filter.title: the text contains half of a surrogate pair; it is not valid Unicode"],
    [
      "a json object as a value",
      { config: { $is: { a: 1 } } },
      'filter.config.$is: expected a string, a number, true or false, got an object with "a"',
    ],
    ["a name that has to be quoted in the path", { "a b\n": 1 }, /^filter\["a b\\n"\]: table "items" has no column/ as never],
  ])("refuses %s with the path to the fault", (_, filter, message) => {
    expect(fault(filter)).toEqual((message as unknown) instanceof RegExp ? expect.stringMatching(message) : message);
  });

  test("treats __proto__ and other inherited names like any other name", () => {
    expect(() => parseJson('{"__proto__": 1}')).toThrow(/^filter\.__proto__: table "items" has no column "__proto__"/);
    expect(() => parseJson('{"constructor": {"$is": 1}}')).toThrow(/no column "constructor"/);
    expect(() => parseJson('{"title": {"__proto__": 1}}')).toThrow(/which has no member "__proto__"/);
    expect(() => parseJson('{"title": {"toString": 1}}')).toThrow(/which has no member "toString"/);
    expect(parseJson('{"config": {"__proto__": {"x": 1}}}')).toMatchObject({ kind: "in", column: { json: ["__proto__", "x"] } });
  });

  test("compares an int column with its least and greatest values, and beyond them with constants", () => {
    const [least, greatest] = [-(2n ** 63n), 2n ** 63n - 1n];
    for (const value of [least, greatest]) {
      expect(parse({ count: `${value}` })).toMatchObject({ kind: "in", values: [value] });
      for (const operator of ["$lt", "$le", "$gt", "$ge"])
        expect(parse({ count: { [operator]: `${value}` } })).toMatchObject({ kind: "range", operator: operator.slice(1), value });
    }
    expect(parse({ count: `${least - 1n}` })).toMatchObject({ kind: "constant", value: false });
    expect(parse({ count: `${greatest + 1n}` })).toMatchObject({ kind: "constant", value: false });
    expect(parse({ count: { $gt: `${least - 1n}` } })).toMatchObject({ kind: "constant", value: true });
    expect(parse({ count: { $gt: `${greatest + 1n}` } })).toMatchObject({ kind: "constant", value: false });
  });

  describe("limits", () => {
    const nestedNot = (levels: number) => Array.from({ length: levels }).reduce<object>((inner) => ({ $not: inner }), { title: "x" });

    test("depth", () => {
      expect(() => parse(nestedNot(MAX_FILTER_DEPTH / 2 - 1))).not.toThrow();
      expect(fault(nestedNot(MAX_FILTER_DEPTH + 1))).toMatch(new RegExp(`: nested more than ${MAX_FILTER_DEPTH} deep$`));
      expect(fault(nestedNot(5_000))).toMatch(/nested more than/);
      expect(fault({ title: Array.from({ length: 5_000 }).reduce<unknown>((inner) => [inner], "x") })).toMatch(/nested more than/);
      expect(fault({ config: Array.from({ length: 5_000 }).reduce<unknown>((inner) => ({ a: inner }), "x") })).toMatch(/nested more than/);
    });

    test("conditions", () => {
      const any = (count: number) => ({ $any: Array.from({ length: count }, () => ({ title: "x" })) });
      expect(() => parse(any(MAX_FILTER_CONDITIONS - 1))).not.toThrow();
      expect(fault(any(MAX_FILTER_CONDITIONS))).toBe(
        `filter.$any[${MAX_FILTER_CONDITIONS - 1}].title: more than ${MAX_FILTER_CONDITIONS} conditions in one filter`,
      );
    });

    test("values", () => {
      const list = (count: number) => ({ count: Array.from({ length: count }, (_, i) => i) });
      expect(() => parse(list(MAX_FILTER_VALUES))).not.toThrow();
      expect(fault(list(MAX_FILTER_VALUES + 1))).toBe(`filter.count: more than ${MAX_FILTER_VALUES} values in one filter`);
      // Of all lists together, and of single values.
      const half = MAX_FILTER_VALUES / 2;
      expect(() => parse({ $all: [list(half), list(half)] })).not.toThrow();
      expect(fault({ $all: [list(half), list(half), { price: 1 }] })).toMatch(/more than \d+ values in one filter$/);
      expect(fault({ $all: [list(half), list(half), { price: { $lt: 1 } }] })).toMatch(/more than \d+ values in one filter$/);
      expect(fault({ $all: [list(half), list(half), { title: { $contains: "x" } }] })).toMatch(/more than \d+ values in one filter$/);
    });

    test.each<[string, (inner: unknown) => unknown, unknown, (inner: unknown) => unknown]>([
      ["lists of expressions", (inner) => ({ $all: [inner] }), { title: "x" }, (filter) => filter],
      ["objects of expressions", (inner) => ({ $not: inner }), { title: "x" }, (filter) => filter],
      ["lists in a column", (inner) => ({ $all: [inner] }), "x", (condition) => ({ title: condition })],
      ["lists of alternatives in a column", (inner) => [inner], "x", (condition) => ({ title: condition })],
      ["objects in a column", (inner) => ({ $not: inner }), { $is: "x" }, (condition) => ({ title: condition })],
      ["json", (inner) => ({ $any: { a: inner } }), 1, (condition) => ({ config: condition })],
      ["links", (inner) => ({ $any: { parent: inner } }), { title: "x" }, (condition) => ({ parent: condition })],
    ])("nesting in %s", (_, wrap, innermost, whole) => {
      const nested = (depth: number) => whole(Array.from({ length: depth }).reduce<unknown>((inner) => wrap(inner), innermost));
      expect(fault(nested(10 * MAX_FILTER_DEPTH))).toMatch(/nested more than \d+ deep$|steps into json|follows more than/);
    });

    test("text and pattern length", () => {
      expect(() => parse({ title: "x".repeat(MAX_FILTER_TEXT_LENGTH) })).not.toThrow();
      expect(fault({ title: "x".repeat(MAX_FILTER_TEXT_LENGTH + 1) })).toMatch(
        /the text has 100001 characters; at most 100000 are allowed$/,
      );
      expect(() => parse({ title: { $pattern: "?".repeat(MAX_PATTERN_LENGTH) } })).not.toThrow();
      expect(fault({ title: { $pattern: "?".repeat(MAX_PATTERN_LENGTH + 1) } })).toMatch(
        /the pattern has 1001 characters; at most 1000 are allowed$/,
      );
    });

    test("links and steps into json", () => {
      const links = (count: number) => `${"parent.".repeat(count)}title`;
      expect(() => parse({ [links(MAX_LINKS)]: "x" })).not.toThrow();
      expect(fault({ [links(MAX_LINKS + 1)]: "x" })).toMatch(/the path follows more than 8 links$/);
      const nestedLinks = (count: number) => Array.from({ length: count }).reduce<object>((inner) => ({ parent: inner }), { title: "x" });
      expect(() => parse(nestedLinks(MAX_LINKS))).not.toThrow();
      expect(fault(nestedLinks(MAX_LINKS + 1))).toMatch(/the path follows more than 8 links$/);
      const steps = (count: number) => `config${"->a".repeat(count)}`;
      expect(() => parse({ [steps(MAX_JSON_STEPS)]: "x" })).not.toThrow();
      expect(fault({ [steps(MAX_JSON_STEPS + 1)]: "x" })).toMatch(/the path has 33 steps into json; at most 32 are allowed$/);
    });
  });
});

describe("a whole JSON value", () => {
  const document = (text: string) => parse({ config: text }) as { values?: unknown[] };

  test("is one operand, however it is written", () => {
    const canonical = document('{"b": [1, "x", null, {"d": true}], "a": 10}');
    expect(document('\n{"a":1e1,"b":[1.0,"\\u0078",null,{"d":true}],  "a" : 10.00}')).toEqual(canonical);
    const [operand] = canonical.values as { document: string }[];
    expect(JSON.parse(operand?.document ?? "")).toEqual({ a: 10, b: [1, "x", null, { d: true }] });
    expect(document('{"b": [1, "x", null, {"d": true}], "a": 11}')).not.toEqual(canonical);
    expect(document("[]")).not.toEqual(document("{}"));
    expect(document("[-0, 0.0]")).toEqual(document("[0, 0e5]"));
  });

  test("a text that only begins like JSON is a text", () => {
    expect(document("{not json").values).toEqual(["{not json"]);
    expect(document('"quoted"').values).toEqual(['"quoted"']);
  });

  test.each([
    ['["\\u0000"]', "NUL"],
    ['["\\ud800"]', "surrogate"],
    ["[1e400000]", "out of the range that can be compared"],
    [`${"[".repeat(101)}${"]".repeat(101)}`, "nested more than 100 deep"],
  ])("%s is refused", (text, message) => {
    expect(() => parse({ config: text })).toThrow(message);
  });

  test("a depth of 100 is allowed", () => {
    expect(() => parse({ config: `${"[".repeat(100)}${"]".repeat(100)}` })).not.toThrow();
  });
});

/** Array literals are read as PostgreSQL reads them: the same elements, and what it refuses is no array. */
import { PGlite } from "@electric-sql/pglite";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseItems, parseTextArray, readArray, readArrayInSteps } from "../../src/records/postgres-text.ts";
import { runs } from "../support/random-runs.ts";

const texts = (text: string) => readArray(text, (element) => element);

test.each([
  ["{}", []],
  ["{ }", []],
  ["{a,b}", ["a", "b"]],
  ['{"a, b","c \\"d\\"","e\\\\f",""}', ["a, b", 'c "d"', "e\\f", ""]],
  ['{NULL,"NULL",null,\\null}', [null, "NULL", null, "null"]],
  ["{ a , b c }", ["a", "b c"]],
  ["{\u00a0a,b\u00a0}", ["\u00a0a", "b\u00a0"]],
  ["{a\\ ,\\ b }", ["a ", " b"]],
  ['{"line\nbreak"}', ["line\nbreak"]],
  [
    "{{a,NULL},{b,c}}",
    [
      ["a", null],
      ["b", "c"],
    ],
  ],
  ["[0:1]={a,b}", ["a", "b"]],
  ["[-1:-1][2:3]={{a,b}}", [["a", "b"]]],
  ["{{{{{{a}}}}}}", [[[[[["a"]]]]]]],
  ["{{{{{{{a}}}}}}}", undefined],
  ["[0:1]=", undefined],
  ["{a", undefined],
  ["{a,}", undefined],
  ["{,a}", undefined],
  ["{a,,b}", undefined],
  ["{a},{b}", undefined],
  ['{"a}', undefined],
  ['{"a"b}', undefined],
  ['{a"b"}', undefined],
  ["{a{b}}", undefined],
  ["{\\", undefined],
  ['{"\\', undefined],
  ["a", undefined],
  ["", undefined],
])("the array %j", (text, elements) => {
  expect(texts(text)).toEqual(elements);
});

test("a list of texts has one dimension, with or without NULLs", () => {
  expect([parseTextArray("{a,b}"), parseTextArray("{a,NULL}"), parseTextArray("{{a},{b}}"), parseTextArray("{a")]).toEqual([
    ["a", "b"],
    undefined,
    undefined,
    undefined,
  ]);
  expect([parseItems("{a,NULL}"), parseItems("{{a},{b}}"), parseItems("{a")]).toEqual([["a"], undefined, undefined]);
});

test("a long array is read in steps, also within an element", () => {
  const long = "x".repeat(100_000);
  for (const text of [
    `{"${long}"}`,
    `{${long}}`,
    `{${"1,".repeat(50_000)}1}`,
    `{"${"\\\\".repeat(50_000)}"}`,
    `{${" ".repeat(100_000)}1}`,
  ]) {
    const steps = [...readArrayInSteps(text, (element) => element)];
    expect(Math.max(...steps)).toBeLessThan(20_000);
    expect(steps.length).toBeGreaterThan(4);
  }
});

describe("PostgreSQL agrees", () => {
  let database: PGlite;
  beforeAll(async () => {
    database = await PGlite.create();
  });
  afterAll(() => database.close());

  test("about the elements of any array that it writes", async () => {
    const characters = fc.constantFrom(..."aN\u00a0\u2003é", ..." \t\n\v\f", ...'{},"\\');
    const element = fc.option(fc.oneof(fc.string({ unit: characters, maxLength: 6 }), fc.constantFrom("NULL", "null", "Null", "")));
    const list = fc.array(element, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(list, fc.boolean(), async (elements, isNested) => {
        const value = isNested ? [elements, elements] : elements;
        const { rows } = await database.query<{ text: string }>("SELECT $1::text[]::text AS text", [value]);
        expect(texts(rows[0]!.text)).toEqual(value);
      }),
      { numRuns: runs(150) },
    );
  });

  test("about which texts are arrays, and what they hold", async () => {
    const text = fc.string({ unit: fc.constantFrom(...'aN\u00a0 {},"\\'), maxLength: 8 }).map((inner) => `{${inner}}`);
    await fc.assert(
      fc.asyncProperty(text, async (text) => {
        let json: unknown;
        try {
          json = (await database.query<{ json: unknown }>("SELECT array_to_json($1::text::text[]) AS json", [text])).rows[0]!.json;
        } catch (error) {
          // Of lists of different lengths it makes no array; what they hold is well formed.
          if (/dimension/i.test(`${error} ${(error as { detail?: string }).detail}`)) return;
          json = undefined;
        }
        // An array without elements has no dimensions.
        const read = texts(text);
        expect(JSON.stringify(read)?.replace(/[[\],]/g, "") === "" ? [] : read).toEqual(json);
      }),
      { numRuns: runs(300) },
    );
  });
});

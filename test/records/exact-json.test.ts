import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactJson, quoteInexactNumbers, readJson } from "../../src/records/exact-json.ts";
import { jsonPieces } from "../../src/records/json-pieces.ts";
import { runs } from "../support/random-runs.ts";

const written = (value: unknown): string => [...jsonPieces(value)].join("");

test.each([
  "1e999",
  "-1e999",
  "1e-999",
  "12345678901234567890",
  "9007199254740993",
  "0.1000000000000000055511151231257827",
  "123456789.123456789",
  '{"a": [1, {"b": 9007199254740993}]}',
  '{"a": "x\\"\\\\", "b": 1e400}',
])("%s is answered digit by digit", (text) => {
  const value = readJson(text);
  expect(value).toBeInstanceOf(ExactJson);
  expect(written({ rows: [[value, 1]], text })).toBe(`{"rows":[[${text},1]],"text":${JSON.stringify(text)}}`);
});

test.each([
  "0",
  "-0.0",
  "1.50",
  "1e3",
  "1E+2",
  "0.1",
  "9007199254740992",
  "1e22",
  "100000000000000000000",
  '"1e999 12345678901234567890"',
  "[]",
  '{"a\\"1e999": 1}',
])("%s is a value: JavaScript holds it exactly", (text) => {
  expect(readJson(text)).toEqual(JSON.parse(text));
});

test("what JSON.stringify writes is read as the same value, whatever the numbers", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(readJson(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(readJson(JSON.stringify(number))).toBe(JSON.parse(JSON.stringify(number)));
    }),
  );
});

test("the pieces equal the output of JSON.stringify, however deep and large", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const large = { a: value, text: "x".repeat(70_000), none: undefined, list: [value, undefined, [], {}], "": value };
      expect(written(large)).toBe(JSON.stringify(large));
    }),
    { numRuns: runs(50) },
  );
  const deep = `${'[{"a":'.repeat(50_000)}1${"}]".repeat(50_000)}`;
  expect(written({ deep: JSON.parse(deep) as unknown })).toBe(`{"deep":${deep}}`);
});

test.each([
  ['[1,-12345678901234567890,{"a":1e999}]', '[1,"-12345678901234567890",{"a":"1e999"}]'],
  ['{"a":"12345678901234567890 \\" 1e999","b":0.1}', '{"a":"12345678901234567890 \\" 1e999","b":0.1}'],
  ["9007199254740993", '"9007199254740993"'],
])("of %s only numbers that JavaScript does not hold become texts", (text, expected) => {
  expect(quoteInexactNumbers(text)).toBe(expected);
});

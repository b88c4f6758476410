import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_JSON_DOCUMENT_DEPTH } from "../../src/filter/filter-limits.ts";
import { canonicalJson, parseJsonDocument } from "../../src/filter/json-document.ts";

const place = { parent: null, step: "filter" };
const nested = (depth: number): string => `${"[".repeat(depth)}1${"]".repeat(depth)}`;

/** The JSON of a value with its members in another order, and with white space wherever it may stand. */
function written(value: unknown, space: string): string {
  const s = space;
  if (Array.isArray(value)) return `${s}[${s}${value.map((item) => written(item, s)).join(`${s},${s}`)}${s}]${s}`;
  if (typeof value !== "object" || value === null) return `${s}${JSON.stringify(value)}${s}`;
  const members = Object.entries(value).map(([name, item]) => `${s}${JSON.stringify(name)}${s}:${written(item, s)}`);
  return `${s}{${s}${members.reverse().join(",")}${s}}${s}`;
}

describe("a JSON document in a filter", () => {
  test("has one text, whatever the order of its members and the white space", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom("", " ", "\n\t\r "), (value, space) => {
        const text = canonicalJson(JSON.stringify(value));
        expect(canonicalJson(written(value, space))).toBe(text);
        expect(JSON.parse(text!)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test.each([
    ['{"b":1,"a":[true,false,null]}', '{"a":[true,false,null],"b":0.1e1}'],
    ['{"a":1,"a":2}', '{"a":0.2e1}'],
    ['["\\u0061\\/"]', '["a/"]'],
    ["[1.0,1,1e0]", "[0.1e1,0.1e1,0.1e1]"],
    ['{"":{}}', '{"":{}}'],
    ["[]", "[]"],
  ])("%s", (text, canonical) => {
    expect(canonicalJson(text)).toBe(canonical);
    expect(parseJsonDocument(text, place)).toEqual({ document: canonical });
  });

  test.each(["", "x", "1", '"[]"', "[1", "{a:1}", "true", "a [1]"])("%j is a text like any other", (text) => {
    expect(parseJsonDocument(text, place)).toBeUndefined();
  });

  test("is one after white space, too", () => {
    expect(parseJsonDocument(" \n[1]", place)).toEqual({ document: "[0.1e1]" });
  });

  test("is refused where no stored value could equal it", () => {
    const fault = (text: string) => expect(() => parseJsonDocument(text, place), text);
    fault('["a\\u0000"]').toThrow("a NUL character");
    fault('{"a\\u0000":1}').toThrow("a NUL character");
    fault("[1e1000]").toThrow("the number 1e1000 in the JSON is out of the range that can be compared");
    fault(`[1${"0".repeat(400)}]`).toThrow("out of the range that can be compared");
    fault(nested(MAX_JSON_DOCUMENT_DEPTH + 1)).toThrow(`nested more than ${MAX_JSON_DOCUMENT_DEPTH} deep`);
    expect(parseJsonDocument(nested(MAX_JSON_DOCUMENT_DEPTH), place)?.document).toContain("0.1e1");
    expect(canonicalJson(nested(MAX_JSON_DOCUMENT_DEPTH + 1))).toBeUndefined();
  });
});

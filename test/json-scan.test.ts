import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementsOf, endOfString, endOfValue, jsonDepth, membersOf, nextMark } from "../src/json-scan.ts";

/** Obvious code: character by character, with a flag for strings. */
function marksOf(text: string): number[] {
  const marks: number[] = [];
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    if (inString && text[i] === "\\") i++;
    else if (text[i] === '"') inString = !inString;
    else if (!inString && "[]{},:".includes(text[i]!)) marks.push(i);
  }
  return marks;
}

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

const texts = fc
  .tuple(fc.jsonValue({ depthSize: "medium" }), fc.constantFrom(undefined, 1, "\t"))
  .map(([value, indent]) => JSON.stringify(value, null, indent));

describe("scanning JSON", () => {
  it("finds every bracket, brace, comma and colon outside strings, wherever a slice begins", () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 20 }), (text, slice) => {
        const found: number[] = [];
        for (let at = 0; at < text.length; ) {
          const end = Math.min(at + slice, text.length);
          for (at = nextMark(text, at, end); at < end; at = nextMark(text, at + 1, end)) found.push(at);
        }
        expect(found).toEqual(marksOf(text));
      }),
    );
  });

  it("finds the end of a value, whatever follows it", () => {
    fc.assert(
      fc.property(texts, fc.constantFrom("", ",", "]", "}", " ,", "\n]"), (text, behind) => {
        expect(endOfValue(text + behind, 0)).toBe(text.length);
        expect(endOfValue(`[${text}${behind}`, 1)).toBe(1 + text.length);
      }),
    );
  });

  it("finds the end of a string after any number of backslashes", () => {
    for (let backslashes = 0; backslashes < 6; backslashes++) {
      const text = `"${"\\".repeat(backslashes)}""`;
      expect(endOfString(text, 0)).toBe(1 + backslashes + (backslashes % 2));
    }
    expect(endOfString('"never', 0)).toBe(6);
  });

  it("reports how deeply it is nested", () => {
    fc.assert(
      fc.property(fc.jsonValue({ depthSize: "medium" }), (value) => {
        expect(jsonDepth(JSON.stringify(value))).toBe(depthOf(value));
      }),
    );
    expect(jsonDepth('["[[[", {"a[": "\\"["}]')).toBe(2);
  });

  it("ends on text that is not JSON", () => {
    for (const text of ['"', '["', "[[[", "]]]", '{"a', '\\"']) {
      expect(endOfValue(text, 0)).toBeLessThanOrEqual(text.length + 1);
      expect(nextMark(text, 0, text.length)).toBeLessThanOrEqual(text.length + 1);
      jsonDepth(text);
    }
  });
});

describe("spans", () => {
  it("elementsOf and membersOf agree with JSON.parse", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value: unknown = JSON.parse(text);
        const parsed = ({ begin, end }: { begin: number; end: number }): unknown => JSON.parse(text.slice(begin, end));
        if (Array.isArray(value)) expect(Array.from(elementsOf(text, 0), parsed)).toEqual(value);
        else if (typeof value === "object" && value !== null) {
          const members = Array.from(membersOf(text, 0), ([key, span]) => [JSON.parse(`"${key}"`), parsed(span)]);
          expect(members).toEqual(Object.entries(JSON.parse(text) as object));
        }
      }),
    );
  });
});

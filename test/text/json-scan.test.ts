import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementsOf, endOfString, endOfValue, jsonDepth, MarkScan, membersOf } from "../../src/text/json-scan.ts";
import { runs } from "../support/random-runs.ts";

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
  it("finds every bracket, brace, comma and colon outside strings, wherever a slice begins and ends", () => {
    const escapes = fc
      .array(fc.constantFrom("\\", '"', "\\\\", '\\"', "a", "[", ","), { maxLength: 12 })
      .map((parts) => JSON.stringify([parts.join("")]));
    fc.assert(
      fc.property(fc.oneof(texts, escapes), fc.integer({ min: 1, max: 20 }), (text, slice) => {
        const found: number[] = [];
        const scan = new MarkScan(text);
        while (scan.position < text.length) {
          const end = Math.min(scan.position + slice, text.length);
          for (let at = scan.next(end); at !== undefined; at = scan.next(end)) {
            expect(at).toBeLessThan(end);
            found.push(at);
          }
          // Looks one character further at most, when that is escaped or ends a string.
          expect(scan.position - end).toBeOneOf([0, 1]);
        }
        expect(found).toEqual(marksOf(text));
      }),
      { numRuns: runs(1_000) },
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
      const scan = new MarkScan(text);
      while (scan.next(text.length) !== undefined);
      expect(scan.position).toBeLessThanOrEqual(text.length + 1);
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

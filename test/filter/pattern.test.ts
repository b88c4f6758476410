import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { likePattern, PatternMatcher, parsePattern } from "../../src/filter/pattern.ts";
import { ANY_CHARACTER, ANY_TEXT, type PatternPart } from "../../src/filter/tree.ts";
import { runs } from "../support/random-runs.ts";

const parts = (pattern: string): PatternPart[] => parsePattern(pattern, false, { parent: null, step: "filter" });
const matches = (pattern: string, text: string): boolean => new PatternMatcher(parts(pattern)).matches(text);

/** The definition: a star matches nothing, or a character and then a star. */
function slowMatch(pattern: readonly PatternPart[], text: readonly string[]): boolean {
  const [first, ...others] = pattern;
  if (first === undefined) return text.length === 0;
  if (first === ANY_TEXT) return slowMatch(others, text) || (text.length > 0 && slowMatch(pattern, text.slice(1)));
  if (first === ANY_CHARACTER) return text.length > 0 && slowMatch(others, text.slice(1));
  const literal = [...first];
  return literal.every((c, i) => text[i] === c) && slowMatch(others, text.slice(literal.length));
}

describe("$pattern", () => {
  test("has *, ? and escapes", () => {
    expect(matches("v*alu?", "value")).toBe(true);
    expect(matches("v*alu?", "vvvaalux")).toBe(true);
    expect(matches("v*alu?", "valu")).toBe(false);
    expect(matches("", "")).toBe(true);
    expect(matches("", "a")).toBe(false);
    expect(matches("*", "")).toBe(true);
    expect(matches("\\*\\?\\\\\\a", "*?\\a")).toBe(true);
    expect(matches("\\*", "x")).toBe(false);
    expect(matches("?", "😀")).toBe(true);
    expect(matches("??", "😀")).toBe(false);
    expect(matches("*?😁", "😀😁")).toBe(true);
  });

  test("is a LIKE pattern in SQL", () => {
    expect(likePattern(parts("50%_*?\\*\\\\"))).toBe("50\\%\\_%_*\\\\");
  });

  test("matches exactly its definition", () => {
    // Also the first and the last characters that take two units, and their neighbours that take one.
    const unit = fc.constantFrom("a", "b", "😀", "😁", "\u{10000}", "\u{10ffff}", "\ud7ff", "\ue000");
    fc.assert(
      fc.property(
        fc.array(fc.oneof(unit, fc.constantFrom("*", "?")), { maxLength: 8 }),
        fc.array(unit, { maxLength: 10 }),
        (pattern, text) => {
          expect(matches(pattern.join(""), text.join(""))).toBe(slowMatch(parts(pattern.join("")), text));
        },
      ),
      { numRuns: runs(5_000) },
    );
  });

  test("does not backtrack: a pattern of many stars over a long text takes linear time", () => {
    // With backtracking this would take 2^100 steps and more.
    expect(matches(`${"*a".repeat(400)}*b`, "a".repeat(100_000))).toBe(false);
    expect(matches(`${"*a?".repeat(300)}*b`, "a".repeat(20_000))).toBe(false);
  });
});

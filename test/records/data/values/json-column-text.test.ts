import fc from "fast-check";
import { expect, test } from "vitest";
import { isLongJson, jsonOf, longJsonOf } from "../../../../src/records/data/values/json-column-text.ts";
import { runs } from "../../../support/random-runs.ts";

const ESCAPED_NUL = "\\u0000";

test("in slices as in one go: the same text, the same fault", async () => {
  const padding = "x".repeat(300_000);
  const parts = fc.array(fc.oneof(fc.jsonValue(), fc.constantFrom(ESCAPED_NUL, "\u0000", "\\", '"', "[[", "\ud83d\ude00")));
  await fc.assert(
    fc.asyncProperty(parts, fc.boolean(), async (values, isText) => {
      const value = [padding, ...values, padding];
      const sent = isText ? JSON.stringify(value) : value;
      expect(await longJsonOf(sent)).toEqual(jsonOf(sent));
    }),
    { numRuns: runs(200) },
  );
});

test.each([0, 1, 2, 3, 4, 5, 6])("an escaped NUL is found where two steps meet: %i characters before it", (before) => {
  const text = `["${"x".repeat(64 * 1024 - 2 - before)}${ESCAPED_NUL}"]`;
  expect(jsonOf(text).fault).toBe("it holds the character U+0000, which jsonb cannot");
  expect(jsonOf(text.replace(ESCAPED_NUL, `\\${ESCAPED_NUL}`)).fault).toBeUndefined();
  expect(jsonOf(text.replace(ESCAPED_NUL, `\\\\${ESCAPED_NUL}`)).fault).toBe("it holds the character U+0000, which jsonb cannot");
});

test.each([64 * 1024, 128 * 1024])(
  "an escaped NUL is told from the six characters after some %i backslashes, wherever steps meet",
  (about) => {
    for (let before = 0; before < 3; before++) {
      for (let backslashes = about - 5; backslashes < about + 5; backslashes++) {
        const text = `["${"x".repeat(before)}${"\\".repeat(backslashes)}u0000"]`;
        expect(jsonOf(text).fault).toBe(backslashes % 2 === 0 ? undefined : "it holds the character U+0000, which jsonb cannot");
      }
    }
  },
);

test("the nesting of a long text is counted over all steps", async () => {
  const nested = (levels: number): string => `["${"x".repeat(300_000)}",${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}]`;
  expect((await longJsonOf(nested(128))).fault).toBeUndefined();
  expect((await longJsonOf(nested(129))).fault).toBe("it is nested deeper than 128 levels");
});

test.each([
  ["a list of lists", Array.from({ length: 1_000_000 }, () => [])],
  ["a text of lists", `[${"[],".repeat(3_000_000)}[]]`],
])("others run while %s is converted", async (_, sent) => {
  expect(isLongJson(sent)).toBe(true);
  let turns = 0;
  const ticking = setInterval(() => turns++, 0);
  await longJsonOf(sent);
  clearInterval(ticking);
  expect(turns).toBeGreaterThan(3);
});

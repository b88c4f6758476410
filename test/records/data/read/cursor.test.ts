import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Cursor, decodeCursor, encodeCursor } from "../../../../src/records/data/read/cursor.ts";
import type { JsonValue } from "../../../../src/records/requests.ts";

const CURSOR: Cursor = {
  table: 7,
  filter: { name: "x" },
  sort: ["name"],
  columns: ["*"],
  size: 20,
  seed: "abc-_9",
  first: ["a", null, "rec_1"],
  last: ["b", "2", "rec_2"],
};

/** A cursor with one of its eight parts replaced, or with more or fewer than eight parts. */
const withPart = (index: number, value: unknown): string => {
  const { table, filter, sort, columns, size, seed, first, last } = CURSOR;
  const parts: unknown[] = [table, filter, sort, columns, size, seed, first, last];
  parts[index] = value;
  return packed(parts);
};
const packed = (value: unknown): string => `1.${deflateSync(JSON.stringify(value)).toString("base64url")}`;

describe("a cursor", () => {
  test("is read as it was written, whatever the query", () => {
    const position = fc.option(fc.array(fc.option(fc.string().filter((text) => !text.includes("\0")))));
    const cursors = fc.record({
      table: fc.nat(),
      filter: fc.jsonValue() as fc.Arbitrary<JsonValue>,
      sort: fc.jsonValue() as fc.Arbitrary<JsonValue>,
      columns: fc.array(fc.string()),
      size: fc.nat(1000),
      seed: fc.stringMatching(/^[\w-]{0,32}$/),
      first: position,
      last: position,
    });
    fc.assert(
      fc.property(cursors, (cursor) => {
        const plain = JSON.parse(JSON.stringify(cursor));
        expect(decodeCursor(encodeCursor(plain), "page.after")).toEqual(plain);
      }),
    );
  });

  test("can be put into URLs and JSON without escaping", () => {
    expect(encodeCursor(CURSOR)).toMatch(/^1\.[\w-]+$/);
  });

  test.each([
    ["nothing", undefined],
    ["a number", 1],
    ["no text", ""],
    ["another version", encodeCursor(CURSOR).replace("1.", "2.")],
    ["no version", encodeCursor(CURSOR).slice(2)],
    ["the version alone", "1."],
    ["characters beyond base64url", `${encodeCursor(CURSOR)}=`],
    ["characters beyond base64url before it", encodeCursor(CURSOR).replace("1.", "1.=")],
    ["a space before it", ` ${encodeCursor(CURSOR)}`],
    ["a cut text", encodeCursor(CURSOR).slice(0, -4)],
    ["one character changed", encodeCursor(CURSOR).replace(/(?<=^.{30})./, (it) => (it === "A" ? "B" : "A"))],
    ["text that is not deflated", `1.${Buffer.from("[]").toString("base64url")}`],
    ["no JSON", `1.${deflateSync("nonsense").toString("base64url")}`],
    ["an object", packed({ length: 8 })],
    ["too few parts", packed([7])],
    ["too many parts", withPart(8, 1)],
    ["a table that is a text", withPart(0, "7")],
    ["columns that are a text", withPart(3, "*")],
    ["a size that is a text", withPart(4, "20")],
    ["a seed that is a number", withPart(5, 5)],
    ["a seed that would end a literal", withPart(5, "a'b")],
    ["a seed with a line end", withPart(5, "ab\n")],
    ["a seed of 33 characters", withPart(5, "x".repeat(33))],
    ["a first record that is a text", withPart(6, "a")],
    ["a last record that is a text", withPart(7, "a")],
    ["a value that is a number", withPart(6, ["a", 1])],
    ["a value with NUL", withPart(7, ["a\0b"])],
    ["more than 4 MiB", withPart(1, "x".repeat(4 * 2 ** 20))],
  ])("is refused when it is %s", (_, text) => {
    expect(() => decodeCursor(text, "page.after")).toThrow(
      expect.objectContaining({ code: "INVALID", message: expect.stringMatching(/^page\.after is .*, which is not a cursor; send/s) }),
    );
  });

  test("has a seed of up to 32 characters", () => {
    const seed = "x".repeat(32);
    expect(decodeCursor(withPart(5, seed), "page.after")).toEqual({ ...CURSOR, seed });
    expect(decodeCursor(withPart(5, ""), "page.after")).toEqual({ ...CURSOR, seed: "" });
  });
});

/** JSON as plain text: what the index of words reads of a json column. */
import { expect, test } from "vitest";
import { readableJson } from "../../src/search/text/table-texts.ts";

test("escapes become the characters they stand for, control characters a space", () => {
  expect(readableJson('{"a":"no escape"}')).toBe('{"a":"no escape"}');
  expect(readableJson(JSON.stringify({ 'k"ey': 'a\nb\\c "d" \t\b\f\r' }))).toBe('{"k"ey":"a b\\c "d"     "}');
  expect(readableJson('"\\/"')).toBe('"/"');
  expect(readableJson('"\\u00e9\\u00E9\\u20ac\\ud83d\\ude00 \\u0001é😀"')).toBe('"éé€😀 \u0001é😀"');
  expect(readableJson('"\\\\u0041\\\\\\u0041"')).toBe('"\\u0041\\A"');
});

test("of each character, escaped in each way", () => {
  for (let code = 1; code < 0x1_0000; code++) {
    const letter = String.fromCharCode(code);
    const hex = code.toString(16).padStart(4, "0");
    expect(readableJson(`"x\\u${hex}y\\u${hex.toUpperCase()}"`)).toBe(`"x${letter}y${letter}"`);
  }
});

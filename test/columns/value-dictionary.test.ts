import { expect, test } from "vitest";
import { ValueDictionary } from "../../src/columns/text-columns.ts";

test("a dictionary continues beyond the size limit of a Map", () => {
  const dictionary = new ValueDictionary(4);
  const codes = Array.from({ length: 19 }, (_, n) => dictionary.acquire(`value ${n}`));
  expect(new Set(codes).size).toBe(19);
  for (let n = 0; n < 19; n++) expect(dictionary.acquire(`value ${n}`)).toBe(codes[n]);
  for (let n = 0; n < 19; n += 2) {
    dictionary.release(codes[n]!);
    dictionary.release(codes[n]!);
  }
  for (let n = 0; n < 19; n++) expect(dictionary.codeOf(`value ${n}`)).toBe(n % 2 === 0 ? undefined : codes[n]);
  const again = dictionary.acquire("value 0");
  expect(dictionary.values[again]).toBe("value 0");
  expect(dictionary.values.length).toBe(19);
});

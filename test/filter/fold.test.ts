import { PGlite } from "@electric-sql/pglite";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fold, foldFunctionSql } from "../../src/filter/fold.ts";
import { runs } from "../support/random-runs.ts";

describe("fold", () => {
  let database: PGlite;
  beforeAll(async () => {
    database = await PGlite.create();
    await database.exec(`CREATE SCHEMA lodestone; ${foldFunctionSql()}`);
  });
  afterAll(() => database.close());

  const foldInSql = async (texts: string[]): Promise<string[]> => {
    const { rows } = await database.query<{ folded: string }>(
      "SELECT lodestone.fold(t) AS folded FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n",
      [texts],
    );
    return rows.map((row) => row.folded);
  };

  test("lowers ASCII, Latin, Greek, Cyrillic and letters beyond the BMP", () => {
    expect(fold("ABCxyz 123")).toBe("abcxyz 123");
    expect(fold("ÄÖÜ ΣΟΦΟΣ ЖУК \u{10400}")).toBe("äöü σοφοσ жук \u{10428}");
  });

  test("never changes the number of code points, not even for the dotted capital I", () => {
    expect(fold("\u0130x")).toBe("\u0130x");
  });

  test("is the same for a character in any context", () => {
    const character = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
    const letter = fc.oneof(character, fc.constantFrom(..."ΣσςİIıAÅÄß\u{10400}\u0307"));
    fc.assert(
      fc.property(fc.array(letter, { maxLength: 6 }), (letters) => {
        expect(fold(letters.join(""))).toBe(letters.map(fold).join(""));
      }),
      { numRuns: runs(5_000) },
    );
  });

  test("agrees with SQL for every code point", async () => {
    const texts: string[] = [];
    for (let start = 1; start < 0x20000; start += 256) {
      let text = "";
      for (let code = start; code < start + 256; code++) if (code < 0xd800 || code > 0xdfff) text += String.fromCodePoint(code);
      if (text !== "") texts.push(text);
    }
    expect(await foldInSql(texts)).toEqual(texts.map(fold));
  });

  test("agrees with SQL for random texts, and null stays null", async () => {
    const character = fc.oneof(
      fc.constantFrom(..."aAzZäÄßẞİıσςΣжЖ\u{10400}\u{1f600}K中"),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }).filter((c) => c !== "\0"),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.array(character, { maxLength: 12 }).map((c) => c.join("")),
          { maxLength: 50 },
        ),
        async (texts) => {
          expect(await foldInSql(texts)).toEqual(texts.map(fold));
        },
      ),
      { numRuns: runs(50) },
    );
    expect((await database.query("SELECT lodestone.fold(NULL) AS folded")).rows).toEqual([{ folded: null }]);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { highlight } from "../../src/full-text/highlight.ts";
import { hasPhrase, parseQuery, queryTerms } from "../../src/full-text/query.ts";
import { loadStemmer } from "../../src/full-text/stemmers.ts";
import { editDistance, matchQuality, type Term, TermMatcher, withStem } from "../../src/full-text/terms.ts";
import { plain, visitWords, wordsOf } from "../../src/full-text/words.ts";
import { LANGUAGES } from "../../src/text/languages.ts";
import { Slices } from "../../src/threads/event-loop.ts";
import { turnsDuring } from "../support/event-loop.ts";
import { runs } from "../support/random-runs.ts";

const termsOf = (query: string, fuzziness: number, prefix: boolean): Term[] =>
  queryTerms(parseQuery(query, "words"), { fuzziness, prefix });

describe("words", () => {
  test("are runs of letters, digits and marks, compared without case and accents", () => {
    expect(wordsOf("Crème brûlée, x2—ÄÖÜ ﬁn").map((word) => word.plain)).toEqual(["creme", "brulee", "x2", "aou", "fin"]);
    expect(wordsOf("a👀b").map(({ start, end }) => [start, end])).toEqual([
      [0, 1],
      [3, 4],
    ]);
    expect(plain("İSTANBUL")).toBe(plain("i̇stanbul"));
  });

  test("have as distance the number of edits, transposed neighbours being one", () => {
    const word = fc.stringMatching(/^[abc]{0,6}$/);
    fc.assert(
      fc.property(word, word, fc.integer({ min: 0, max: 7 }), (a, b, limit) => {
        const exact = (i: number, j: number): number => {
          if (i === 0 || j === 0) return i + j;
          const transposed = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? exact(i - 2, j - 2) + 1 : 99;
          return Math.min(exact(i - 1, j) + 1, exact(i, j - 1) + 1, exact(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1), transposed);
        };
        const distance = exact(a.length, b.length);
        const got = editDistance(a, b, limit);
        if (distance <= limit) expect(got).toBe(distance);
        else expect(got).toBeGreaterThan(limit);
      }),
      { numRuns: runs(200) },
    );
  });

  test("match together as one by one", () => {
    const word = fc.stringMatching(/^[a-dA-D\u00e4\u0430-\u0433]{1,9}$/);
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 6 }),
        word,
        fc.integer({ min: 0, max: 2 }),
        fc.boolean(),
        fc.constantFrom(undefined, (whole: string) => whole.slice(0, 3)),
        (query, text, fuzziness, prefix, stemmer) => {
          const terms = termsOf(query.join(" "), fuzziness, prefix);
          const [other] = wordsOf(text);
          const matcher = new TermMatcher(terms, stemmer);
          const expected = terms.some((term) => matchQuality(withStem(term, stemmer), other!.plain, stemmer) > 0);
          for (const _ of ["computed", "remembered"]) expect(matcher.matches(other!)).toBe(expected);
        },
      ),
      { numRuns: runs(1_000) },
    );
  });

  test("are the same for an index, which takes a shorter way, as one by one", () => {
    const piece = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 12 }),
      fc.constantFrom("Don't stop", "x2—y", "北京 烤鸭", "ﬁn", "\t\n", "a".repeat(300)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const text = pieces.join(" ");
        const visited: string[] = [];
        for (const _ of visitWords(text, (word) => visited.push(word)));
        expect(visited).toEqual(wordsOf(text).map((word) => word.plain));
      }),
      { numRuns: runs(1_000) },
    );
  });

  test("of scripts without spaces are overlapping pairs of characters", () => {
    const plains = (text: string): string[] => wordsOf(text).map((word) => word.plain);
    expect(plains("我喜欢北京烤鸭")).toEqual(["我喜", "喜欢", "欢北", "北京", "京烤", "烤鸭"]);
    expect(plains("京 iPhone手机x")).toEqual(["京", "iphone", "手机", "x"]);
    expect(plains("ラーメン")).toEqual(["ラー", "ーメ", "メン"]);
    expect(plains("ก็ดี")).toEqual(["ก็ดี"]);
    expect(plains("𠮷野家")).toEqual(["𠮷野", "野家"]);
    // Across windows, too.
    const long = "北".repeat(65_530) + "京烤鸭店的厨师".repeat(10);
    expect(wordsOf(long)).toHaveLength(long.length - 1);
  });

  test("are without what is left out or written otherwise by hand", () => {
    expect(["Øre", "Łódź", "Straße", "Æther", "ılık", "Œuvre", "Đà"].map(plain)).toEqual([
      "ore",
      "lodz",
      "strasse",
      "aether",
      "ilik",
      "oeuvre",
      "da",
    ]);
  });

  test("have the same stem in the language of the query", async () => {
    const stemmer = await loadStemmer("english");
    const [plain, ...rest] = queryTerms(parseQuery('connections "kings"', "websearch"), { fuzziness: 1, prefix: false });
    const term = withStem(plain!, stemmer);
    const qualities = (words: string[]) => words.map((word) => matchQuality(term, word, stemmer));
    // Beside stems, edits count for less than without.
    expect(qualities(["connections", "connected", "connexions", "connectoins", "king"])).toEqual([10, 8, 0, 5, 0]);
    expect(matchQuality(plain!, "connectoins")).toBe(6);
    // Quoted words are looked for as they are.
    expect(rest.map((word) => withStem(word, stemmer).stem)).toEqual([undefined]);
    for (const language of LANGUAGES) expect((await loadStemmer(language))("word")).toEqual(expect.any(String));
  });

  test("and phrases are told apart in the syntax of web searches, and only there", () => {
    expect(parseQuery('big "red barn" -blue -"old cow" e-mail "', "websearch")).toEqual({
      words: ["big", "red", "barn", "e", "mail"],
      last: "mail",
      required: [["red", "barn"]],
      excluded: [["blue"], ["old", "cow"]],
    });
    expect(parseQuery("a-b -c", "words")).toEqual({ words: ["a", "b", "c"], last: "c", required: [], excluded: [] });
    const has = (text: string, phrase: string): boolean => {
      const work = hasPhrase(
        text,
        wordsOf(phrase).map((word) => word.plain),
      );
      let step = work.next();
      while (step.done !== true) step = work.next();
      return step.value;
    };
    expect([has("a red, RED barn", "red barn"), has("red old barn", "red barn"), has("我喜欢北京烤鸭", "北京烤")]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test("are found across the windows in which a long text is read", () => {
    for (const gap of [65_530, 65_533, 65_536, 131_070]) {
      const text = `${" ".repeat(gap)}crème👀${"x".repeat(200_000)} end`;
      expect(wordsOf(text).map(({ start, end, plain }) => [text.slice(start, end).length, plain.slice(0, 6)])).toEqual([
        [5, "creme"],
        [200_000, "xxxxxx"],
        [3, "end"],
      ]);
    }
  });

  test("that are too short to be recognised with a changed letter must match exactly", () => {
    expect(termsOf("a ab abc abcde", 2, false).map((term) => term.distance)).toEqual([0, 0, 1, 2]);
  });
});

describe("highlights", () => {
  const marked = (text: string, terms: readonly Term[]) => highlight(text, new TermMatcher(terms), true, new Slices());

  test("mark the words in the original text, and encode the text around them", async () => {
    const terms = termsOf("creme", 0, false);
    expect(await marked("<Crème> & crèmes", terms)).toEqual(["&lt;<em>Crème</em>&gt; &amp; crèmes"]);
    expect(await marked("nothing", terms)).toEqual([]);
  });

  test("of a long text are excerpts around the matches", async () => {
    const text = `${"lorem ipsum ".repeat(50)}NEEDLE ${"dolor sit ".repeat(50)}needle end`;
    const fragments = await marked(text, termsOf("needle", 0, false));
    expect(fragments).toHaveLength(2);
    expect(fragments[0]).toContain("<em>NEEDLE</em>");
    expect(fragments[1]).toMatch(/<em>needle<\/em> end$/);
    for (const fragment of fragments) expect(fragment.length).toBeLessThan(220);
  });

  test("of a text without spaces mark overlapping pairs as one, and are no longer than others", async () => {
    expect(await marked("我喜欢北京烤鸭", termsOf("北京烤", 0, false))).toEqual(["我喜欢<em>北京烤</em>鸭"]);
    const [fragment] = await marked(`${"长".repeat(500)}北京${"文".repeat(500)}`, termsOf("北京", 0, false));
    expect(fragment).toContain("<em>北京</em>");
    expect(fragment!.length).toBeLessThan(220);
  });

  test("of megabytes are marked in slices, between which others are served", async () => {
    const text = `${" ".repeat(8_000_000)}thirty`;
    expect(await turnsDuring(() => marked(text, termsOf("thirty", 0, false)))).toBeGreaterThan(10);
  });
});

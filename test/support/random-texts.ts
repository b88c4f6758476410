/** Texts and queries for random tests: few words, so that they meet, in several scripts. */
import fc from "fast-check";
import type { Stemmer } from "../../src/full-text/terms.ts";

const withoutEnding: Stemmer = (word) => word.replace(/(s|ed)$/, "");
const firstLetters: Stemmer = (word) => word.slice(0, 3);

const word = fc.oneof(
  fc.stringMatching(/^[ab]{1,5}(s|ed)?$/),
  fc.constantFrom("the", "garden", "gardens", "Crème", "北京", "烤", "北京烤鸭", "서울", "สวัสดี"),
);
const text = fc.array(word, { maxLength: 8 }).map((words) => words.join(" "));

export const someTexts = fc.record({ title: fc.option(text), tags: fc.option(fc.array(fc.option(text), { maxLength: 2 })) });

export const someQuery = fc.record({
  query: fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(" ")),
  fuzziness: fc.integer({ min: 0, max: 2 }),
  prefix: fc.boolean(),
  /** Of all columns, and of one that has its own. */
  stemmers: fc.tuple(fc.constantFrom(undefined, withoutEnding), fc.constantFrom(undefined, firstLetters)),
  weights: fc.tuple(fc.constantFrom(1, 3), fc.constantFrom(1, 2.5)),
});

/**
 * Features that the retired service had and Lodestone does not: their paths answer with a sentence that says so,
 * not just with "not found".
 */

const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [
    /^\/db\/[^/]+\/tables\/[^/]+\/ask(\/[^/]*)?$/,
    "Questions to a language model (ask) are not part of Lodestone. Use search or vectorSearch, and put the results into a prompt of your own.",
  ],
  [
    /^\/db\/[^/]+\/tables\/[^/]+\/data\/[^/]+\/column\/[^/]+\/file(\/[^/]*)?$/,
    "File columns are not part of Lodestone. Keep files in an object store, and their addresses in a string column.",
  ],
  [/^\/file\/[^/]+$/, "File columns are not part of Lodestone. Keep files in an object store, and their addresses in a string column."],
];

/** undefined for every other path. */
export function notOffered(path: string): string | undefined {
  return SENTENCES.find(([pattern]) => pattern.test(path))?.[1];
}

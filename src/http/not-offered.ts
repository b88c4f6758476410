/**
 * What the retired service had and Lodestone does not: its addresses answer with a sentence that says so, not
 * only with "not found".
 */

const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [
    /^\/db\/[^/]+\/tables\/[^/]+\/ask(\/[^/]*)?$/,
    "Questions to a language model (ask) are not part of Lodestone. Search with search or vectorSearch, and put what they find into a prompt of your own.",
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

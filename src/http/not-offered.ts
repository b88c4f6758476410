/** What the retired service had and Lodestone has not: its addresses answer with a sentence that says so, not just that they do not exist. */

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

/**
 * Orama's vector search, which scores every document. `similarity: 0` is in its favour: it never sorts the
 * half of the rows that point away from the query. With −1, the only value that is exact for any data, it
 * would sort them all.
 */
import { create, insert, searchVector } from "@orama/orama";

export async function open({ dimension }) {
  const database = await create({ schema: { embedding: `vector[${dimension}]` } });
  return {
    async add(firstRow, matrix) {
      for (let i = 0; i * dimension < matrix.length; i++)
        await insert(database, { id: String(firstRow + i), embedding: Array.from(matrix.subarray(i * dimension, (i + 1) * dimension)) });
    },
    prepare: (vector) => vector,
    search: (query, k) => searchVector(database, { vector: { value: query, property: "embedding" }, similarity: 0, limit: k }),
    answerOf: ({ hits }) => ({ rows: hits.map(({ id }) => Number(id)) }),
  };
}

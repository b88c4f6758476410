/**
 * DuckDB, in memory, one thread: FLOAT[dimension] and array_cosine_distance, which is a full scan with a
 * top-n.
 */
import { ARRAY, arrayValue, DuckDBDataChunk, DuckDBInstance, FLOAT, INTEGER } from "@duckdb/node-api";

/** Rows of one data chunk at most (DuckDB's vector size). */
const CHUNK_ROWS = 2048;

export async function open({ dimension }) {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  const type = ARRAY(FLOAT, dimension);
  await connection.run(`CREATE TABLE items (id INTEGER, embedding FLOAT[${dimension}])`);
  const select = await connection.prepare(
    `SELECT id FROM items ORDER BY array_cosine_distance(embedding, $1::FLOAT[${dimension}]) LIMIT $2`,
  );
  return {
    async add(firstRow, matrix) {
      const appender = await connection.createAppender("items");
      const rows = matrix.length / dimension;
      for (let from = 0; from < rows; from += CHUNK_ROWS) {
        const length = Math.min(CHUNK_ROWS, rows - from);
        const chunk = DuckDBDataChunk.create([INTEGER, type], length);
        const rowsOfChunk = Array.from({ length }, (_, i) => from + i);
        chunk.setColumnValues(
          0,
          rowsOfChunk.map((row) => firstRow + row),
        );
        chunk.setColumnValues(
          1,
          rowsOfChunk.map((row) => arrayValue(matrix.subarray(row * dimension, (row + 1) * dimension))),
        );
        appender.appendDataChunk(chunk);
      }
      appender.closeSync();
    },
    prepare: (vector) => arrayValue(Array.from(vector)),
    search(query, k) {
      select.bindArray(1, query, type);
      select.bindInteger(2, k);
      return select.runAndReadAll();
    },
    answerOf: (reader) => ({ rows: reader.getRows().map(([id]) => id) }),
  };
}

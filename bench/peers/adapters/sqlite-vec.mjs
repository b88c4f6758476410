/**
 * sqlite-vec: a vec0 table in an in-memory SQLite of better-sqlite3 (Node 20 has no node:sqlite), searched
 * with MATCH, which scans every row.
 */
import Database from "better-sqlite3";
import { getLoadablePath } from "sqlite-vec";

export function open({ dimension }) {
  const database = new Database(":memory:");
  database.loadExtension(getLoadablePath());
  database.exec(`CREATE VIRTUAL TABLE items USING vec0(embedding float[${dimension}] distance_metric=cosine)`);
  const insert = database.prepare("INSERT INTO items (rowid, embedding) VALUES (?, ?)");
  const select = database.prepare("SELECT rowid FROM items WHERE embedding MATCH ? AND k = ? ORDER BY distance").pluck();
  return {
    add: database.transaction((firstRow, matrix) => {
      for (let i = 0; i * dimension < matrix.length; i++)
        insert.run(BigInt(firstRow + i), matrix.subarray(i * dimension, (i + 1) * dimension));
    }),
    prepare: (vector) => vector,
    search: (query, k) => select.all(query, k),
    answerOf: (rows) => ({ rows }),
  };
}

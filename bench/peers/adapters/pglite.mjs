/**
 * PGlite (PostgreSQL as WebAssembly) with pgvector, on disk (in the page cache when it is searched).
 * `memory://` moves the whole file as it grows: 100,000 rows did not load within two minutes, and searching
 * was 1.5 times slower. STORAGE PLAIN keeps the vectors in line with their rows, which is the faster way (out
 * of line, pgvector's default at 768 dimensions, each row is fetched from the TOAST table). Rows are loaded
 * by binary COPY.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";

const COPY_HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");

/**
 * Rows (int4, vector) in the format of COPY … (FORMAT binary); vector is int16 dimension, int16 unused,
 * float4[dimension].
 */
function copyBytes(firstRow, matrix, dimension) {
  const rows = matrix.length / dimension;
  const bytes = Buffer.alloc(COPY_HEADER.length + rows * (2 + 8 + 4 + 4 + dimension * 4) + 2);
  let at = COPY_HEADER.copy(bytes);
  for (let i = 0; i < rows; i++) {
    at = bytes.writeInt16BE(2, at);
    at = bytes.writeInt32BE(4, at);
    at = bytes.writeInt32BE(firstRow + i, at);
    at = bytes.writeInt32BE(4 + dimension * 4, at);
    at = bytes.writeInt32BE(dimension << 16, at);
    for (let j = 0; j < dimension; j++) at = bytes.writeFloatBE(matrix[i * dimension + j], at);
  }
  bytes.writeInt16BE(-1, at);
  return bytes;
}

export async function open({ dimension }) {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-pglite-"));
  const database = await PGlite.create({ dataDir: directory, extensions: { vector } });
  await database.exec(`
    CREATE EXTENSION vector;
    CREATE TABLE items (id int4, embedding vector(${dimension}));
    ALTER TABLE items ALTER COLUMN embedding SET STORAGE PLAIN;
    SET max_parallel_workers_per_gather = 0;`);
  return {
    add: (firstRow, matrix) =>
      database.query("COPY items FROM '/dev/blob' (FORMAT binary)", [], { blob: new Blob([copyBytes(firstRow, matrix, dimension)]) }),
    prepare: (query) => JSON.stringify(Array.from(query)),
    search: (query, k) => database.query("SELECT id FROM items ORDER BY embedding <=> $1 LIMIT $2", [query, k]),
    answerOf: ({ rows }) => ({ rows: rows.map(({ id }) => id) }),
    versions: async () => {
      const { rows } = await database.query("SELECT extversion FROM pg_extension WHERE extname = 'vector'");
      return { pgvector: rows[0].extversion };
    },
    async stop() {
      await database.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

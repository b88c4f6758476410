/**
 * A table of many vectors. Each is a window of one long list of numbers that every statement contains: a
 * hundred thousand vectors of 384 numbers take seconds, where as many numbers in JSON take minutes.
 */
import { seededRandom } from "../../bench/data.mjs";
import { until } from "./patience.ts";
import type { TestServer } from "./server.ts";

/** The embedded database gives a statement ten seconds. */
const CHUNK_ROWS = 5_000;

export interface VectorTable {
  readonly rows: number;
  readonly idOf: (row: number) => string;
  readonly vectorOf: (row: number) => Float32Array;
}

/**
 * Creates the branch `many:main` and in it the table `t`: `n`, the row's number, and the vector `v`. The
 * directions are of all kinds. Resolves when searches see all rows.
 */
export async function createVectorTable(server: TestServer, rows: number, dimension: number): Promise<VectorTable> {
  const random = seededRandom(1);
  const numbers = Float32Array.from({ length: rows + dimension }, () => Math.round((random() + random() + random() - 1.5) * 1e4) / 1e4);
  await server.put("/db/many:main");
  const columns = [
    { name: "n", type: "int" },
    { name: "v", type: "vector", vector: { dimension } },
  ];
  await expectOk(server.put("/db/many:main/tables/t", { columns }));
  for (let from = 0; from < rows; from += CHUNK_ROWS) {
    const to = Math.min(rows, from + CHUNK_ROWS);
    const list = `{${numbers.subarray(from, to + dimension).join(",")}}`;
    const statement = `WITH list AS (SELECT $1::real[] AS a)
      INSERT INTO "t" ("id", "n", "v") SELECT 'r' || lpad((n + $2::int)::text, 6, '0'), n + $2::int, a[n + 1 : n + $3::int]
      FROM list, generate_series(0, $4::int) n`;
    await expectOk(server.post("/db/many:main/sql", { statement, params: [list, from, dimension, to - from - 1] }));
  }
  await until(`searches see all of the ${rows} vectors`, async () => (await server.get("/readyz")).body.rows === rows, 100);
  return {
    rows,
    idOf: (row) => `r${String(row).padStart(6, "0")}`,
    vectorOf: (row) => numbers.subarray(row, row + dimension),
  };
}

async function expectOk(answered: ReturnType<TestServer["post"]>): Promise<void> {
  const { status, text } = await answered;
  if (status >= 300) throw new Error(text);
}

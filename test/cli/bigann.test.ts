import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { runCommand, startServer, type TestServer } from "../support/server.ts";

/**
 * Real vectors with published neighbours: 10,000 of 128 dimensions, loaded by import and by bulk, then all
 * 100 queries over HTTP.
 */

const DIMENSION = 128;

function readVecs(path: string, elementBytes: 1 | 4): number[][] {
  const bytes = readFileSync(path);
  const rows: number[][] = [];
  for (let at = 0; at < bytes.length; ) {
    const dimension = bytes.readInt32LE(at);
    at += 4;
    rows.push(Array.from({ length: dimension }, (_, i) => (elementBytes === 1 ? bytes.readUInt8(at + i) : bytes.readInt32LE(at + 4 * i))));
    at += dimension * elementBytes;
  }
  return rows;
}

describeWith("bigann10k", "bigann10k over HTTP", (path) => {
  let server: TestServer;
  let base: number[][];
  let queries: number[][];
  let neighbours: number[][];
  const folder = mkdtempSync(join(tmpdir(), "lodestone-bigann-"));

  beforeAll(async () => {
    base = readVecs(`${path}base.bvecs`, 1);
    queries = readVecs(`${path}query.bvecs`, 1);
    neighbours = readVecs(`${path}groundtruth.ivecs`, 4);
    server = await startServer();
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Checks the neighbours. `rowOf` returns the row number that a result's id stands for. */
  async function checkNeighbours(table: string, rowOf: (id: string) => number): Promise<void> {
    const distance = (query: number[], row: number) => query.reduce((sum, q, i) => sum + (q - (base[row]?.[i] as number)) ** 2, 0);
    for (const [q, query] of queries.entries()) {
      const { status, body } = await server.post(`/db/bigann:main/tables/${table}/vectorSearch`, {
        column: "v",
        queryVector: query,
        similarityFunction: "l2",
        size: 100,
        consistency: "strong",
      });
      expect(status).toBe(200);
      expect(body.totalCount).toBe(base.length);
      const rows = body.results.map(({ id }: { id: string }) => rowOf(id));
      const published = (neighbours[q] as number[]).slice(0, 100);
      // Neighbours at equal distance may change places, so the distances are compared with the published
      // ones, place by place.
      expect(rows.map((row: number) => distance(query, row))).toEqual(published.map((row) => distance(query, row)));
      expect(new Set(rows).size).toBe(100);
      for (const [i, { score }] of body.results.entries()) expect(score).toBe(1 / (1 + distance(query, rows[i])));
    }
  }

  it("is loaded by import, and every query finds the published neighbours", async () => {
    const state = join(folder, "state.json");
    const args = [
      "import",
      `${path}base.bvecs`,
      "bigann:main/imported",
      "--create",
      "--vector-column",
      "v",
      "--state",
      state,
      "--url",
      server.url,
    ];
    expect(await runCommand(args)).toMatchObject({ code: 0, stdout: expect.stringContaining("10,000 records imported") });
    const schema = await server.get("/db/bigann:main/tables/imported/schema");
    expect(schema.body.columns).toMatchObject([{ name: "v", type: "vector", vector: { dimension: DIMENSION } }]);
    await checkNeighbours("imported", Number);
  });

  it("is loaded by bulk, and every query finds the published neighbours", async () => {
    await server.put("/db/bigann:main/tables/bulk", { columns: [{ name: "v", type: "vector", vector: { dimension: DIMENSION } }] });
    const rowById = new Map<string, number>();
    for (let first = 0; first < base.length; first += 1000) {
      const records = base.slice(first, first + 1000).map((v) => ({ v }));
      const { status, body } = await server.post("/db/bigann:main/tables/bulk/bulk", { records });
      expect(status).toBe(200);
      for (const [i, id] of body.recordIDs.entries()) rowById.set(id, first + i);
    }
    expect(rowById.size).toBe(base.length);
    await checkNeighbours("bulk", (id) => rowById.get(id) as number);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

/**
 * kill -9 in the middle of writes: everything acknowledged is there, everything acknowledged as deleted is
 * gone, and searches agree with the records.
 */

const BRANCH = "/db/crash:main";
const WRITERS = 6;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
  await server.put(BRANCH);
  await server.put(`${BRANCH}/tables/t`, {
    columns: [
      { name: "n", type: "int" },
      { name: "v", type: "vector", vector: { dimension: 3 } },
    ],
  });
});
afterAll(() => server?.stop());

/** What must be there, must not be there, and may be there (requested, not acknowledged). */
class Expectation {
  readonly present = new Map<string, number>();
  readonly absent = new Set<string>();
  readonly open = new Set<string>();

  begin(ids: readonly string[]): void {
    for (const id of ids) this.open.add(id);
  }

  written(ids: readonly string[], n: number): void {
    for (const id of ids) {
      this.open.delete(id);
      this.absent.delete(id);
      this.present.set(id, n);
    }
  }

  deleted(ids: readonly string[]): void {
    for (const id of ids) {
      this.open.delete(id);
      this.present.delete(id);
      this.absent.add(id);
    }
  }
}

const vectorOf = (n: number): number[] => [n % 97, n % 89, 1];

/** Writes and deletes in every possible way, until the server breaks off. */
async function write(writer: number, round: number, expectation: Expectation): Promise<void> {
  for (let i = 0; ; i++) {
    const n = round * 100_000 + writer * 10_000 + i;
    const ids = [0, 1, 2, 3].map((k) => `w${writer}-${round}-${i}-${k}`);
    expectation.begin(ids);
    try {
      const answers = [await server.put(`${BRANCH}/tables/t/data/${ids[0]}`, { n, v: vectorOf(n) })];
      if (answers[0]?.status === 201) expectation.written(ids.slice(0, 1), n);
      const insert = (id: string) => ({ insert: { table: "t", record: { id, n, v: vectorOf(n) } } });
      answers.push(await server.post(`${BRANCH}/transaction`, { operations: ids.slice(1).map(insert) }));
      if (answers[1]?.status === 200) expectation.written(ids.slice(1), n);
      expectation.begin([ids[1] as string]);
      answers.push(await server.delete(`${BRANCH}/tables/t/data/${ids[1]}`));
      if (answers[2]?.status === 204) expectation.deleted([ids[1] as string]);
      expectation.begin([ids[2] as string]);
      answers.push(await server.post(`${BRANCH}/sql`, { statement: 'DELETE FROM "t" WHERE "id" = $1', params: [ids[2]] }));
      if (answers[3]?.status === 200) expectation.deleted([ids[2] as string]);
      // As long as it responds at all, it responds correctly.
      expect(answers.map(({ status }) => status)).toEqual([201, 200, 204, 200]);
    } catch (error) {
      if (error instanceof Error && "code" in error) return;
      throw error;
    }
  }
}

async function allRecords(): Promise<Map<string, { n: number; v: number[] }>> {
  const found = new Map<string, { n: number; v: number[] }>();
  for (let after: string | undefined; ; ) {
    const request = after === undefined ? { sort: { id: "asc" }, page: { size: 1000 } } : { page: { size: 1000, after } };
    const { body } = await server.post(`${BRANCH}/tables/t/query`, request);
    for (const { id, n, v } of body.records) found.set(id, { n, v });
    if (!body.meta.page.more) return found;
    after = body.meta.page.cursor;
  }
}

describe("kill -9 while clients write and delete", () => {
  const expectation = new Expectation();

  it.each([1, 2, 3])("loses nothing that was acknowledged, and restores nothing deleted (round %i)", async (round) => {
    const before = expectation.present.size;
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer, round, expectation));
    while (expectation.present.size < before + 100) await new Promise((resolve) => setTimeout(resolve, 5));
    await server.end("SIGKILL");
    await Promise.all(writers);
    await server.start();

    const records = await allRecords();
    for (const [id, n] of expectation.present) {
      if (expectation.open.has(id)) continue;
      expect([id, records.get(id)]).toEqual([id, { n, v: vectorOf(n) }]);
    }
    for (const id of expectation.absent) expect([id, records.has(id)]).toEqual([id, false]);
    for (const id of records.keys()) expect(expectation.present.has(id) || expectation.open.has(id)).toBe(true);
    // A transaction is there completely or not at all: of three unacknowledged inserts, all or none.
    const unacknowledged = [...expectation.open].filter((id) => id.endsWith("-3"));
    for (const last of unacknowledged) {
      const stem = last.slice(0, -2);
      const siblings = [1, 2, 3].map((k) => records.has(`${stem}-${k}`));
      if (expectation.open.has(`${stem}-1`) && expectation.open.has(`${stem}-2`)) expect([stem, new Set(siblings).size]).toEqual([stem, 1]);
    }

    // The search store agrees with the records, whatever it held when it was killed.
    const query = [50, 40, 1];
    const answer = await server.post(`${BRANCH}/tables/t/vectorSearch`, {
      column: "v",
      queryVector: query,
      similarityFunction: "l2",
      size: 1000,
      consistency: "strong",
    });
    const oracle = [...records]
      .map(([id, { v }]) => ({ id, score: 1 / (1 + v.reduce((sum, x, i) => sum + (x - (query[i] as number)) ** 2, 0)) }))
      .toSorted((x, y) => y.score - x.score || (x.id < y.id ? -1 : 1));
    expect(answer.body.totalCount).toBe(records.size);
    expect(answer.body.results).toEqual(oracle.slice(0, 1000));
  });

  it("leaves records that can still be written", async () => {
    expect((await server.put(`${BRANCH}/tables/t/data/after`, { n: 1 })).status).toBe(201);
    expect((await server.delete(`${BRANCH}/tables/t/data/after`)).status).toBe(204);
  });
});

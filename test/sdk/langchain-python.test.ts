/**
 * What LangChain's Python store for the retired service sends (langchain_community/vectorstores/xata.py over xata 1.3),
 * in the order of its methods, and what it reads of the answers. There is no Python where the tests run.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

const AGENT = { "x-xata-agent": "client=PY_SDK; version=1.3.6" };
const TABLE = "/db/chain:main/tables/vectors";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
  await server.put("/db/chain:main", {});
  const columns = [
    { name: "content", type: "text" },
    { name: "embedding", type: "vector", vector: { dimension: 2 } },
    { name: "source", type: "string" },
  ];
  await server.put(TABLE, { columns });
});
afterAll(() => server?.stop());

const send = async (path: string, body: object) => {
  const answer = await server.post(path, body, AGENT);
  expect(answer.status).toBe(200);
  return answer.body;
};
/** `wait_for_indexing` gives up when the count differs for five seconds. */
const count = async () => (await send(`${TABLE}/search`, { query: "", page: { size: 0 } })).totalCount;

test("add_texts, similarity_search with a filter, delete(ids) and delete(delete_all=True)", async () => {
  const added = await send(`${TABLE}/bulk`, {
    records: [
      { content: "north", embedding: [0, 1], source: "map" },
      { content: "east", embedding: [1, 0], source: "map" },
      { content: "up", embedding: [0.6, 0.8], source: "sky" },
    ],
  });
  expect(added.recordIDs).toHaveLength(3);
  expect(await count()).toBe(3);

  const near = await send(`${TABLE}/vectorSearch`, { queryVector: [0, 1], column: "embedding", size: 4, filter: { source: "map" } });
  const hits = near.records.map(({ content, source, xata }: { content: string; source: string; xata: { score: number } }) => [
    content,
    source,
    xata.score,
  ]);
  expect(hits).toEqual([
    ["north", "map", 2],
    ["east", "map", 1],
  ]);

  await send("/db/chain:main/transaction", { operations: [{ delete: { table: "vectors", id: added.recordIDs[0] } }] });
  expect(await count()).toBe(2);

  // `_delete_all`: until a query finds nothing.
  const ids = (await send(`${TABLE}/query`, { columns: ["id"] })).records.map(({ id }: { id: string }) => id);
  await send("/db/chain:main/transaction", { operations: ids.map((id: string) => ({ delete: { table: "vectors", id } })) });
  expect((await send(`${TABLE}/query`, { columns: ["id"] })).records).toEqual([]);
  expect(await count()).toBe(0);
});

/**
 * What agents can do, by the protocol's own client against a real server: over streamable HTTP in both generations of the protocol,
 * and over stdio with the command.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_ANSWER_CHARACTERS } from "../../src/mcp/answer-text.ts";
import { DOCUMENTED } from "../http/limits/limit.ts";
import { MAIN, startServer, type TestServer } from "../support/server.ts";

const READS = ["list_databases", "describe_tables", "search", "vector_search", "query_records", "get_record", "run_sql"];
const KEY = "the-key-of-the-agent";
const bearer = { authorization: `Bearer ${KEY}` };
const BRANCH = "/db/shop:main";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ args: ["--api-key", KEY, "--mcp-write"] });
  await server.put(BRANCH, {}, bearer);
  const columns = [
    { name: "name", type: "string" },
    { name: "text", type: "text" },
    { name: "price", type: "int" },
    { name: "embedding", type: "vector", vector: { dimension: 20 } },
  ];
  await server.put(`${BRANCH}/tables/products`, { columns }, bearer);
  const near = (first: number): number[] => [first, 1, ...new Array<number>(18).fill(0)];
  const records = [
    { id: "chair", name: "oak chair", price: 40, embedding: near(0) },
    { id: "stool", name: "oak stool", price: 20, embedding: near(0.1) },
    { id: "lamp", name: "brass lamp", price: 60, embedding: near(-5), text: "bright ".repeat(10_000) },
  ];
  await server.post(`${BRANCH}/tables/products/bulk`, { records }, bearer);
});
afterAll(() => server?.stop());

async function connect(transport: "2026" | "2025" | "stdio"): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, transport === "2026" ? { versionNegotiation: { mode: "auto" } } : {});
  const env = { PATH: process.env.PATH ?? "", LODESTONE_API_KEY: KEY };
  await client.connect(
    transport === "stdio"
      ? new StdioClientTransport({ command: process.execPath, args: [MAIN, "mcp", "--url", server.url, "--write"], env })
      : new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers: bearer } }),
  );
  return client;
}

describe.each(["2026", "2025", "stdio"] as const)("over %s", (transport) => {
  let client: Client;
  beforeAll(async () => {
    client = await connect(transport);
  });
  afterAll(() => client?.close());

  async function call(name: string, asked: Record<string, unknown>): Promise<{ text: string; isError: boolean }> {
    const { content, isError } = await client.callTool({ name, arguments: asked });
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
    return { text, isError: isError === true };
  }
  const answer = async (name: string, asked: Record<string, unknown>) => {
    const { text, isError } = await call(name, asked);
    expect(isError, text).toBe(false);
    return JSON.parse(text.split("\n")[0] ?? "");
  };
  const IN_TABLE = { database: "shop", table: "products" };

  it("the protocol's version is the one asked for, and all tools are listed with what they change", async () => {
    expect(client.getNegotiatedProtocolVersion()).toBe(transport === "2026" ? "2026-07-28" : "2025-11-25");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([...READS, "insert_records", "delete_records"]);
    expect(tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name)).toEqual(READS);
    expect(client.getInstructions()).toContain("list_databases");
  });

  it("databases, branches, tables and columns are found", async () => {
    expect((await answer("list_databases", {})).databases).toMatchObject([{ name: "shop" }]);
    expect((await answer("list_databases", { database: "shop" })).branches).toMatchObject([{ name: "main" }]);
    expect((await answer("describe_tables", { database: "shop" })).schema.tables).toMatchObject([{ name: "products" }]);
    const { columns } = await answer("describe_tables", IN_TABLE);
    expect(columns).toContainEqual({ name: "embedding", type: "vector", vector: { dimension: 20 } });
  });

  it("search finds by words, in one table and in all, with a filter, and with a vector", async () => {
    const idsOf = (found: { records: { id: string }[] }) => found.records.map(({ id }) => id);
    const found = await answer("search", { ...IN_TABLE, query: "oak stool" });
    expect(idsOf(found)).toEqual(["stool", "chair"]);
    expect(found.records[0].embedding).toBe("(20 numbers)");
    expect(idsOf(await answer("search", { database: "shop", query: "brass" }))).toEqual(["lamp"]);
    expect(idsOf(await answer("search", { ...IN_TABLE, query: "oak", filter: { price: { $lt: 30 } } }))).toEqual(["stool"]);
    const vector = { column: "embedding", queryVector: [-5, 1, ...new Array<number>(18).fill(0)] };
    const hybrid = await answer("search", { ...IN_TABLE, query: "oak", vector, fusion: { method: "rrf" }, columns: ["price"], size: 3 });
    expect(new Set(idsOf(hybrid))).toEqual(new Set(["lamp", "chair", "stool"]));
    expect(Object.keys(hybrid.records[0])).toEqual(["id", "price", "xata"]);
  });

  it("vector_search finds by a vector, and by a record, which is not among the results", async () => {
    const queryVector = [0.1, 1, ...new Array<number>(18).fill(0)];
    const asked = { ...IN_TABLE, column: "embedding", columns: ["name"] };
    const { results } = await answer("vector_search", { ...asked, queryVector, size: 2 });
    expect(results.map(({ id, record }: { id: string; record: { name: string } }) => [id, record.name])).toEqual([
      ["stool", "oak stool"],
      ["chair", "oak chair"],
    ]);
    const like = await answer("vector_search", { ...asked, likeRecord: "chair", filter: { price: { $gt: 10 } } });
    expect(like.results.map(({ id }: { id: string }) => id)).toEqual(["stool", "lamp"]);
    expect(await call("vector_search", asked)).toMatchObject({ isError: true, text: expect.stringContaining("likeRecord") });
  });

  it("query_records goes from page to page; get_record and run_sql read what is cut elsewhere", async () => {
    const first = await answer("query_records", { ...IN_TABLE, sort: { price: "asc" }, columns: ["price"], size: 2 });
    expect(first.records.map(({ price }: { price: number }) => price)).toEqual([20, 40]);
    const next = await answer("query_records", { ...IN_TABLE, cursor: first.meta.page.cursor, size: 2 });
    expect(next.records.map(({ id }: { id: string }) => id)).toEqual(["lamp"]);
    const { text } = await call("get_record", { ...IN_TABLE, id: "lamp", columns: ["text"] });
    expect(text).toContain("… (70000 characters)");
    expect(text.length).toBeLessThan(MAX_ANSWER_CHARACTERS);
    const statement = 'SELECT count(*) AS n, substring($1, 1, 6) AS part, 9007199254740993::int8 AS big FROM "products"';
    const { records } = await answer("run_sql", { database: "shop", statement, params: ["bright"] });
    expect(records).toEqual([{ n: 3, part: "bright", big: "9007199254740993" }]);
  });

  it("run_sql only reads, though the key may write", async () => {
    const refused = await call("run_sql", { database: "shop", statement: 'DELETE FROM "products"' });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("only SELECT") });
    const hidden = 'WITH gone AS (DELETE FROM "products" RETURNING 1) SELECT count(*) FROM gone';
    expect((await call("run_sql", { database: "shop", statement: hidden })).isError).toBe(true);
    expect((await answer("run_sql", { database: "shop", statement: 'SELECT count(*) AS n FROM "products"' })).records).toEqual([{ n: 3 }]);
  });

  it("insert_records and delete_records are all or nothing", async () => {
    const records = [
      { id: "new", name: "new" },
      { id: "chair", name: "replaced" },
    ];
    expect(await call("insert_records", { ...IN_TABLE, records })).toMatchObject({ isError: true, text: expect.stringContaining("[1]") });
    expect((await call("get_record", { ...IN_TABLE, id: "new" })).isError).toBe(true);
    const { ids } = await answer("insert_records", { ...IN_TABLE, records: [{ id: "new" }, { name: "no id" }] });
    expect(ids).toEqual(["new", expect.stringMatching(/^rec_/)]);
    expect(await answer("delete_records", { ...IN_TABLE, ids: [...ids, "never"] })).toEqual({ deleted: 2 });
  });

  it("takes as many records as docs/limits.md says, and no more", async () => {
    const limit = { value: "1 to 100", beyond: "an error of the tool" };
    expect(DOCUMENTED).toContainEqual({ name: "records of one search or query by a tool", ...limit });
    expect(DOCUMENTED).toContainEqual({ name: "records that a tool inserts or deletes at once", ...limit });
    const refused = expect.objectContaining({ isError: true, text: expect.stringMatching(/100|1/) });
    for (const name of ["query_records", "search"]) {
      const asked = { ...IN_TABLE, ...(name === "search" && { query: "oak" }) };
      expect((await call(name, { ...asked, size: 100 })).isError).toBe(false);
      for (const size of [0, 101]) expect(await call(name, { ...asked, size })).toEqual(refused);
    }
    const ids = (count: number) => Array.from({ length: count }, (_, n) => `id${n}`);
    for (const count of [0, 101]) {
      expect(await call("insert_records", { ...IN_TABLE, records: ids(count).map((id) => ({ id })) })).toEqual(refused);
      expect(await call("delete_records", { ...IN_TABLE, ids: ids(count) })).toEqual(refused);
    }
    expect((await answer("insert_records", { ...IN_TABLE, records: ids(100).map((id) => ({ id })) })).ids).toEqual(ids(100));
    expect(await answer("delete_records", { ...IN_TABLE, ids: ids(100) })).toEqual({ deleted: 100 });
  });

  it("an error says what is wrong and what to do", async () => {
    const cases = [
      ["query_records", { ...IN_TABLE, filter: { prize: 3 } }, /prize.*\n.*describe_tables/],
      ["query_records", { database: "shop", table: "gone" }, /shop:main\/gone.*\n.*describe_tables/],
      ["query_records", { table: "products" }, /'database'/],
      ["vector_search", { ...IN_TABLE, column: "embedding", queryVector: [1] }, /has 1 elements?; .*dimension 20/],
      ["get_record", { database: "a/b", table: "products", id: "x" }, /database:.*name/],
    ] as const;
    for (const [name, asked, said] of cases)
      expect(await call(name, asked)).toMatchObject({ isError: true, text: expect.stringMatching(said) });
  });
});

it("the command says that no server answers, or that the key is wrong, as an error of the tool", async () => {
  for (const [url, said] of [
    ["http://127.0.0.1:9", /No server answers/],
    [server.url, /API key is not valid/],
  ] as const) {
    const client = new Client({ name: "test", version: "1" });
    const env = { PATH: process.env.PATH ?? "", LODESTONE_API_KEY: "wrong" };
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [MAIN, "mcp", "--url", url], env }));
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(READS);
    const { content, isError } = await client.callTool({ name: "list_databases", arguments: {} });
    expect({ content, isError }).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(said) }] });
    await client.close();
  }
});

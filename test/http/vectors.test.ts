/** POST …/vectors: a column's vectors as bytes, in blocks that are read and charged one at a time. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VectorIndex } from "../../src/index.ts";
import { startServer, type TestServer } from "../support/server.ts";

const TABLE = "/db/many:main/tables/t";
const ROWS = 2_000;
const DIMENSION = 1_000;

const AsyncFunction = (async () => {}).constructor as new (...code: string[]) => unknown;

interface Read {
  readonly blocks: number;
  readonly ids: string[];
  readonly values: (string | null)[];
  readonly elements: number[];
  readonly end: { rows: number; more: boolean };
}

/** Reads the bytes as the documentation says. */
function read(bytes: Buffer, dimension: number): Read {
  const ids: string[] = [];
  const values: (string | null)[] = [];
  const elements: number[] = [];
  for (let at = 0, blocks = 0; ; blocks++) {
    const rows = bytes.readUInt32LE(at);
    const headBytes = bytes.readUInt32LE(at + 4);
    expect(headBytes % 4).toBe(0);
    const head = JSON.parse(bytes.toString("utf8", at + 8, at + 8 + headBytes));
    at += 8 + headBytes;
    if (rows === 0) {
      expect(at).toBe(bytes.length);
      return { blocks, ids, values, elements, end: head };
    }
    expect(head.ids).toHaveLength(rows);
    ids.push(...head.ids);
    values.push(...(head.values ?? []));
    for (let i = 0; i < rows * dimension; i++, at += 4) elements.push(bytes.readFloatLE(at));
  }
}

describe("the vectors of a column as bytes", () => {
  let server: TestServer;
  const ask = async (body: object, key = "w") => {
    const response = await fetch(`${server.url}${TABLE}/vectors`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    });
    return { status: response.status, type: response.headers.get("content-type"), bytes: Buffer.from(await response.arrayBuffer()) };
  };
  const key = { authorization: "Bearer w" };

  beforeAll(async () => {
    // One response may then take 8 MiB, and the whole column takes four times that on its way out of the
    // database.
    server = await startServer({ args: ["--api-key", "w", "--max-memory", "512MB"] });
    await server.put("/db/many:main", {}, key);
    await server.put(
      TABLE,
      {
        columns: [
          { name: "name", type: "string" },
          { name: "kind", type: "int" },
          { name: "notes", type: "json" },
          { name: "v", type: "vector", vector: { dimension: DIMENSION } },
        ],
      },
      key,
    );
    // Each vector is a part of one long list, which takes a fraction of the time of making each separately.
    const statement = `WITH list AS (SELECT array_agg(((i * 7 % 1000) / 3.0)::real ORDER BY i) AS a FROM generate_series(1, ${2 * DIMENSION}) i)
      INSERT INTO "t" ("id", "name", "kind", "v") SELECT 'r' || lpad(n::text, 5, '0'), CASE WHEN n % 3 > 0 THEN repeat('é', n) END, n % 7,
      CASE WHEN n <> 5 THEN a[n % ${DIMENSION} + 1 : n % ${DIMENSION} + ${DIMENSION}] END FROM list, generate_series(1, $1::int) n`;
    expect((await server.post("/db/many:main/sql", { statement, params: [ROWS] }, key)).body).toMatchObject({ rowCount: ROWS });
  });
  afterAll(() => server.stop());

  it("are complete, to the last bit, though together they are more than one response may read", async () => {
    const { status, type, bytes } = await ask({ column: "v" });
    expect(status).toBe(200);
    expect(type).toBe("application/vnd.lodestone.vectors");
    const { ids, elements, end, blocks, values } = read(bytes, DIMENSION);
    const numbers = Array.from({ length: ROWS }, (_, i) => i + 1).filter((n) => n !== 5);
    expect(ids).toEqual(numbers.map((n) => `r${String(n).padStart(5, "0")}`));
    expect(end).toEqual({ rows: ROWS - 1, more: false });
    expect(values).toEqual([]);
    expect(blocks).toBeGreaterThan(6);
    const wrong = elements.findIndex((value, at) => {
      const n = numbers[Math.floor(at / DIMENSION)] as number;
      return value !== Math.fround(((((n % DIMENSION) + (at % DIMENSION) + 1) * 7) % 1000) / 3);
    });
    expect(wrong).toBe(-1);
    expect(elements).toHaveLength((ROWS - 1) * DIMENSION);
    // Another caller's query would be refused if the sent bytes were still charged.
    expect((await ask({ column: "v" })).bytes.equals(bytes)).toBe(true);
  });

  it("come with values, truncated if long, for what a filter selects, up to a limit", async () => {
    const { ids, values, end } = read((await ask({ column: "v", values: "name", filter: { kind: 3 }, limit: 40 })).bytes, DIMENSION);
    const expected = Array.from({ length: 40 }, (_, i) => 3 + 7 * i);
    expect(ids).toEqual(expected.map((n) => `r${String(n).padStart(5, "0")}`));
    expect(values).toEqual(expected.map((n) => (n % 3 > 0 ? "é".repeat(Math.min(n, 200)) : null)));
    expect(end).toEqual({ rows: 40, more: true });
    expect(read((await ask({ column: "v", values: "kind", filter: { id: "r00009" } })).bytes, DIMENSION)).toMatchObject({
      values: ["2"],
      end: { rows: 1, more: false },
    });
    expect(read((await ask({ column: "v", filter: { kind: 99 } })).bytes, DIMENSION).end).toEqual({ rows: 0, more: false });
    // The limit ends within a later block.
    expect(read((await ask({ column: "v", limit: 700 })).bytes, DIMENSION).end).toEqual({ rows: 700, more: true });
  });

  it.each([
    [{ column: "v", filter: { nokind: 1 } }, 400, /nokind/],
    [{ column: "name" }, 400, /column: "name" is of type string; expected a column of type vector/],
    [{ column: "w" }, 404, /Column "w" does not exist/],
    [{ column: "v", values: "w" }, 404, /Column "w" does not exist/],
    [{ column: "v", values: "v" }, 400, /values: "v" is of type vector/],
    [{ column: "v", values: "notes" }, 400, /values: "notes" is of type json/],
    [{ column: "v", limit: 0 }, 400, /limit/],
    [{ column: "v", after: "r00001" }, 400, /after/],
    [{}, 400, /column/],
  ])("%j is refused before anything is answered", async (body, status, message) => {
    const answer = await ask(body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.bytes.toString()).message).toMatch(message);
  });

  it("need a key", async () => {
    expect((await ask({ column: "v" }, "x")).status).toBe(401);
  });

  it("are read no further than the client takes them, and a client who leaves frees what it held", async () => {
    const inFlight = async (): Promise<number> =>
      Number(/^lodestone_http_requests_in_progress (\d+)/m.exec((await server.get("/metrics", key)).text)?.[1]);
    const before = await inFlight();
    const leave = new AbortController();
    const response = await fetch(`${server.url}${TABLE}/vectors`, {
      method: "POST",
      headers: { "content-type": "application/json", ...key },
      body: '{"column": "v"}',
      signal: leave.signal,
    });
    await response.body?.getReader().read();
    // It holds its place until the response ends.
    expect(await inFlight()).toBe(before + 1);
    leave.abort();
    await expect.poll(inFlight).toBe(before);
  });

  it("can be read by the code in docs/library.md", async () => {
    const text = readFileSync(new URL("../../docs/library.md", import.meta.url), "utf8");
    const shown = /### Vectors from a server[\s\S]*?```ts\n([\s\S]*?)```/.exec(text)?.[1] as string;
    const code = shown
      .replace("http://127.0.0.1:8787/db/demo:main/tables/colors", `${server.url}${TABLE}`)
      .replace('"application/json" }', '"application/json", Authorization: "Bearer w" }')
      .replace('column: "lab"', 'column: "v"')
      .replace("dimension: 3", `dimension: ${DIMENSION}`);
    const run = new AsyncFunction("VectorIndex", `${code}; return index;`) as (library: typeof VectorIndex) => Promise<VectorIndex>;
    const index = await run(VectorIndex);
    expect(index.size).toBe(ROWS - 1);
    expect(index.get("r00009")?.[0]).toBe(Math.fround(70 / 3));
    index.free();
  });

  it("are described correctly in /openapi.json", async () => {
    const { body } = await server.get("/openapi.json");
    const { post } = body.paths["/db/{db}:{branch}/tables/{table}/vectors"];
    expect(post["x-access"]).toBe("read");
    expect(post.responses["200"].content).toEqual({
      "application/vnd.lodestone.vectors": { schema: { type: "string", format: "binary" } },
    });
  });
});

/** A limit as docs/limits.md lists it, and how a test checks it. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { type Answer, startServer, type TestServer } from "../../support/server.ts";

export const BRANCH = "/db/limits:main";
export const TABLE = `${BRANCH}/tables/t`;

export interface Limit {
  /** The first cell of its row in docs/limits.md. */
  readonly documented: string;
  /** What the second cell contains. */
  readonly value: string;
  readonly max: number;
  readonly min?: number;
  /** A request with n of what is limited. */
  readonly request: (n: number) => Promise<Answer>;
  /** Part of the message beyond the limit. */
  readonly refusal: string | RegExp;
  readonly status?: number;
}

export const repeat = <Item>(count: number, item: (i: number) => Item): Item[] => Array.from({ length: count }, (_, i) => item(i));
export const nested = (levels: number, open: string, close: string, inner = ""): string =>
  open.repeat(levels) + inner + close.repeat(levels);

/** The test's server, and requests to its table `t`. */
class LimitApi {
  #server: TestServer | undefined;

  get server(): TestServer {
    return this.#server!;
  }

  async start(): Promise<void> {
    this.#server = await startServer();
    await this.server.put(BRANCH);
    const columns = [
      { name: "s", type: "text" },
      { name: "n", type: "int" },
      { name: "j", type: "json" },
      { name: "m", type: "multiple" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
      { name: "self", type: "link", link: { table: "t" } },
    ];
    await this.server.put(TABLE);
    expect((await this.server.put(`${TABLE}/schema`, { columns })).status).toBe(200);
    expect((await this.server.put(`${TABLE}/data/a`, { s: "x", n: 1, v: [1, 0] })).status).toBe(201);
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
  }

  query(body: object): Promise<Answer> {
    return this.server.post(`${TABLE}/query`, body);
  }
  filter(expression: unknown): Promise<Answer> {
    return this.query({ filter: expression });
  }
  search(body: object): Promise<Answer> {
    return this.server.post(`${TABLE}/vectorSearch`, { column: "v", queryVector: [1, 0], ...body });
  }
  textSearch(body: object): Promise<Answer> {
    return this.server.post(`${TABLE}/search`, { query: "x", ...body });
  }
  aggregate(aggs: object): Promise<Answer> {
    return this.server.post(`${TABLE}/aggregate`, { aggs });
  }
  sql(statement: string, params: unknown[] = []): Promise<Answer> {
    return this.server.post(`${BRANCH}/sql`, { statement, params });
  }
}

export const api = new LimitApi();

const DOCUMENT = readFileSync(fileURLToPath(new URL("../../../docs/limits.md", import.meta.url)), "utf8");

/** The rows of the tables of docs/limits.md. */
export const DOCUMENTED: readonly { readonly name: string; readonly value: string; readonly beyond: string }[] = DOCUMENT.split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| limit |"))
  .map((line) => {
    const [name = "", value = "", beyond = ""] = line.slice(2, -2).split(" | ");
    return { name, value, beyond };
  });

const toldBy = ({ body }: Answer): string => body?.message ?? body?.errors?.[0]?.message;

/**
 * Checks that a request one below and at the limit succeeds, and that one beyond it is refused with a message
 * that names the limit, as the document says.
 */
export async function meet({ documented, value, max, min, request, refusal, status = 400 }: Limit): Promise<void> {
  const row = DOCUMENTED.find(({ name }) => name === documented);
  expect(row?.value).toContain(value);
  expect(row?.beyond).toContain(String(status));
  const taken = async (n: number) => {
    const answer = await request(n);
    expect([n, answer.status < 300, toldBy(answer)]).toEqual([n, true, undefined]);
  };
  const refused = async (n: number) => {
    const answer = await request(n);
    expect([n, answer.status]).toEqual([n, status]);
    if (typeof refusal === "string") expect(toldBy(answer)).toContain(refusal);
    else expect(toldBy(answer)).toMatch(refusal);
  };
  for (const n of [max - 1, max]) await taken(n);
  await refused(max + 1);
  if (min === undefined) return;
  for (const n of [min, min + 1]) await taken(n);
  await refused(min - 1);
}

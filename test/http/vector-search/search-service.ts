/** What the suite of search tests needs: servers over one of the engines that can hold the vectors. */
import { expect } from "vitest";
import type { ColumnSchema } from "../../../src/records/schema.ts";
import { PartsCluster } from "../../cluster/parts-cluster.ts";
import { until } from "../../support/patience.ts";
import type { SearchServer } from "../../support/pgvector.ts";
import { startPostgres } from "../../support/postgres.ts";
import { startServer } from "../../support/server.ts";
import type { Answer, ServerClient } from "../../support/server-client.ts";
import { sharedServer } from "../../support/shared-server.ts";

export const BASE = "/db/vectors:main";

export interface SearchService {
  /** All of them give the same answers. */
  readonly servers: readonly ServerClient[];
  stop(): Promise<void>;
}

/** One server. */
export async function startOne(): Promise<SearchService> {
  const server = await sharedServer();
  return { servers: [server], stop: () => server.stop() };
}

/** One server that keeps its vectors in another database. */
export async function startOnSearchUrl(start: () => Promise<SearchServer>): Promise<SearchService> {
  const database = await start();
  try {
    const server = await startServer({ args: ["--search-url", await database.emptyDatabase()] });
    return { servers: [server], stop: () => server.stop().finally(() => database.stop()) };
  } catch (error) {
    await database.stop();
    throw error;
  }
}

/**
 * As many servers as parts, each with its own part.
 * @param bin  as for startPostgres.
 */
export async function startParts(bin: string, parts: number): Promise<SearchService> {
  const postgres = await startPostgres(bin);
  try {
    const cluster = await PartsCluster.start(postgres, { replicas: Array(parts).fill(1) });
    return { servers: cluster.all, stop: () => cluster.stop().finally(() => postgres.stop()) };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** Requests to the servers of a service in turn. */
export class SearchClient {
  readonly #service: () => SearchService;
  #asked = 0;

  /** @param service  asked for each request, because it is started after the tests are described. */
  constructor(service: () => SearchService) {
    this.#service = service;
  }

  /** Number of servers: after this many requests in a row each has been asked. */
  get servers(): number {
    return this.#service().servers.length;
  }

  post = (path: string, body: unknown, headers = {}): Promise<Answer> => this.#next.post(path, body, headers);
  put = (path: string, body?: unknown): Promise<Answer> => this.#next.put(path, body);
  delete = (path: string): Promise<Answer> => this.#next.delete(path);

  /** A strong search, unless the body says otherwise. */
  search(table: string, body: object, headers = {}): Promise<Answer> {
    return this.post(`${BASE}/tables/${table}/vectorSearch`, { consistency: "strong", ...body }, headers);
  }

  /**
   * Creates the branch. Like the other methods that change the schema, resolves once every server knows of
   * it.
   */
  async createBranch(): Promise<void> {
    expect((await this.put(BASE)).status).toBe(201);
    await this.#everywhere(BASE, () => true);
  }

  async createTable(table: string, columns: readonly ColumnSchema[]): Promise<void> {
    expect((await this.put(`${BASE}/tables/${table}`, { columns })).status).toBe(201);
    await this.#everywhere(`${BASE}/tables/${table}/schema`, () => true);
  }

  async addColumn(table: string, column: ColumnSchema): Promise<void> {
    expect((await this.post(`${BASE}/tables/${table}/columns`, column)).status).toBe(200);
    await this.#everywhere(`${BASE}/tables/${table}/schema`, (names) => names.includes(column.name));
  }

  async dropColumn(table: string, column: string): Promise<void> {
    expect((await this.delete(`${BASE}/tables/${table}/columns/${column}`)).status).toBe(200);
    await this.#everywhere(`${BASE}/tables/${table}/schema`, (names) => !names.includes(column));
  }

  /** Schemas reach the other servers by a notification, a moment later. */
  async #everywhere(path: string, isRight: (columns: string[]) => boolean): Promise<void> {
    for (const server of this.#service().servers)
      await until(`a server knows ${path} as it is`, async () => {
        const { status, body } = await server.get(path);
        return status === 200 && isRight((body.columns ?? []).map(({ name }: { name: string }) => name));
      });
  }

  get #next(): ServerClient {
    const { servers } = this.#service();
    return servers[this.#asked++ % servers.length]!;
  }
}

export const idsOf = ({ body }: Answer): string[] => body.results.map(({ id }: { id: string }) => id);

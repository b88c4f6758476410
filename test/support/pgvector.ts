/**
 * A PostgreSQL with pgvector for tests: PGlite with its extension, in a process of its own. If
 * LODESTONE_TEST_SEARCH_URL is set (a superuser of a server that has pgvector, and perhaps Citus), that
 * server is used as well. Test files must then run one after the other (`--no-file-parallelism`).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";

export interface SearchServer {
  /** An empty database for a search store; whatever an earlier one left there is removed. */
  emptyDatabase(): Promise<string>;
  stop(): Promise<void>;
}

/** By name. */
export const SEARCH_SERVERS: readonly (readonly [name: string, start: () => Promise<SearchServer>])[] = [
  ["pgvector in PGlite", startPglite],
  ...(process.env.LODESTONE_TEST_SEARCH_URL === undefined
    ? []
    : [
        [
          "pgvector in the server of LODESTONE_TEST_SEARCH_URL",
          async () => onServer(process.env.LODESTONE_TEST_SEARCH_URL!, async () => {}),
        ] as const,
      ]),
];

const PROGRAM = fileURLToPath(new URL("pglite-server.mjs", import.meta.url));

async function startPglite(): Promise<SearchServer> {
  const child = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
  const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return onServer(`postgres://postgres@127.0.0.1:${port}/postgres`, async () => {
    const exited = once(child, "exit");
    child.stdin.end();
    await exited;
  });
}

function onServer(url: string, stop: () => Promise<void>): SearchServer {
  return {
    async emptyDatabase() {
      await withClient(url, (client) => client.query("DROP SCHEMA IF EXISTS lodestone_search CASCADE"));
      return url;
    },
    stop,
  };
}

export async function withClient<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

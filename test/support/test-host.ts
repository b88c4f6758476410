/**
 * Vitest's main process keeps what several test files use, one after the other: for each worker a server and a PostgreSQL, started when
 * a file asks for it. So they end with the run, whatever happens to workers.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Kept {
  /** What a test file is told. Throws if it no longer runs. */
  describe(): unknown;
  stop(): Promise<void>;
}

/** Modules are imported when they are needed: most runs of a single file need none of them. */
const STARTERS: Readonly<Record<string, () => Promise<Kept>>> = {
  server: async () => {
    const { startServer } = await import("./server.ts");
    const server = await startServer();
    return {
      describe: () => {
        if (!server.isRunning) throw new Error(`the shared server has ended by itself: ${server.log.slice(-8_000)}`);
        return { url: server.url, dataDir: server.dataDir, log: server.log };
      },
      stop: async () => {
        const code = await server.end("SIGTERM");
        if (code !== 0) throw new Error(`the shared server ended with ${code}: ${server.log.slice(-8_000)}`);
      },
    };
  },
  postgres: async () => {
    const { startCluster } = await import("./postgres.ts");
    const { pathOf } = await import("./finders.ts");
    // No test that shares it counts connections.
    const cluster = await startCluster(pathOf("postgresql"), ["max_connections=200"]);
    return { describe: () => ({ url: cluster.url }), stop: () => cluster.stop() };
  },
};

/** Starts what answers `askHost`; the promise is of what ends it all. All temporary files of the run are in one folder, which is then removed. */
export async function startTestHost(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-tests-"));
  // PostgreSQL, which does not run as root, has its data in it.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  const kept = new Map<string, Promise<Kept>>();
  const answer = async (key: string): Promise<unknown> => {
    const [kind = ""] = key.split(" ");
    const made = kept.get(key) ?? STARTERS[kind]!();
    kept.set(key, made);
    return (await made).describe();
  };
  const host = createServer((request, response) => {
    const send = (status: number, body: unknown): void => void response.writeHead(status).end(JSON.stringify(body));
    answer(decodeURIComponent((request.url ?? "/").slice(1))).then(
      (body) => send(200, body),
      (error: unknown) => send(500, String(error)),
    );
  });
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  process.env.LODESTONE_TEST_HOST = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
  return async () => {
    host.close();
    const ended = await Promise.allSettled([...kept.values()].map(async (one) => (await one).stop()));
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    for (const result of ended) if (result.status === "rejected") throw result.reason;
  };
}

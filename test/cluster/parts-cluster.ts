/**
 * Servers that hold a part each of one database's vectors, beside one that holds all of them and shows what
 * they should answer.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/ports.ts";
import type { TestPostgres } from "../support/postgres.ts";
import { TestServer } from "../support/server.ts";

export const SECRET = "a-secret-of-more-than-thirty-two-characters";

export interface PartsClusterOptions {
  /** Replicas of each part: `[1, 2]` is two parts, the second on two servers. */
  readonly replicas: readonly number[];
  readonly args?: readonly string[];
  /** The database's URL as the servers are given it: through a proxy, perhaps. Default: unchanged. */
  readonly reach?: (databaseUrl: string) => string;
}

export class PartsCluster {
  readonly databaseUrl: string;
  /** Holds everything. */
  readonly whole: TestServer;
  /** By part, then replica. */
  readonly parts: readonly (readonly TestServer[])[];
  readonly #directory: string;

  private constructor(databaseUrl: string, directory: string, whole: TestServer, parts: readonly (readonly TestServer[])[]) {
    this.databaseUrl = databaseUrl;
    this.#directory = directory;
    this.whole = whole;
    this.parts = parts;
  }

  static async start(postgres: TestPostgres, { replicas, args = [], reach = (url) => url }: PartsClusterOptions): Promise<PartsCluster> {
    const databaseUrl = await postgres.createDatabase();
    const directory = mkdtempSync(join(tmpdir(), "lodestone-parts-"));
    const secretFile = join(directory, "secret");
    writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
    const serverOf = (name: string, more: readonly string[]): TestServer => {
      const dataDir = join(directory, name);
      return new TestServer({ databaseUrl: reach(databaseUrl), dataDir, args: ["--data-dir", dataDir, ...more, ...args] });
    };
    const ports = await Promise.all(replicas.map((count) => Promise.all(Array.from({ length: count }, freePort))));
    const peers = ports.map((ofPart) => ofPart.map((port) => `http://127.0.0.1:${port}`).join("|")).join(",");
    const parts = ports.map((ofPart, part) =>
      ofPart.map((port, replica) => {
        const which = ["--search-part", `${part}/${replicas.length}`, "--search-peers", peers, "--search-secret-file", secretFile];
        return serverOf(`part-${part}-${replica}`, [...which, "--port", String(port), "--database-connections", "6"]);
      }),
    );
    const cluster = new PartsCluster(databaseUrl, directory, serverOf("whole", []), parts);
    try {
      await cluster.whole.start();
      await Promise.all(cluster.all.map((server) => server.start()));
      await cluster.untilReady();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** All servers that hold a part. */
  get all(): TestServer[] {
    return this.parts.flat();
  }

  async untilReady(servers: readonly TestServer[] = [this.whole, ...this.all]): Promise<void> {
    for (const server of servers) await server.untilReady();
  }

  /**
   * Stops the servers of parts cleanly and starts them again. `turned`: each gets the data directory of the
   * previous one.
   */
  async restart({ turned }: { turned: boolean }): Promise<void> {
    await Promise.all(this.all.map((server) => server.end("SIGTERM")));
    const folders = this.all.map(({ dataDir }) => dataDir);
    if (turned) {
      for (const folder of folders) renameSync(folder, `${folder}-turned`);
      folders.forEach((folder, i) => {
        renameSync(`${folders.at(i - 1)!}-turned`, folder);
      });
    }
    await Promise.all(this.all.map((server) => server.start()));
    await this.untilReady();
  }

  async stop(): Promise<void> {
    await Promise.all([this.whole, ...this.all].map((server) => server.end("SIGTERM")));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

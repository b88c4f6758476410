/**
 * A throw-away PostgreSQL server for tests: its own cluster in a temporary directory, on a free loopback
 * port, stopped and removed at the end. The test files of one worker share one, one file after the other,
 * each with databases of its own. If LODESTONE_TEST_DATABASE_URL is set (a role that may create databases),
 * that server is shared instead.
 *
 * Usage: `describeWith("postgresql", "…", (bin) => { let server; beforeAll(async () => { server = await
 * startPostgres(bin); }); afterAll(() => server.stop()); … })`
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { askHost } from "./ask-host.ts";
import { until } from "./patience.ts";
import { freePort } from "./ports.ts";

const OBJECT_IN_USE = "55006";

export interface TestPostgres {
  /**
   * Creates an empty database of the server; the URL logs in as its superuser (trust authentication on
   * loopback).
   */
  createDatabase(): Promise<string>;
  /** The port it listens on. */
  readonly port: number;
  /** Stops the server as a crash would and starts it again on the same port. Not the shared one. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

interface Cluster {
  /** Of its superuser and the database `postgres`. */
  readonly url: string;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * @param bin       the folder of initdb and postgres, as describeWith("postgresql") passes it.
 * @param settings  `name=value` for postgresql.conf. If there are any, a cluster of its own is started, which
 *   the test may restart.
 */
export async function startPostgres(bin: string, settings: readonly string[] = []): Promise<TestPostgres> {
  if (settings.length > 0) {
    const { url, restart, stop } = await startCluster(bin, settings);
    return onServer(url, { restart, stop });
  }
  const url = process.env.LODESTONE_TEST_DATABASE_URL ?? (await askHost<{ url: string }>("postgres")).url;
  return onServer(url, { restart: () => Promise.reject(new Error("the server is shared")) });
}

export async function startCluster(bin: string, settings: readonly string[]): Promise<Cluster> {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-postgres-"));
  const user = serverUser();
  if (user !== undefined) chownSync(directory, user.uid, user.gid);
  const asUser = { stdio: "ignore", cwd: directory, env: { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8" }, ...user } as const;
  const dataDirectory = join(directory, "data");
  execFileSync(
    join(bin, "initdb"),
    ["-D", dataDirectory, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
    asUser,
  );
  const port = await freePort();
  const start = async (): Promise<ChildProcess> => {
    const all = [
      "fsync=off",
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${directory}`,
      "max_connections=60",
      "shared_buffers=32MB",
      ...settings,
    ];
    const server = spawn(join(bin, "postgres"), ["-D", dataDirectory, "-p", String(port), ...all.flatMap((s) => ["-c", s])], asUser);
    await answering(`postgres://postgres@127.0.0.1:${port}/postgres`, server);
    return server;
  };
  let server = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = new Promise((resolve) => server.once("exit", resolve));
    server.kill(signal);
    await exited;
  };
  const atExit = (): void => {
    server.kill("SIGQUIT");
  };
  process.once("exit", atExit);
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    restart: async () => {
      await end("SIGQUIT"); // immediate shutdown: connections break, recovery follows
      server = await start();
    },
    stop: async () => {
      process.off("exit", atExit);
      await end("SIGQUIT"); // nobody needs its data, and a statement that cannot be interrupted would hold an orderly stop
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** @param rest  without `stop` the server lives on, without the databases of this test. */
function onServer(adminUrl: string, rest: { restart(): Promise<void>; stop?(): Promise<void> }): TestPostgres {
  const created: string[] = [];
  const administer = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: adminUrl });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  return {
    port: Number(new URL(adminUrl).port || 5432),
    async createDatabase() {
      const name = `lodestone_test_${process.pid}_${created.length}_${Math.random().toString(36).slice(2, 8)}`;
      await administer(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
      created.push(name);
      const url = new URL(adminUrl);
      url.pathname = `/${name}`;
      return url.href;
    },
    restart: rest.restart,
    async stop() {
      if (rest.stop !== undefined) return rest.stop();
      for (const name of created) {
        // PostgreSQL waits five seconds for back ends to end; one that computes without a pause takes longer.
        await until(`${name} is dropped`, () =>
          administer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).then(
            () => true,
            (error: { code?: string }) => {
              if (error.code !== OBJECT_IN_USE) throw error;
              return false;
            },
          ),
        );
      }
    },
  };
}

/** PostgreSQL refuses to run as root; then it runs as the `postgres` user of the Debian package. */
export function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith("postgres:"));
  if (line === undefined) throw new Error('Tests run as root, and there is no user "postgres" to run PostgreSQL as.');
  const [, , uid, gid] = line.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

export async function answering(url: string, server: ChildProcess): Promise<void> {
  await until("PostgreSQL answers", async () => {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.end();
      return true;
    } catch (error) {
      if (server.exitCode !== null || server.signalCode !== null) throw error;
      return false;
    }
  });
}

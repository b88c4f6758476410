/**
 * A standby of a test's PostgreSQL. It replicates through a proxy of its own, so that it can be cut off and
 * then promoted.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./ports.ts";
import { answering, serverUser } from "./postgres.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** Not the synchronous version: the proxies are in this process. */
const run = promisify(execFile);

export interface TestStandby {
  readonly port: number;
  /** The proxy between it and its primary: refuse() makes it fall behind. */
  readonly link: TcpProxy;
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * @param bin   as for startPostgres.
 * @param name  its name to the primary, for synchronous_standby_names.
 */
export async function startStandby(bin: string, primaryPort: number, name = "standby"): Promise<TestStandby> {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-standby-"));
  const user = serverUser();
  if (user !== undefined) chownSync(directory, user.uid, user.gid);
  const asUser = { stdio: "ignore", cwd: directory, env: { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8" }, ...user } as const;
  const data = join(directory, "data");
  const link = await startTcpProxy(primaryPort);
  const conninfo = `host=127.0.0.1 port=${link.port} user=postgres application_name=${name}`;
  await run(join(bin, "pg_basebackup"), ["-D", data, "-R", "--checkpoint=fast", "--no-sync", "-d", conninfo], asUser);
  const port = await freePort();
  const settings = ["fsync=off", "listen_addresses=127.0.0.1", `unix_socket_directories=${directory}`, "wal_retrieve_retry_interval=200ms"];
  const server: ChildProcess = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
    asUser,
  );
  const atExit = (): void => {
    server.kill("SIGQUIT");
  };
  process.once("exit", atExit);
  await answering(`postgres://postgres@127.0.0.1:${port}/postgres`, server);
  return {
    port,
    link,
    async promote() {
      await run(join(bin, "pg_ctl"), ["promote", "-D", data, "-w"], asUser);
    },
    async stop() {
      process.off("exit", atExit);
      await link.close();
      if (server.exitCode === null && server.signalCode === null) {
        const exited = new Promise((resolve) => server.once("exit", resolve));
        server.kill("SIGINT");
        await exited;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

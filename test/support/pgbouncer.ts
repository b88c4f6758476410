/** A throw-away PgBouncer in front of a test's PostgreSQL, on a free port of loopback. */
import { spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, listening } from "./ports.ts";
import { serverUser } from "./postgres.ts";

export interface TestPgBouncer {
  /** The URL through PgBouncer. */
  url(databaseUrl: string): string;
  stop(): Promise<void>;
}

/** @param postgresPort  where PostgreSQL listens on 127.0.0.1; it trusts loopback. */
export async function startPgBouncer(
  bin: string,
  postgresPort: number,
  mode: "session" | "transaction" | "statement",
): Promise<TestPgBouncer> {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-pgbouncer-"));
  const port = await freePort();
  const user = serverUser();
  writeFileSync(
    join(directory, "pgbouncer.ini"),
    `[databases]
* = host=127.0.0.1 port=${postgresPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(directory, "users.txt")}
auth_user = postgres
pool_mode = ${mode}
default_pool_size = 40
max_client_conn = 200
`,
  );
  // All other roles, those of branches, are looked up in the database (auth_query).
  writeFileSync(join(directory, "users.txt"), '"postgres" ""\n');
  if (user !== undefined)
    for (const path of [directory, join(directory, "pgbouncer.ini"), join(directory, "users.txt")]) chownSync(path, user.uid, user.gid);
  const child = spawn(bin, [join(directory, "pgbouncer.ini")], { stdio: "ignore", cwd: directory, ...user });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await listening(port);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url(databaseUrl) {
      const url = new URL(databaseUrl);
      url.host = `127.0.0.1:${port}`;
      return url.href;
    },
    stop,
  };
}

/** A PostgreSQL server of a benchmark's own: durable, as it is installed, in a temporary folder. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const STARTS_WITHIN_MS = 60_000;

/** PostgreSQL refuses to run as root: there it is run as `nobody`. */
function owner() {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(execFileSync("id", [flag, "nobody"]).toString());
  return { uid: id("-u"), gid: id("-g") };
}

function freePort() {
  return new Promise((done, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/**
 * @param bin  the folder of `initdb` and `postgres`.
 * @returns {Promise<{url: string, port: number, stop(): Promise<void>}>}
 */
export async function startCluster(bin) {
  const user = owner();
  const folder = mkdtempSync(join(tmpdir(), "lodestone-postgres-"));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const asUser = { stdio: "ignore", cwd: folder, env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8" }, ...user };
  const data = join(folder, "data");
  execFileSync(join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"], asUser);
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`];
  const server = spawn(join(bin, "postgres"), ["-D", data, "-p", String(port), ...settings.flatMap((line) => ["-c", line])], asUser);
  const exited = new Promise((done) => {
    server.once("exit", done);
  });
  const stop = async () => {
    server.kill("SIGINT");
    await exited;
    rmSync(folder, { recursive: true });
  };
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  try {
    await answering(url);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, port, stop };
}

async function answering(url) {
  const endMs = performance.now() + STARTS_WITHIN_MS;
  for (;;) {
    const client = new pg.Client(url);
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await sleep(100);
    }
  }
}

/** @returns {Promise<number>} inserts a second of a row with an id and an array of `dimension` numbers, prepared, by pgbench. */
export async function insertsByPgbench(bin, { url, port }, dimension, connections, seconds) {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-pgbench-"));
  try {
    const script = join(folder, "insert.sql");
    const vector = Array.from({ length: dimension }, (_, i) => (i / dimension).toFixed(6)).join(",");
    writeFileSync(script, `INSERT INTO pgbench_rows (id, v) VALUES (gen_random_uuid()::text, '{${vector}}');\n`);
    const client = new pg.Client(url);
    await client.connect();
    await client.query("CREATE TABLE IF NOT EXISTS pgbench_rows (id text PRIMARY KEY, v real[])");
    await client.end();
    const of = ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres"];
    const how = ["-n", "-M", "prepared", "-c", String(connections), "-j", "1", "-T", String(seconds), "-f", script];
    const said = execFileSync(join(bin, "pgbench"), [...of, ...how, "postgres"], { stdio: ["ignore", "pipe", "ignore"] }).toString();
    return Number(/tps = ([\d.]+)/.exec(said)[1]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

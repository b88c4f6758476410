/** Runs nginx with one of the shipped configurations, its server names replaced by loopback addresses. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "./patience.ts";
import { freePort, listening } from "./ports.ts";

export interface TestNginx {
  readonly port: number;
  /** Writes a file beside the configuration (cells.map), and makes nginx reload everything. */
  rewrite(file: string, content: string): Promise<void>;
  stop(): Promise<void>;
}

/** @param change  edits the shipped text; `directory` is where `rewrite` puts files. */
export async function startNginx(bin: string, file: string, change: (text: string, directory: string) => string): Promise<TestNginx> {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-nginx-"));
  for (const name of ["body", "proxy", "fastcgi", "uwsgi", "scgi"]) mkdirSync(join(directory, name));
  const port = await freePort();
  const shipped = readFileSync(fileURLToPath(new URL(`../../deploy/nginx/${file}`, import.meta.url)), "utf8");
  const paths = `client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy; fastcgi_temp_path ${directory}/fastcgi;
    uwsgi_temp_path ${directory}/uwsgi; scgi_temp_path ${directory}/scgi;`;
  const text = change(shipped, directory)
    .replace("listen 8787;", `listen 127.0.0.1:${port};`)
    .replace("http {", `http { ${paths}`)
    .replace("worker_processes auto;", "worker_processes 1;");
  const conf = join(directory, "nginx.conf");
  writeFileSync(conf, text);
  // When it runs as root, its workers would be another user, who may not write here.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const globals = `${user} daemon off; pid ${directory}/nginx.pid; error_log ${directory}/error.log;`;
  const child: ChildProcess = spawn(bin, ["-p", directory, "-c", conf, "-g", globals], { stdio: "ignore" });
  const atExit = (): void => {
    child.kill("SIGTERM");
  };
  process.once("exit", atExit);
  const stop = async (): Promise<void> => {
    process.off("exit", atExit);
    if (child.exitCode === null && child.signalCode === null) {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await exited;
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await listening(port);
  } catch (error) {
    const log = readFileSync(join(directory, "error.log"), "utf8");
    await stop();
    throw new Error(`nginx does not start: ${log}`, { cause: error });
  }
  return {
    port,
    async rewrite(name, content) {
      const workers = (): string[] => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim().split(" ");
      const old = workers();
      writeFileSync(join(directory, name), content);
      child.kill("SIGHUP");
      // They end with their last request; new ones have the new map.
      await until("nginx's old workers end", () => !workers().some((pid) => old.includes(pid)));
    },
    stop,
  };
}

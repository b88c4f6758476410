/** A real server process, as `lodestone serve` starts it, with an empty data directory of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const CLI = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));

export interface ServerProcess {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly child: ChildProcess;
  /** SIGTERM, and the data directory goes. */
  stop(): Promise<void>;
}

export async function startServerProcess(options: readonly string[] = []): Promise<ServerProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-sdk-"));
  const child = spawn(
    process.execPath,
    [CLI, "serve", "--port", "0", "--data-dir", join(dataDir, "data"), "--log-level", "warn", ...options],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk;
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(dataDir, { recursive: true, force: true });
    const [code, signal] = [child.exitCode, child.signalCode];
    if (code !== 0) throw new Error(`The server ended with ${code ?? signal}.\n${errors}`);
  };
  try {
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.on("data", () => {
        const [, found] = /listens on (http:\/\/\S+)/.exec(output) ?? [];
        if (found !== undefined) resolve(found);
      });
      child.once("exit", (code) => reject(new Error(`The server did not start (exit code ${code}).\n${output}${errors}`)));
      child.once("error", reject);
    });
    return { url, child, stop };
  } catch (error) {
    rmSync(dataDir, { recursive: true, force: true });
    throw error;
  }
}

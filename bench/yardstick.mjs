/** What a request costs that does nothing: a bare server, in a process of its own. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A server that does nothing, see yardstick-server.mjs. @param name  "http" or "koa". @param answer  what it answers, as JSON. */
export async function openYardstick(name, answer) {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-yardstick-"));
  const file = join(folder, "answer.json");
  writeFileSync(file, JSON.stringify(answer));
  const child = spawn(process.execPath, [fileURLToPath(new URL("yardstick-server.mjs", import.meta.url)), name, file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await new Promise((done, reject) => {
    child.stdout.once("data", (chunk) => done(String(chunk).split("\n")));
    child.once("exit", (code) => reject(new Error(`the yardstick ${name} ended with ${code}`)));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    rmSync(folder, { recursive: true });
  };
  return { name, server: { port: Number(new URL(line).port), pid: child.pid, stop }, failed: 0 };
}

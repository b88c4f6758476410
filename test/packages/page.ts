/** Opens the output of a toolchain for browsers, and servers that tools start themselves. */

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Browser } from "playwright-core";
import { newPage } from "../browser/launch.ts";
import { LIMIT_MS, until } from "../support/patience.ts";
import { toolEnvironment } from "./outcome.ts";
import type { ProgramResult } from "./program.ts";

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

/** Serves a folder like any plain web server. */
export async function serveFolder(folder: string): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const path = join(folder, pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
    if (isFile) response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/javascript" }).end(readFileSync(path));
    else response.writeHead(404).end("not found");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/**
 * The outcome that PAGE_MAIN leaves.
 * @throws what the page threw.
 */
export async function openPage(browser: Browser, url: string): Promise<ProgramResult> {
  const page = await newPage(browser);
  try {
    const failures: string[] = [];
    page.on("pageerror", (error) => failures.push(String(error.stack ?? error)));
    page.on("console", (message) => message.type() === "error" && failures.push(message.text()));
    await page.goto(url);
    await page
      .waitForFunction(() => "outcome" in globalThis, undefined, { timeout: LIMIT_MS })
      .catch((error: unknown) => {
        throw new Error(`${url} came to no outcome (${String(error)}): ${failures.join("\n")}`);
      });
    const outcome = await page.evaluate(() => (globalThis as unknown as { outcome: { result?: ProgramResult; failure?: string } }).outcome);
    if (outcome.result === undefined) throw new Error(outcome.failure);
    return outcome.result;
  } finally {
    await page.close();
  }
}

/** Starts a server program and waits until it answers at `url`; `stop` ends it and its child processes. */
export async function startServer(
  folder: string,
  command: string,
  args: readonly string[],
  url: string,
  environment: Record<string, string> = {},
): Promise<{ stop: () => Promise<void> }> {
  const child: ChildProcess = spawn(command, args, {
    cwd: folder,
    // A process group of its own, so that a tool's workers end with it.
    detached: true,
    env: toolEnvironment(environment),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (output += String(text)));
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
  };
  const told = () => `${command} ${args.join(" ")} answers at ${url}: ${output}`;
  const answers = () =>
    fetch(url).then(
      (response) => response.ok,
      () => {
        if (child.exitCode !== null) throw new Error(`it ended instead: ${told()}`);
        return false;
      },
    );
  try {
    await until(told, answers, 200);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

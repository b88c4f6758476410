/**
 * A real server for tests: `dist/cli/main.js serve` in a process of its own, on a free port, with a data
 * directory of its own unless one is given.
 *
 * Usage: `let server; beforeAll(async () => { server = await startServer(); }); afterAll(() =>
 * server.stop());`
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until, within } from "./patience.ts";
import { ServerClient } from "./server-client.ts";
import { copyTemplate } from "./server-template.ts";

export type { Answer } from "./server-client.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface ServerOptions {
  readonly dataDir?: string;
  /** The program's main file; default: what was built here. */
  readonly main?: string;
  /** Start without a data directory, as a user does. */
  readonly fresh?: boolean;
  readonly databaseUrl?: string;
  readonly args?: readonly string[];
  /** undefined: without what tests set. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** What its process may open (`ulimit -n`). Default: what this one may. */
  readonly openFiles?: number;
}

/** A statement may take as long as it takes on a machine that is busy. */
const SETTINGS = { LODESTONE_LOG_LEVEL: "info", LODESTONE_STATEMENT_TIMEOUT: "3600" };

/** Those of this process that run, and those that have ended since the last test began. */
export const STARTED = new Set<TestServer>();

export class TestServer extends ServerClient {
  readonly dataDir: string;
  readonly #options: ServerOptions;
  #process: ChildProcess | undefined;
  #url = "";
  #log = "";
  #stdout = "";

  constructor(options: ServerOptions) {
    super();
    this.#options = options;
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "lodestone-server-"));
    if (options.dataDir === undefined && options.databaseUrl === undefined && options.fresh !== true) copyTemplate(this.dataDir);
  }

  /** `http://127.0.0.1:port`. */
  get url(): string {
    return this.#url;
  }

  /** What it has written to stderr (its log) since it was started. */
  get log(): string {
    return this.#log;
  }

  get stdout(): string {
    return this.#stdout;
  }

  /** False before the first start, and after the process has ended, by itself or by `end`. */
  get isRunning(): boolean {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  get pid(): number {
    return this.#process?.pid as number;
  }

  /** Starts the server; after `kill` or `stop` it starts again with the same data. */
  async start(extraArgs: readonly string[] = []): Promise<void> {
    const { databaseUrl, args = [], env = {} } = this.#options;
    const where = databaseUrl === undefined ? ["--data-dir", this.dataDir] : ["--database-url", databaseUrl];
    this.#log = "";
    this.#stdout = "";
    const command = [process.execPath, this.#options.main ?? MAIN, "serve", "--port", "0", ...where, ...args, ...extraArgs];
    const { openFiles } = this.#options;
    const [program, ...rest] = openFiles === undefined ? command : ["sh", "-c", `ulimit -n ${openFiles}; exec "$@"`, "sh", ...command];
    const child = spawn(program as string, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...SETTINGS, ...env },
    });
    this.#process = child;
    STARTED.add(this);
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#log += chunk.toString();
    });
    const listening = new Promise<string>((resolve, reject) => {
      child.stdout?.on("data", (chunk: Buffer) => {
        this.#stdout += chunk.toString();
        const url = /listens on (http:\/\/\S+)/.exec(this.#stdout)?.[1];
        if (url !== undefined) resolve(url);
      });
      child.once("exit", (code, signal) => reject(new Error(`the server ended (${code ?? signal}) instead of listening: ${this.#log}`)));
    });
    this.#url = await within(listening, () => `the server does not start: ${this.#log}`);
  }

  /** Resolves when /readyz says that it is ready. An error that is not an answer, as during a restart, is not the end. */
  untilReady(): Promise<void> {
    return until(
      () => `the server is ready: ${this.#log}`,
      async () => (await this.get("/readyz").catch(() => undefined))?.status === 200,
    );
  }

  /**
   * Sends the signal and waits for the process to end.
   * @returns the exit code, null when a signal ended it.
   * @throws with its log if it does not end; it is killed then.
   */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
    child.kill(signal);
    try {
      return await within(exited, () => `the server does not end after ${signal}: ${this.#log}`);
    } finally {
      child.kill("SIGKILL");
    }
  }

  /** Stops it cleanly and removes its data (unless the directory was given). */
  async stop(): Promise<void> {
    await this.end("SIGTERM");
    if (this.#options.dataDir === undefined) rmSync(this.dataDir, { recursive: true, force: true });
  }
}

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const server = new TestServer(options);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `lodestone …` until it exits. */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  onStart?: (child: ChildProcess) => void,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    onStart?.(child);
  });
}

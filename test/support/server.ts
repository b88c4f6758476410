/**
 * A real server for tests: `dist/cli/main.js serve` in a process of its own, on a free port, with a data
 * directory of its own unless one is given.
 *
 * Usage: `let server; beforeAll(async () => { server = await startServer(); }); afterAll(() =>
 * server.stop());`
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyTemplate } from "./server-template.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

const START_LIMIT_MS = 150_000;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined if there is none. Tests access it without type checks. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape are examined here.
  readonly body: any;
}

export interface ServerOptions {
  readonly dataDir?: string;
  /** Start without a data directory, as a user does. */
  readonly fresh?: boolean;
  readonly databaseUrl?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class TestServer {
  readonly dataDir: string;
  readonly #options: ServerOptions;
  #process: ChildProcess | undefined;
  #url = "";
  #log = "";
  #stdout = "";

  constructor(options: ServerOptions) {
    this.#options = options;
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "lodestone-server-"));
    if (options.dataDir === undefined && options.databaseUrl === undefined && options.fresh !== true) copyTemplate(this.dataDir);
  }

  /** `http://127.0.0.1:port`. */
  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
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
    const child = spawn(process.execPath, [MAIN, "serve", "--port", "0", ...where, ...args, ...extraArgs], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, LODESTONE_LOG_LEVEL: "info", ...env },
    });
    this.#process = child;
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#log += chunk.toString();
    });
    this.#url = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the server did not start within ${START_LIMIT_MS} ms: ${this.#log}`)),
        START_LIMIT_MS,
      );
      child.stdout?.on("data", (chunk: Buffer) => {
        this.#stdout += chunk.toString();
        const url = /listens on (http:\/\/\S+)/.exec(this.#stdout)?.[1];
        if (url === undefined) return;
        clearTimeout(timer);
        resolve(url);
      });
      child.once("exit", (code, signal) => {
        clearTimeout(timer);
        reject(new Error(`the server ended (${code ?? signal}) instead of listening: ${this.#log}`));
      });
    });
  }

  /**
   * Sends the signal and waits for the process to end.
   * @returns the exit code, null when a signal ended it.
   */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
    child.kill(signal);
    return exited;
  }

  /** Stops it cleanly and removes its data (unless the directory was given). */
  async stop(): Promise<void> {
    await this.end("SIGTERM");
    if (this.#options.dataDir === undefined) rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Sends one request on a connection of its own. An object is sent as JSON, text and bytes as they are. */
  request(method: string, path: string, body?: unknown, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
    const isRaw = typeof body === "string" || body instanceof Uint8Array;
    const payload = body === undefined || isRaw ? (body as string | Uint8Array | undefined) : JSON.stringify(body);
    const defaults: OutgoingHttpHeaders =
      payload === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) };
    return new Promise((resolve, reject) => {
      // The path is sent as it is written, undecoded and unnormalised.
      const request = httpRequest(
        { host: "127.0.0.1", port: this.port, method, path, headers: { ...defaults, ...headers }, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            const isJson = /json/.test(response.headers["content-type"] ?? "") && text !== "";
            resolve({
              status: response.statusCode as number,
              headers: response.headers,
              text,
              body: isJson ? JSON.parse(text) : undefined,
            });
          });
        },
      );
      request.on("error", reject);
      request.end(payload);
    });
  }

  get(path: string, headers?: OutgoingHttpHeaders): Promise<Answer> {
    return this.request("GET", path, undefined, headers);
  }

  post(path: string, body: unknown, headers?: OutgoingHttpHeaders): Promise<Answer> {
    return this.request("POST", path, body, headers);
  }

  put(path: string, body?: unknown, headers?: OutgoingHttpHeaders): Promise<Answer> {
    return this.request("PUT", path, body, headers);
  }

  patch(path: string, body: unknown, headers?: OutgoingHttpHeaders): Promise<Answer> {
    return this.request("PATCH", path, body, headers);
  }

  delete(path: string, headers?: OutgoingHttpHeaders): Promise<Answer> {
    return this.request("DELETE", path, undefined, headers);
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

/**
 * Requests with a key, whose responses are measured and mostly discarded: the soak must not hold what the
 * server may not hold.
 */
import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";

export interface Outcome {
  /** null: no response; the connection broke, or the client left. */
  readonly status: number | null;
  readonly headers: IncomingHttpHeaders;
  /** The first characters of the response. */
  readonly head: string;
  readonly bytes: number;
  readonly elapsedMs: number;
}

export interface SendOptions {
  /** The client leaves after this time. */
  readonly leaveAfterMs?: number;
  /** Reads the response at most this fast. */
  readonly bytesPerSecond?: number;
  readonly headers?: OutgoingHttpHeaders;
}

const HEAD_LENGTH = 2_000;

export class KeyedClient {
  readonly #agent: Agent;
  readonly #port: number;
  readonly #key: string;

  constructor(port: number, key: string, sockets = 1) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: sockets });
    this.#port = port;
    this.#key = key;
  }

  send(method: string, path: string, body?: string, options: SendOptions = {}): Promise<Outcome> {
    const startedMs = performance.now();
    const headers: OutgoingHttpHeaders = { authorization: `Bearer ${this.#key}` };
    if (body !== undefined) Object.assign(headers, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    return new Promise((resolve) => {
      let status: number | null = null;
      let answered: IncomingHttpHeaders = {};
      let head = "";
      let bytes = 0;
      const done = (isWhole: boolean): void => {
        clearTimeout(leaving);
        resolve({ status: isWhole ? status : null, headers: answered, head, bytes, elapsedMs: performance.now() - startedMs });
      };
      const target = { host: "127.0.0.1", port: this.#port, method, path, headers: { ...headers, ...options.headers }, agent: this.#agent };
      const outgoing = request(target, (response) => {
        status = response.statusCode ?? null;
        answered = response.headers;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (head.length < HEAD_LENGTH) head += chunk.toString("utf8", 0, HEAD_LENGTH);
          if (options.bytesPerSecond === undefined) return;
          response.pause();
          setTimeout(() => response.resume(), (1_000 * chunk.length) / options.bytesPerSecond);
        });
        response.on("end", () => done(true));
        response.on("error", () => done(false));
        response.on("close", () => done(false));
      });
      const leaving = options.leaveAfterMs === undefined ? undefined : setTimeout(() => outgoing.destroy(), options.leaveAfterMs);
      outgoing.on("error", () => done(false));
      outgoing.end(body);
    });
  }

  /** The body as JSON; for the checks' own small requests. */
  async ask<Body>(method: string, path: string, body?: unknown): Promise<{ status: number | null; body: Body }> {
    const { status, head } = await this.send(method, path, body === undefined ? undefined : JSON.stringify(body));
    return { status, body: (head === "" ? undefined : JSON.parse(head)) as Body };
  }

  close(): void {
    this.#agent.destroy();
  }
}

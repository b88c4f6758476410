/** One client's connection: keep-alive, one request at a time, so that 64 clients are 64 sockets. */
import { Agent, request } from "node:http";

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON; undefined if there is none. Not type-checked: the caller knows what it asked for. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape are examined here.
  readonly body: any;
}

export class Connection {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /**
   * "unsent": nobody listens. null: no response (the connection broke, or the client left after
   * `leaveAfterMs`), so the request may or may not have been carried out.
   */
  send(method: string, path: string, body?: unknown, leaveAfterMs?: number): Promise<Reply | "unsent" | null> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const headers = payload === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) };
    return new Promise((resolve) => {
      const outgoing = request({ host: "127.0.0.1", port: this.#port, method, path, headers, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", () => resolve(null));
        response.on("close", () => resolve(null));
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = text !== "" && /json/.test(response.headers["content-type"] ?? "");
          resolve({ status: response.statusCode!, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined });
        });
      });
      outgoing.on("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED" ? "unsent" : null));
      if (leaveAfterMs !== undefined) setTimeout(() => outgoing.destroy(), leaveAfterMs);
      outgoing.end(payload);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

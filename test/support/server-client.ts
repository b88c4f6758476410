/** Requests to a server under test. */
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined if there is none. Tests access it without type checks. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape are examined here.
  readonly body: any;
}

export abstract class ServerClient {
  /** `http://127.0.0.1:port`. */
  abstract readonly url: string;

  get port(): number {
    return Number(new URL(this.url).port);
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

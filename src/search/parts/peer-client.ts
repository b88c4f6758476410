/** Asks another server of the same database, over HTTP, for the part that it holds. */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import {
  decodeResults,
  encodeCall,
  type PartCall,
  type PartCallOptions,
  type PartResult,
  type PartSource,
  type PartStatus,
} from "./part-messages.ts";

export const PEER_SEARCH_PATH = "/internal/part/search";
export const PEER_STATUS_PATH = "/internal/part";
/** Not "Bearer", so that keys and this secret can never be mistaken for each other. */
export const PEER_SCHEME = "Lodestone-Part";

const MAX_SOCKETS = 64;
/** Bytes that an answer may take besides its results: schema ids, brackets. */
const OVERHEAD_BYTES = 64 * 1024;
/** An id as JSON and its score take at most this many bytes per byte counted by the part. */
const BYTES_PER_COUNTED = 6;
const MAX_ANSWER_BYTES = 512 * 2 ** 20;

export class PeerClient implements PartSource {
  /** `http://host:port`, for messages to the operator. */
  readonly url: string;
  readonly #secret: string;
  readonly #request: typeof requestHttp;
  readonly #agent: HttpAgent;

  constructor(url: string, secret: string) {
    this.url = url;
    this.#secret = secret;
    const isTls = url.startsWith("https:");
    this.#request = isTls ? requestHttps : requestHttp;
    this.#agent = new (isTls ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: MAX_SOCKETS });
  }

  async search(call: PartCall, { signal, limitMs }: PartCallOptions): Promise<readonly PartResult[]> {
    const counted = call.searches.reduce((sum, { maxBytes }) => sum + Math.min(maxBytes, MAX_ANSWER_BYTES), 0);
    const maxBytes = Math.min(OVERHEAD_BYTES * call.searches.length + BYTES_PER_COUNTED * counted, MAX_ANSWER_BYTES);
    const answer = await this.#ask("POST", PEER_SEARCH_PATH, encodeCall(call, limitMs), { signal, limitMs, maxBytes });
    return this.#read(() => decodeResults(answer, call.searches.length));
  }

  async status(limitMs: number): Promise<PartStatus> {
    const answer = await this.#ask("GET", PEER_STATUS_PATH, undefined, { limitMs, maxBytes: OVERHEAD_BYTES });
    return this.#read(() => JSON.parse(answer.toString()) as PartStatus);
  }

  close(): void {
    this.#agent.destroy();
  }

  /** @throws {LodestoneError} UNAVAILABLE for every failure; the signal's reason. */
  async #ask(method: string, path: string, body: Buffer | undefined, options: PartCallOptions & { maxBytes: number }): Promise<Buffer> {
    const deadline = performance.now() + options.limitMs;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#askOnce(method, path, body, { ...options, limitMs: Math.max(1, deadline - performance.now()) });
      } catch (error) {
        options.signal?.throwIfAborted();
        if (error instanceof LodestoneError) throw error;
        // The server was restarted since the connection was last used.
        if (attempt === 0 && error instanceof StaleConnectionError) continue;
        throw this.#unavailable(error);
      }
    }
  }

  #askOnce(
    method: string,
    path: string,
    body: Buffer | undefined,
    { signal, limitMs, maxBytes }: PartCallOptions & { maxBytes: number },
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `${PEER_SCHEME} ${this.#secret}`,
        ...(body && { "content-type": "application/octet-stream", "content-length": body.length }),
      };
      const request: ClientRequest = this.#request(new URL(path, this.url), { method, headers, agent: this.#agent });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${Math.round(limitMs)} ms`)), limitMs);
      const onAbort = (): void => void request.destroy(signal!.reason as Error);
      signal?.addEventListener("abort", onAbort, { once: true });
      const settle = (done: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        done();
      };
      request.on("error", (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        settle(() => reject(isStale ? new StaleConnectionError(error.message) : error));
      });
      request.on("response", (response) => {
        collect(response, maxBytes).then(
          (bytes) => settle(() => (response.statusCode === 200 ? resolve(bytes) : reject(refusal(response, bytes)))),
          (error: Error) => settle(() => reject(error)),
        );
      });
      request.end(body);
    });
  }

  #read<Value>(decode: () => Value): Value {
    try {
      return decode();
    } catch (error) {
      throw this.#unavailable(error);
    }
  }

  #unavailable(cause: unknown): LodestoneError {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new LodestoneError("UNAVAILABLE", `${this.url}: ${why}`, { cause, retryAfterSeconds: 1 });
  }
}

class StaleConnectionError extends Error {}

async function collect(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      response.destroy();
      throw new Error(`its answer is larger than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const MAX_REFUSAL_LENGTH = 300;

function refusal({ statusCode }: IncomingMessage, bytes: Buffer): Error {
  if (statusCode === 413) return new LodestoneError("TOO_LARGE", "The search is too large to be sent to the servers of all parts.");
  return new Error(`status ${statusCode}, ${bytes.toString("utf8", 0, MAX_REFUSAL_LENGTH)}`);
}

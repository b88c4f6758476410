/** The requests of a replica: the snapshot, the changes since a position, and the newest position of the server. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { FrameReader, type ReadFrame } from "../../frames/frames.ts";
import type { FetchLike } from "./fetch-like.ts";

type Answer = Awaited<ReturnType<FetchLike>>;

export interface ReplicaAddress {
  /** Of the server, without a path: `http://127.0.0.1:8787`, or with the branch: `…/db/shop:main`. */
  readonly url: string;
  readonly table: string;
  readonly columns: readonly string[];
  readonly filter: object | undefined;
  /** An API key. */
  readonly key: string | (() => string | Promise<string>) | undefined;
  readonly fetch: FetchLike;
}

/** Whether another try does not change it: the server refuses what is asked for, or the library cannot hold it. */
export const isRefusal = (error: unknown): error is LodestoneError => error instanceof LodestoneError && error.code === "INVALID";

/** Nothing has come for longer than the server is silent. */
const SILENCE_MS = 125_000;

export class ReplicaConnection {
  readonly #address: ReplicaAddress;
  readonly #url: string;

  constructor(address: ReplicaAddress) {
    this.#address = address;
    this.#url = `${address.url.replace(/\/+$/, "")}/tables/${encodeURIComponent(address.table)}/replica`;
  }

  /** @param onBytes  told how many have come, and of how many, if that is known. */
  async *snapshot(
    signal: AbortSignal,
    onBytes: (bytes: number, total: number | undefined) => void,
  ): AsyncGenerator<ReadFrame, void, undefined> {
    const { columns, filter } = this.#address;
    const query = new URLSearchParams({ columns: columns.join(","), ...(filter !== undefined && { filter: JSON.stringify(filter) }) });
    const response = await this.#send(`${this.#url}?${query}`, {}, signal);
    const total = Number(response.headers.get("content-length") ?? Number.NaN);
    let bytes = 0;
    yield* this.#frames(response, signal, (length) => {
      bytes += length;
      onBytes(bytes, Number.isNaN(total) ? undefined : total);
    });
  }

  /**
   * @param wait  seconds for a proxy that holds answers back: then the changes come in answers that end.
   * @param fresh  the first position has everything that was written before this call.
   */
  async *changes(
    position: string,
    { wait, fresh }: { readonly wait: number | undefined; readonly fresh: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<ReadFrame, void, undefined> {
    const response = await this.#post({ position, ...(wait !== undefined && { wait }), ...(fresh && { fresh }) }, signal);
    yield* this.#frames(response, signal, () => {});
  }

  /** The read, as `<reading>~<number>`, that has everything that was written before this call. */
  async newest(signal: AbortSignal): Promise<string> {
    const { read } = (await (await this.#post({}, signal)).json()) as { read: string };
    return read;
  }

  #post(more: object, signal: AbortSignal): Promise<Answer> {
    const { columns, filter } = this.#address;
    const body = JSON.stringify({ columns, ...(filter !== undefined && { filter }), ...more });
    return this.#send(this.#url, { method: "POST", headers: { "Content-Type": "application/json" }, body }, signal);
  }

  async #send(
    url: string,
    init: { method?: string; headers?: Record<string, string>; body?: string },
    signal: AbortSignal,
  ): Promise<Answer> {
    const { key } = this.#address;
    const token = typeof key === "function" ? await key() : key;
    const headers = { ...init.headers, ...(token !== undefined && { Authorization: `Bearer ${token}` }) };
    const response = await this.#address.fetch(url, { ...init, headers, signal });
    if (response.ok) return response;
    const { message = `The server answered ${response.status}.` } = (await response.json().catch(() => ({}))) as { message?: string };
    // 408 and 429 may pass.
    const isFinal = response.status >= 400 && response.status < 500 && response.status !== 408 && response.status !== 429;
    throw new LodestoneError(isFinal ? "INVALID" : "UNAVAILABLE", message);
  }

  async *#frames(response: Answer, signal: AbortSignal, onBytes: (bytes: number) => void): AsyncGenerator<ReadFrame, void, undefined> {
    const frames = new FrameReader();
    const reader = response.body!.getReader();
    try {
      for (;;) {
        const { done, value } = await within(reader.read(), SILENCE_MS, signal);
        if (done) break;
        onBytes(value!.length);
        yield* frames.read(value!);
      }
    } finally {
      await reader.cancel().catch(() => {});
    }
    if (frames.pendingBytes > 0) throw new LodestoneError("UNAVAILABLE", "The server's answer was cut off.");
  }
}

async function within<Value>(promise: Promise<Value>, timeMs: number, signal: AbortSignal): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new LodestoneError("UNAVAILABLE", `The server was silent for ${timeMs / 1000} seconds.`)), timeMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    signal.throwIfAborted();
  }
}

/** One worker as its owner sees it: requests in order, a promise for each. The same over worker_threads and Web Workers. */
import { LodestoneError } from "../errors.ts";
import { rebuildError, type ShardReply, type ShardRequest, type ShardResults } from "./shard-messages.ts";

interface Pending {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** What both kinds of worker are reduced to. */
interface Transport {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  /** Keeps the process alive, or does not. */
  hold(isBusy: boolean): void;
  terminate(): Promise<void>;
}

export class ShardClient {
  readonly #pending = new Map<number, Pending>();
  #transport: Transport | undefined;
  #number = 0;
  #failure: Error | undefined;

  static async start(): Promise<ShardClient> {
    const client = new ShardClient();
    const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;
    client.#transport = isNode ? await client.#startThread() : await client.#startWebWorker();
    return client;
  }

  /** @param transfer  buffers that are handed over, not copied. */
  call<T extends ShardRequest["type"]>(
    request: Extract<ShardRequest, { type: T }>,
    transfer: ArrayBuffer[] = [],
  ): Promise<ShardResults[T]> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise<unknown>((resolve, reject) => {
      const number = ++this.#number;
      this.#pending.set(number, { resolve, reject });
      this.#transport?.hold(true);
      this.#transport?.post({ number, request }, transfer);
    }) as Promise<ShardResults[T]>;
  }

  /** Ends the worker; what is pending is rejected. */
  async stop(): Promise<void> {
    this.#fail(new TypeError("The index was freed; create another one."));
    await this.#transport?.terminate();
  }

  #receive({ number, value, error }: ShardReply): void {
    const pending = this.#pending.get(number);
    if (pending === undefined) return;
    this.#pending.delete(number);
    if (this.#pending.size === 0) this.#transport?.hold(false);
    if (error === undefined) pending.resolve(value);
    else pending.reject(rebuildError(error));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
  }

  #crash(why: string): void {
    this.#fail(new LodestoneError("UNAVAILABLE", `A worker of the index ended (${why}); its rows are gone. Create the index again.`));
  }

  async #startThread(): Promise<Transport> {
    const { Worker } = await import("node:worker_threads");
    const worker = new Worker(new URL("./shard-worker.js", import.meta.url));
    worker.unref();
    worker.on("message", (reply: ShardReply) => this.#receive(reply));
    worker.on("error", (error) => this.#crash(String(error)));
    worker.on("exit", (code) => this.#crash(`exit code ${code}`));
    return {
      post: (message, transfer) => worker.postMessage(message, transfer),
      hold: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
      terminate: async () => void (await worker.terminate()),
    };
  }

  async #startWebWorker(): Promise<Transport> {
    const worker = new Worker(new URL("./shard-worker.js", import.meta.url), { type: "module" });
    await new Promise<void>((resolve, reject) => {
      worker.addEventListener("message", () => resolve(), { once: true });
      worker.addEventListener(
        "error",
        (event) => reject(new LodestoneError("UNAVAILABLE", `A worker of the index did not start: ${event.message}`)),
        {
          once: true,
        },
      );
    });
    worker.addEventListener("message", (event: MessageEvent<ShardReply>) => this.#receive(event.data));
    worker.addEventListener("error", (event) => this.#crash(event.message));
    return {
      post: (message, transfer) => worker.postMessage(message, transfer),
      hold: () => {},
      terminate: async () => worker.terminate(),
    };
  }
}

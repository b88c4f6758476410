/** One worker as its owner sees it: requests in order, a promise for each. The same over worker_threads and Web Workers. */
import { LodestoneError } from "../errors.ts";
import { rebuildError, type ShardReply, type ShardRequest, type ShardResults } from "./shard-messages.ts";
import { startTransport, type Transport } from "./worker-transport.ts";

interface Pending {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

export class ShardClient {
  readonly #pending = new Map<number, Pending>();
  #transport: Transport | undefined;
  #number = 0;
  #failure: Error | undefined;

  /** @throws {LodestoneError} UNAVAILABLE where there are no workers. */
  static async start(): Promise<ShardClient> {
    const client = new ShardClient();
    client.#transport = await startTransport({ receive: (reply) => client.#receive(reply), crash: (why) => client.#crash(why) });
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
}

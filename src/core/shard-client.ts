/**
 * The owner's side of one worker: requests are sent in order, and each gets a promise. The same for
 * worker_threads and Web Workers.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { PendingCalls, rebuildError } from "../threads/worker-calls.ts";
import type { AbortSignalLike } from "./abort-signal.ts";
import type { ShardReply, ShardRequest, ShardResults } from "./shard-messages.ts";
import { startTransport, type Transport } from "./worker-transport.ts";

interface Waiting {
  number: number;
  request: ShardRequest;
  transfer: ArrayBuffer[];
}

/**
 * Limit of unanswered requests in a worker: enough to keep it busy. The rest waits here, where it can still
 * be cancelled.
 */
const MAX_SENT = 4;

export class ShardClient {
  readonly #pending = new PendingCalls();
  #transport: Transport | undefined;
  /** In call order. */
  readonly #waiting: Waiting[] = [];
  #sent = 0;
  #failure: Error | undefined;

  /** @throws {LodestoneError} UNAVAILABLE where workers do not exist. */
  static async start(): Promise<ShardClient> {
    const client = new ShardClient();
    client.#transport = await startTransport({ receive: (reply) => client.#receive(reply), crash: (why) => client.#crash(why) });
    return client;
  }

  /**
   * @param transfer  buffers that are transferred, not copied.
   * @param signal  rejects at once with its reason. A request that has not been sent is dropped.
   */
  call<T extends ShardRequest["type"]>(
    request: Extract<ShardRequest, { type: T }>,
    transfer: ArrayBuffer[] = [],
    signal?: AbortSignalLike,
  ): Promise<ShardResults[T]> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { number, answer } = this.#pending.begin<ShardResults[T]>();
    this.#waiting.push({ number, request, transfer });
    this.#send();
    if (signal === undefined) return answer;
    const onAbort = () => this.#giveUp(number, signal.reason);
    signal.addEventListener("abort", onAbort);
    return answer.finally(() => signal.removeEventListener("abort", onAbort));
  }

  /** Ends the worker. Pending requests are rejected. */
  async stop(): Promise<void> {
    this.#fail(new TypeError("The index was freed; create another one."));
    await this.#transport?.terminate();
  }

  #send(): void {
    while (this.#sent < MAX_SENT && this.#waiting.length > 0) {
      const { number, request, transfer } = this.#waiting.shift()!;
      this.#sent++;
      this.#transport?.hold(true);
      this.#transport?.post({ number, request }, transfer);
    }
  }

  #giveUp(number: number, reason: unknown): void {
    const place = this.#waiting.findIndex((waiting) => waiting.number === number);
    if (place !== -1) this.#waiting.splice(place, 1);
    this.#pending.reject(number, reason);
  }

  #receive({ number, value, error }: ShardReply): void {
    this.#sent--;
    this.#send();
    // Not after it was stopped: the process must stay alive until the awaited end of the worker, even if late
    // replies arrive first.
    if (this.#sent === 0 && this.#failure === undefined) this.#transport?.hold(false);
    if (error === undefined) this.#pending.resolve(number, value);
    else this.#pending.reject(number, rebuildError(error));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#pending.rejectAll(this.#failure);
    this.#waiting.length = 0;
  }

  #crash(why: string): void {
    this.#fail(new LodestoneError("UNAVAILABLE", `A worker of the index ended (${why}); its rows are gone. Create the index again.`));
  }
}

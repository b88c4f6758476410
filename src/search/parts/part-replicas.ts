/** One part and all servers that hold it. They are tried in turn; those that failed recently come last. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { Part } from "../../records/feed/feed-types.ts";
import { formatPart, type PartCall, type PartCallOptions, type PartResult, type PartSource } from "./part-messages.ts";
import type { PeerClient } from "./peer-client.ts";

/** After a failure a replica is tried last for this long, or until a probe succeeds. */
const SHUN_MS = 10_000;
const PROBE_LIMIT_MS = 2_000;

interface Replica {
  readonly source: PartSource;
  /** undefined: this process. */
  readonly peer: PeerClient | undefined;
  failedAt: number;
  fault: string | undefined;
}

export class PartReplicas implements PartSource {
  readonly part: Part;
  readonly #replicas: readonly Replica[];
  readonly #onFault: (error: unknown) => void;

  /** @param own  this process, if it holds the part. */
  constructor(part: Part, own: PartSource | undefined, peers: readonly PeerClient[], onFault: (error: unknown) => void) {
    this.part = part;
    const replica = (source: PartSource, peer: PeerClient | undefined): Replica => {
      return { source, peer, failedAt: Number.NEGATIVE_INFINITY, fault: undefined };
    };
    this.#replicas = [...(own === undefined ? [] : [replica(own, undefined)]), ...peers.map((peer) => replica(peer, peer))];
    this.#onFault = onFault;
  }

  /** True if the last call to every holder has failed. */
  get isMissing(): boolean {
    return this.#replicas.every((replica) => replica.fault !== undefined);
  }

  async search(call: Omit<PartCall, "part">, { signal, limitMs }: PartCallOptions): Promise<readonly PartResult[]> {
    const deadline = performance.now() + limitMs;
    const now = performance.now();
    const isShunned = ({ failedAt }: Replica): number => (now - failedAt < SHUN_MS ? 1 : 0);
    const inTurn = [...this.#replicas].sort((a, b) => isShunned(a) - isShunned(b));
    for (const [tried, replica] of inTurn.entries()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) break;
      try {
        const results = await replica.source.search({ ...call, part: this.part }, { signal, limitMs: leftMs / (inTurn.length - tried) });
        this.#well(replica);
        return results;
      } catch (error) {
        signal?.throwIfAborted();
        // A call that is too large for one is too large for all.
        if (!(error instanceof LodestoneError) || error.code === "TOO_LARGE") throw error;
        this.#failed(replica, error);
      }
    }
    throw new LodestoneError(
      "UNAVAILABLE",
      `Part ${formatPart(this.part)} of the vectors cannot be searched at the moment; try again in a moment.`,
      {
        retryAfterSeconds: 1,
      },
    );
  }

  /** Asks the peers for their state. */
  async probe(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => this.#probe(replica)));
  }

  close(): void {
    for (const { peer } of this.#replicas) peer?.close();
  }

  async #probe(replica: Replica): Promise<void> {
    const { peer } = replica;
    if (peer === undefined) return;
    try {
      const { part, ready } = await peer.status(PROBE_LIMIT_MS);
      if (part.index !== this.part.index || part.of !== this.part.of) {
        throw new LodestoneError(
          "UNAVAILABLE",
          `${peer.url} holds part ${formatPart(part)}, not ${formatPart(this.part)} as --search-peers says.`,
        );
      }
      if (!ready) throw new LodestoneError("UNAVAILABLE", `${peer.url} is still reading its part.`);
      this.#well(replica);
    } catch (error) {
      this.#failed(replica, error as Error);
    }
  }

  #well(replica: Replica): void {
    replica.failedAt = Number.NEGATIVE_INFINITY;
    replica.fault = undefined;
  }

  #failed(replica: Replica, error: Error): void {
    replica.failedAt = performance.now();
    // Reported once, until it recovers.
    const isKnown = replica.fault !== undefined;
    replica.fault = error.message;
    if (!isKnown) this.#onFault(error);
  }
}

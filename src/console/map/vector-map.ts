/** The page's end of the map's worker: loads, and asks for what is nearest, one question at a time and always the latest. */
import type { Similarity } from "lodestone";
import type { LoadRequest, MapReply, MapRequest, Neighbor, Plane, QuerySource } from "./messages.ts";

export interface Nearest {
  readonly neighbors: readonly Neighbor[];
  readonly query: Float32Array;
  readonly x: number;
  readonly y: number;
  /** The search alone, in the worker. */
  readonly ms: number;
  readonly source: QuerySource;
}

export interface NearestQuestion {
  readonly source: QuerySource;
  readonly size: number;
  readonly similarity: Similarity;
  readonly onAnswer: (nearest: Nearest) => void;
  readonly onFault?: (message: string) => void;
}

export class VectorMap {
  readonly #worker = new Worker(new URL(MAP_WORKER_FILE, document.baseURI), { type: "module" });
  #ticket = 0;
  #asked: NearestQuestion | undefined;
  #waiting: NearestQuestion | undefined;
  readonly #vectors = new Map<number, (vectors: readonly (Float32Array | undefined)[]) => void>();
  #onProgress: (rows: number) => void = () => {};
  #onPlane: (plane: Plane) => void = () => {};
  #onFault: (message: string) => void = () => {};

  constructor() {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<MapReply>) => this.#take(data));
    this.#worker.addEventListener("error", () => this.#onFault("The map's worker failed."));
  }

  load(request: Omit<LoadRequest, "kind">, onProgress: (rows: number) => void): Promise<Plane> {
    this.#onProgress = onProgress;
    return new Promise((resolve, reject) => {
      this.#onPlane = resolve;
      this.#onFault = (message) => reject(new Error(message));
      this.#send({ kind: "load", ...request });
    });
  }

  /** Questions that come while one is under way wait, and only the last of them is asked. */
  ask(question: NearestQuestion): void {
    if (this.#asked !== undefined) {
      this.#waiting = question;
      return;
    }
    this.#asked = question;
    const { source, size, similarity } = question;
    this.#send({ kind: "nearest", ticket: ++this.#ticket, source, size, similarity });
  }

  vectors(ids: readonly string[]): Promise<readonly (Float32Array | undefined)[]> {
    const ticket = ++this.#ticket;
    return new Promise((resolve) => {
      this.#vectors.set(ticket, resolve);
      this.#send({ kind: "vectors", ticket, ids });
    });
  }

  close(): void {
    this.#worker.terminate();
  }

  #send(request: MapRequest): void {
    this.#worker.postMessage(request);
  }

  #take(reply: MapReply): void {
    switch (reply.kind) {
      case "progress":
        this.#onProgress(reply.rows);
        return;
      case "plane":
        this.#onPlane(reply.plane);
        return;
      case "vectors":
        this.#vectors.get(reply.ticket)?.(reply.vectors);
        this.#vectors.delete(reply.ticket);
        return;
      case "nearest":
        this.#settle((question) => question.onAnswer({ ...reply, source: question.source }));
        return;
      case "fault":
        if (reply.ticket === undefined) this.#onFault(reply.message);
        else this.#settle((question) => question.onFault?.(reply.message));
    }
  }

  #settle(tell: (question: NearestQuestion) => void): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked !== undefined && this.#waiting === undefined) tell(asked);
    const next = this.#waiting;
    this.#waiting = undefined;
    if (next !== undefined) {
      // What was overtaken is shown all the same: the picture keeps up with the hand, one step behind.
      if (asked !== undefined) tell(asked);
      this.ask(next);
    }
  }
}

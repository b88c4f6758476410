/**
 * The page's side of the map's worker: loads, and asks for the nearest records, one question at a time and
 * always the latest.
 */
import type { Similarity } from "lodestone";
import type { FoundRecord, LoadRequest, MapReply, MapRequest, NearestReply, Plane, QuerySource } from "./messages.ts";

export interface Nearest extends Omit<NearestReply, "kind" | "ticket"> {
  readonly source: QuerySource;
}

export interface NearestQuestion {
  readonly source: QuerySource;
  readonly size: number;
  readonly similarity: Similarity;
  readonly onAnswer: (nearest: Nearest) => void;
}

type TicketedReply = Extract<MapReply, { kind: "found" | "suggested" }>;

export class VectorMap {
  readonly #worker = new Worker(new URL(MAP_WORKER_FILE, document.baseURI), { type: "module" });
  #ticket = 0;
  #asked: NearestQuestion | undefined;
  #waiting: NearestQuestion | undefined;
  readonly #replies = new Map<number, (reply: TicketedReply | undefined) => void>();
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

  /** Questions that come while one is in progress wait, and only the last of them is sent. */
  ask(question: NearestQuestion): void {
    if (this.#asked !== undefined) {
      this.#waiting = question;
      return;
    }
    this.#asked = question;
    const { source, size, similarity } = question;
    this.#send({ kind: "nearest", ticket: ++this.#ticket, source, size, similarity });
  }

  /** @returns one record for each id; undefined for ids that are not loaded. */
  async lookUp(ids: readonly string[]): Promise<readonly (FoundRecord | undefined)[]> {
    const reply = await this.#request((ticket) => ({ kind: "look up", ticket, ids }));
    return reply?.kind === "found" ? reply.records : ids.map(() => undefined);
  }

  /** @returns ids that contain the text, in order. */
  async suggest(typed: string, size: number): Promise<readonly string[]> {
    const reply = await this.#request((ticket) => ({ kind: "suggest", ticket, typed, size }));
    return reply?.kind === "suggested" ? reply.ids : [];
  }

  close(): void {
    this.#worker.terminate();
  }

  /** @returns undefined if the worker failed. */
  #request(make: (ticket: number) => MapRequest): Promise<TicketedReply | undefined> {
    const ticket = ++this.#ticket;
    return new Promise((resolve) => {
      this.#replies.set(ticket, resolve);
      this.#send(make(ticket));
    });
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
      case "found":
      case "suggested":
        this.#settleTicket(reply.ticket, reply);
        return;
      case "nearest":
        this.#settle((question) => question.onAnswer({ ...reply, source: question.source }));
        return;
      case "fault":
        if (reply.ticket === undefined) this.#onFault(reply.message);
        else if (this.#replies.has(reply.ticket)) this.#settleTicket(reply.ticket, undefined);
        else this.#settle(() => {});
    }
  }

  #settleTicket(ticket: number, reply: TicketedReply | undefined): void {
    this.#replies.get(ticket)?.(reply);
    this.#replies.delete(ticket);
  }

  /**
   * Results of overtaken questions are delivered too: the picture keeps up with the hand, one step behind.
   */
  #settle(tell: (question: NearestQuestion) => void): void {
    const asked = this.#asked;
    const next = this.#waiting;
    this.#asked = undefined;
    this.#waiting = undefined;
    if (asked !== undefined) tell(asked);
    if (next !== undefined) this.ask(next);
  }
}

/**
 * The page's side of the map's worker: loads, and asks for the nearest records, one question at a time and
 * always the latest.
 */
import type { Similarity } from "lodestone";
import { PendingCalls } from "../../threads/worker-calls.ts";
import { type Place, tablePath } from "../api/client.ts";
import { countOf } from "../state/server-content.ts";
import type {
  ColorRequest,
  FoundRecord,
  Layout,
  LoadRequest,
  MapReply,
  MapRequest,
  NearestReply,
  Plane,
  PlaneReply,
  QuerySource,
  SizeRequest,
} from "./messages.ts";
import type { PointColors } from "./point-colors.ts";
import type { PointSizes } from "./point-sizes.ts";
import { withVector } from "./vector-stream.ts";

export interface Nearest extends Omit<NearestReply, "kind" | "ticket"> {
  readonly source: QuerySource;
}

interface NearestQuestion {
  readonly source: QuerySource;
  readonly size: number;
  readonly similarity: Similarity;
  readonly onAnswer: (nearest: Nearest) => void;
}

type ReplyOf<Kind extends MapReply["kind"]> = Extract<MapReply, { kind: Kind }>;

const FAILED = "The map's worker failed.";

export class VectorMap {
  readonly #worker = new Worker(new URL(MAP_WORKER_FILE, document.baseURI), { type: "module" });
  readonly #calls = new PendingCalls();
  #isAsked = false;
  #waiting: NearestQuestion | undefined;
  #onProgress: (rows: number) => void = () => {};
  #onPlane: (reply: PlaneReply) => void = () => {};
  #onFault: (message: string) => void = () => {};
  #onShare: (share: number) => void = () => {};
  readonly #onChanged: (plane: Plane) => void;
  readonly #onOutdated: () => void;

  /**
   * @param onChanged  told what is shown when records have changed.
   * @param onOutdated  it cannot be brought up to date, and has to be read again.
   */
  constructor(onChanged: (plane: Plane) => void, onOutdated: () => void) {
    this.#onChanged = onChanged;
    this.#onOutdated = onOutdated;
    this.#worker.addEventListener("message", ({ data }: MessageEvent<MapReply>) => this.#take(data));
    this.#worker.addEventListener("error", () => {
      this.#onFault(FAILED);
      this.#calls.rejectAll(new Error(FAILED));
    });
  }

  /**
   * Reads on from where the load before it ended. Searches and colours meanwhile are those of what was there.
   * @throws why nothing came.
   */
  load(request: Omit<LoadRequest, "kind">, onProgress: (rows: number) => void): Promise<PlaneReply> {
    this.#onProgress = onProgress;
    return new Promise((resolve, reject) => {
      this.#onPlane = resolve;
      this.#onFault = (message) => reject(new Error(message));
      this.#send({ kind: "load", ...request });
    });
  }

  /** What has come of the load is its answer. */
  stop(): void {
    this.#send({ kind: "stop" });
  }

  /** Questions that come while one is in progress wait, and only the last of them is sent. */
  ask(question: NearestQuestion): void {
    if (this.#isAsked) this.#waiting = question;
    else void this.#askNow(question);
  }

  /** @returns one record for each id; undefined for ids that are not loaded. */
  async lookUp(ids: readonly string[]): Promise<readonly (FoundRecord | undefined)[]> {
    const reply = await this.#call<ReplyOf<"found">>((ticket) => ({ kind: "look up", ticket, ids }));
    return reply?.records ?? ids.map(() => undefined);
  }

  /** @throws the server's words. */
  color(request: Omit<ColorRequest, "kind" | "ticket">): Promise<PointColors> {
    const { number, answer } = this.#calls.begin<ReplyOf<"colored">>();
    this.#send({ kind: "color", ticket: number, ...request });
    return answer;
  }

  /** @throws the server's words. */
  async size(request: Omit<SizeRequest, "kind" | "ticket">): Promise<PointSizes> {
    const { number, answer } = this.#calls.begin<ReplyOf<"sized">>();
    this.#send({ kind: "size", ticket: number, ...request });
    return (await answer).sizes;
  }

  /**
   * Takes the place of a layout that is under way, which then has no points.
   * @returns x0, y0, x1, y1, … and the number of this arrangement.
   * @throws that there are too few records, or too many.
   */
  async layOut(
    layout: Layout,
    similarity: Similarity,
    onProgress: (share: number) => void = () => {},
  ): Promise<Pick<Plane, "points" | "fit"> | undefined> {
    this.#onShare = onProgress;
    const { number, answer } = this.#calls.begin<ReplyOf<"laid out">>();
    this.#send({ kind: "lay out", ticket: number, layout, similarity });
    const { points, fit } = await answer;
    return points && { points, fit };
  }

  close(): void {
    this.#worker.terminate();
  }

  async #askNow({ source, size, similarity, onAnswer }: NearestQuestion): Promise<void> {
    this.#isAsked = true;
    const reply = await this.#call<NearestReply>((ticket) => ({ kind: "nearest", ticket, source, size, similarity }));
    this.#isAsked = false;
    const next = this.#waiting;
    this.#waiting = undefined;
    // Results of overtaken questions are delivered too: the picture keeps up with the hand, one step behind.
    if (reply !== undefined) onAnswer({ ...reply, source });
    if (next !== undefined) this.ask(next);
  }

  /** @returns undefined if the worker failed. */
  #call<Reply extends MapReply>(make: (ticket: number) => MapRequest): Promise<Reply | undefined> {
    const { number, answer } = this.#calls.begin<Reply>();
    this.#send(make(number));
    return answer.catch(() => undefined);
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
        this.#onPlane(reply);
        return;
      case "changed":
        this.#onChanged(reply.plane);
        return;
      case "outdated":
        this.#onOutdated();
        return;
      case "laying out":
        this.#onShare(reply.share);
        return;
      case "found":
      case "laid out":
      case "colored":
      case "sized":
      case "nearest":
        this.#calls.resolve(reply.ticket, reply);
        return;
      case "fault":
        if (reply.ticket === undefined) this.#onFault(reply.message);
        else this.#calls.reject(reply.ticket, new Error(reply.message));
    }
  }
}

/** Records that fit the filter and have a vector in the column. */
export function countVectors(place: Place, table: string, column: string, filter: unknown): Promise<number> {
  return countOf(tablePath(place, table), withVector(column, filter));
}

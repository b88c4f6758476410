/**
 * A part of a table in this process, always current: searched without a request, and exactly.
 *
 *   opening ── kept state read ─────────────> behind <──────────────── offline
 *      │                                       │  ^                      ^  │ pause over, or the network is back
 *      └─ nothing kept ──> loading ────────────┘  └── changes come ──────│──┘
 *                            ^                 │ all that the server has │
 *                            │                 v                         │
 *                            │              current ── connection ends ──┘
 *                            └── the server cannot continue from the position (the state that is there answers meanwhile)
 *
 *   any ── the server refuses (key, table, columns, filter) ──> failed          any ── close() ──> closed
 */

import { type AbortSignalLike, throwIfAborted } from "../../core/abort-signal.ts";
import { checkType } from "../../core/options.ts";
import type { SearchOptions, SearchResult } from "../../core/search-input.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { OpenFrame, ReadFrame } from "../../frames/frames.ts";
import { encodeFrame, FrameReader } from "../../frames/frames.ts";
import { Columns } from "../columns.ts";
import type { ColumnType } from "../stored-value.ts";
import { TextColumns } from "../text-columns.ts";
import type { FetchLike } from "./fetch-like.ts";
import { isRefusal, ReplicaConnection } from "./replica-connection.ts";
import { ReplicaState, type StateOptions } from "./replica-state.ts";
import type { ReplicaStore } from "./replica-store.ts";

export type ReplicaPhase = "opening" | "loading" | "behind" | "current" | "offline" | "failed" | "closed";

export interface ReplicaStatus {
  readonly phase: ReplicaPhase;
  /** While it is loading: bytes that have come, and of how many, if the server knows. */
  readonly bytes?: number;
  readonly totalBytes?: number | undefined;
  /** Why it is offline or has failed. */
  readonly reason?: string;
}

export interface ReplicaOptions {
  /** The branch: `https://search.example.org/db/shop:main`. */
  url: string;
  table: string;
  /** Columns to hold, vector columns among them. */
  columns: readonly string[];
  /** The records to hold, in the grammar of the API; not through links. */
  filter?: object | undefined;
  /** An API key that may read, or a function that gives one. */
  key?: string | (() => string | Promise<string>) | undefined;
  /** Keeps the replica for the next start: `new IndexedDbReplicaStore()`, `new FolderReplicaStore(path)`. */
  store?: ReplicaStore | undefined;
  /** Words of all string and multiple columns can be searched. */
  words?: boolean | undefined;
  /** Workers for each vector column; default 1 in a page, else 0: in this thread. */
  shards?: number | undefined;
  /** Closes the replica. */
  signal?: AbortSignalLike | undefined;
  /** Called at every change of the status. */
  onStatus?: ((status: ReplicaStatus) => void) | undefined;
  /** Called when the state is a later one: ids that came or changed, and ids that are gone. */
  onChange?: ((change: { readonly upserted: readonly string[]; readonly deleted: readonly string[] }) => void) | undefined;
  /** Default: that of the runtime. */
  fetch?: FetchLike | undefined;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** A proxy that holds back what it passes on is one through which nothing comes for so long; then answers that end are asked for. */
const BUFFERING_MS = 20_000;
const POLL_SECONDS = 20;
/** What is appended to a store before it is written anew. */
const LEAST_REWRITTEN_BYTES = 8 << 20;

export class Replica {
  /** Bundlers rename classes. */
  static readonly name: string = "Replica";
  readonly #options: ReplicaOptions;
  readonly #connection: ReplicaConnection;
  readonly #closing = new AbortController();
  readonly #stateOptions: StateOptions;
  readonly #name: string;
  #state: ReplicaState | undefined;
  #status: ReplicaStatus = { phase: "opening" };
  #contactAt = performance.now();
  #waiters: (() => void)[] = [];
  #running: Promise<void> = Promise.resolve();
  #keptBytes = 0;
  #appendedBytes = 0;
  #isPolling = false;
  #wakePause: (() => void) | undefined;

  private constructor(options: ReplicaOptions) {
    this.#options = options;
    const { url, table, columns, filter, key, words, shards } = options;
    this.#connection = new ReplicaConnection({
      url,
      table,
      columns,
      filter,
      key,
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init as RequestInit)),
    });
    this.#stateOptions = {
      makeColumns: (types: Record<string, ColumnType>) => (words === true ? new TextColumns(types) : new Columns(types)),
      shards: shards ?? (typeof document === "undefined" ? 0 : 1),
    };
    // What is kept is of one request: another one has another name.
    this.#name = JSON.stringify([url, table, columns, filter ?? null]);
    options.signal?.addEventListener("abort", () => void this.close());
  }

  /**
   * Resolves when there is a state to search: the one that was kept, or the server's.
   *
   * @throws {TypeError} for options that are none; {LodestoneError} INVALID when the server refuses; the signal's reason.
   */
  static async open(options: ReplicaOptions): Promise<Replica> {
    checkType(typeof options.url === "string", "url", options.url, "the address of a branch");
    checkType(typeof options.table === "string", "table", options.table, "a name");
    checkType(Array.isArray(options.columns) && options.columns.length > 0, "columns", options.columns, "an array of names");
    throwIfAborted(options.signal);
    const replica = new Replica(options);
    await replica.#restore();
    replica.#running = replica.#run();
    await replica.#until(() => replica.#state !== undefined);
    return replica;
  }

  get status(): ReplicaStatus {
    return this.#status;
  }

  /** Number of records. */
  get size(): number {
    return this.#state?.size ?? 0;
  }

  /** Where the state is; opaque. */
  get position(): string | undefined {
    return this.#state?.position;
  }

  /** Milliseconds since it was known to be current. */
  get lagMs(): number {
    return this.#status.phase === "current" ? 0 : performance.now() - this.#contactAt;
  }

  /** A record's values, without its vectors; undefined: there is none. */
  get(id: string): Record<string, unknown> | undefined {
    return this.#whole().get(id);
  }

  has(id: string): boolean {
    return this.#whole().has(id);
  }

  /** A record's vector. @param column  where the replica has several. */
  vector(id: string, column?: string): Promise<Float32Array | undefined> {
    return this.#whole().vector(column, id);
  }

  /** The k best records, exactly: as `search` of a VectorIndex. @param column  where the replica has several. */
  search(query: ArrayLike<number>, { column, ...options }: SearchOptions & { column?: string } = {}): Promise<SearchResult> {
    return this.#whole().search(column, query, options);
  }

  /**
   * Resolves when the state has everything that was written before the call; with `read`, what the write had whose answer has it in
   * its header `Lodestone-Read`.
   *
   * @throws {LodestoneError} UNAVAILABLE: the server cannot be asked; INVALID: it refuses.
   */
  async current(read?: string): Promise<void> {
    const [process = "", number = ""] = (read ?? "").split("~");
    // Of another process than the one that this replica listens to: it has to be asked what that one's position is.
    const wanted = process === this.#process() ? Number(number) : undefined;
    const target = wanted === undefined ? (await this.#connection.newest(this.#closing.signal)).split("~") : [process, number];
    await this.#until(() => this.#process() === target[0] && this.#read() >= Number(target[1]));
  }

  async close(): Promise<void> {
    if (this.#status.phase === "closed") return;
    this.#closing.abort(new LodestoneError("UNAVAILABLE", "The replica is closed."));
    this.#wakePause?.();
    await this.#running.catch(() => {});
    this.#become({ phase: "closed" });
    await this.#state?.free();
  }

  #process(): string | undefined {
    return this.#state?.position?.split("~")[1];
  }

  #read(): number {
    return Number(this.#state?.position?.split("~")[2] ?? Number.NaN);
  }

  #whole(): ReplicaState {
    if (this.#status.phase === "closed") throw new LodestoneError("UNAVAILABLE", "The replica is closed.");
    return this.#state!;
  }

  #become(status: ReplicaStatus): void {
    this.#status = status;
    this.#options.onStatus?.(status);
    this.#wake();
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      this.#closing.signal.throwIfAborted();
      if (this.#status.phase === "failed") throw new LodestoneError("INVALID", this.#status.reason!);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      try {
        if (this.#state === undefined) await this.#load();
        await this.#follow(() => {
          pauseMs = FIRST_PAUSE_MS;
        });
        continue;
      } catch (error) {
        if (signal.aborted) return;
        const reason = reasonOf(error as Error);
        if (isRefusal(error)) return this.#become({ phase: "failed", reason });
        this.#become({ phase: "offline", reason });
      }
      await this.#pause(pauseMs * (1 - Math.random() / 2));
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  /** Ends early when the network is back. */
  async #pause(timeMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeMs);
      const wake = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.#wakePause = wake;
      globalThis.addEventListener?.("online", wake, { once: true });
    });
    this.#wakePause = undefined;
  }

  /** A new state from the server's snapshot, beside the one that is there. */
  async #load(): Promise<void> {
    const { signal } = this.#closing;
    this.#become({ phase: "loading", bytes: 0 });
    const frames = this.#connection.snapshot(signal, (bytes, totalBytes) => this.#become({ phase: "loading", bytes, totalBytes }));
    const state = await this.#build(frames);
    if (state === undefined) throw new LodestoneError("UNAVAILABLE", "The server's snapshot was cut off.");
    const before = this.#state;
    this.#state = state;
    this.#contactAt = performance.now();
    this.#become({ phase: "behind" });
    await before?.free();
    await this.#rewrite();
  }

  /** undefined: it has no end. */
  async #build(frames: AsyncIterable<ReadFrame>): Promise<ReplicaState | undefined> {
    let state: ReplicaState | undefined;
    let open: OpenFrame | undefined;
    let group: ReadFrame[] = [];
    let isWhole = false;
    try {
      for await (const read of frames) {
        const { frame } = read;
        if (frame.type === "open") {
          open = frame;
          state ??= await ReplicaState.create(open, this.#stateOptions);
        } else if (frame.type === "records") {
          // Nobody searches it yet, so it need not wait for its position. After the first group it has to.
          if (isWhole) group.push(read);
          else await state!.apply([read], "");
        } else if (frame.type === "position") {
          await state!.apply(group, `${open!.life}~${open!.process}~${frame.at}`);
          [group, isWhole] = [[], true];
        } else if (frame.type === "restart") break;
      }
    } catch (error) {
      await state?.free();
      throw error;
    }
    if (isWhole) return state;
    await state?.free();
    return undefined;
  }

  async #follow(onContact: () => void): Promise<void> {
    const { signal } = this.#closing;
    const state = this.#state!;
    const connection = new AbortController();
    const ends = AbortSignal.any([signal, connection.signal]);
    let open: OpenFrame | undefined;
    let group: ReadFrame[] = [];
    const buffering = setTimeout(() => {
      if (open === undefined) {
        this.#isPolling = true;
        connection.abort(new LodestoneError("UNAVAILABLE", "Nothing comes through: a proxy may hold it back."));
      }
    }, BUFFERING_MS);
    try {
      for await (const read of this.#connection.changes(state.position!, this.#isPolling ? POLL_SECONDS : undefined, ends)) {
        const { frame } = read;
        if (frame.type === "open") open = frame;
        else if (frame.type === "records") group.push(read);
        else if (frame.type === "position") {
          const position = `${open!.life}~${open!.process}~${frame.at}`;
          await state.apply(group, position);
          this.#tell(group);
          await this.#keep(open!, group, frame.at);
          group = [];
          this.#contactAt = performance.now();
          onContact();
          if (this.#status.phase !== "current") this.#become({ phase: "current" });
          else this.#wake();
        } else if (frame.type === "restart") {
          connection.abort(new LodestoneError("UNAVAILABLE", frame.reason));
          await this.#load();
          return;
        }
      }
    } finally {
      clearTimeout(buffering);
    }
    if (!this.#isPolling) throw new LodestoneError("UNAVAILABLE", "The server has ended the connection.");
  }

  #tell(group: readonly ReadFrame[]): void {
    const { onChange } = this.#options;
    if (onChange === undefined || group.length === 0) return;
    const frames = group.flatMap(({ frame }) => (frame.type === "records" ? [frame] : []));
    onChange({ upserted: frames.flatMap(({ ids }) => ids), deleted: frames.flatMap(({ deleted = [] }) => deleted) });
  }

  /** What was kept is used as far as it goes. */
  async #restore(): Promise<void> {
    const { store } = this.#options;
    if (store === undefined) return;
    try {
      const reader = new FrameReader();
      let bytes = 0;
      const frames = async function* (): AsyncGenerator<ReadFrame, void, undefined> {
        for await (const piece of store.read(this_.#name)) {
          bytes += piece.length;
          yield* reader.read(piece);
        }
      };
      const this_ = this;
      this.#state = await this.#build(frames());
      this.#keptBytes = bytes;
      if (this.#state !== undefined) this.#become({ phase: "behind" });
      // After a group that is not whole nothing can be appended.
      if (reader.pendingBytes > 0) await this.#rewrite();
    } catch {
      // Damaged, or of another format: the server has it all.
      this.#state = undefined;
      await store.delete(this.#name).catch(() => {});
    }
  }

  async #keep(open: OpenFrame, group: readonly ReadFrame[], at: string): Promise<void> {
    const { store } = this.#options;
    if (store === undefined || group.length === 0) return;
    const pieces = [
      encodeFrame(open),
      ...group.map(({ frame, vectors }) => encodeFrame(frame, [vectors])),
      encodeFrame({ type: "position", at }),
    ];
    this.#appendedBytes += pieces.reduce((sum, { length }) => sum + length, 0);
    if (this.#appendedBytes > Math.max(LEAST_REWRITTEN_BYTES, this.#keptBytes)) return this.#rewrite();
    await store.append(this.#name, pieces).catch((error: Error) => this.#notKept(error));
  }

  /** Writes the state in place of what was kept. */
  async #rewrite(): Promise<void> {
    const { store } = this.#options;
    const state = this.#state;
    if (store === undefined || state?.position === undefined) return;
    let bytes = 0;
    const counted = async function* (): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
      for await (const piece of state.frames()) {
        bytes += piece.length;
        yield piece;
      }
    };
    await store.replace(this.#name, counted()).catch((error: Error) => this.#notKept(error));
    [this.#keptBytes, this.#appendedBytes] = [bytes, 0];
  }

  /** The replica works without; the next start loads it again. */
  #notKept(error: Error): void {
    console.warn(`The replica is not kept for the next start: ${error.message}`);
  }
}

/** Node's fetch says only that it failed. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/**
 * A replica in this thread, with a connection of its own.
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
 *
 * A change is kept before it can be seen: the next start, or the next tab that leads, is never behind what was answered. A snapshot of
 * the server may be, so it is brought up to date before it can be seen.
 */
import type { SearchResult } from "../../core/search-input.ts";
import { isTextSearch, type TextSearchResult } from "../../core/text-search.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { FRAMES_VERSION, type OpenFrame, type ReadFrame } from "../../frames/frames.ts";
import { Columns } from "../columns.ts";
import type { ColumnType } from "../stored-value.ts";
import { TextColumns } from "../text-columns.ts";
import { KeptReplica } from "./kept-replica.ts";
import { isRefusal, ReplicaConnection } from "./replica-connection.ts";
import {
  epochNow,
  type ReplicaOptions,
  type ReplicaSearchOptions,
  type ReplicaSource,
  type ReplicaStatus,
  type ReplicaTextSearch,
  type ReplicaView,
} from "./replica-options.ts";
import { ReplicaState, type StateOptions } from "./replica-state.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** A proxy that holds back what it passes on is one through which nothing comes for so long; then answers that end are asked for. */
const BUFFERING_MS = 20_000;
const POLL_SECONDS = 20;
const OTHER_VERSION = "The server speaks another version of the replicas' format; use the library of its version.";
/** Why a connection is ended that another one follows. */
const RECONNECTS = new LodestoneError("UNAVAILABLE", "The replica connects once more.");
/** How often it is told at most how much has come: each time all tabs are. */
const PROGRESS_MS = 50;

export class LocalReplica implements ReplicaSource {
  readonly #options: ReplicaOptions;
  readonly #connection: ReplicaConnection;
  readonly #closing = new AbortController();
  readonly #stateOptions: StateOptions;
  readonly #kept: KeptReplica;
  readonly #onView: () => void;
  #state: ReplicaState | undefined;
  /** A whole snapshot, which may be behind what was seen; kept while the server is away. */
  #loaded: ReplicaState | undefined;
  #status: ReplicaStatus = { phase: "opening" };
  #contactAt = epochNow();
  #waiters: (() => void)[] = [];
  #running: Promise<void>;
  #isPolling = false;
  #wakePause: (() => void) | undefined;
  /** Number of the last connection for changes that was begun. */
  #connections = 0;
  /** A connection of at least this number has to begin with everything that is written; and the last one that has. */
  #fresh = 0;
  #freshened = 0;
  /** Ends the connection, so that the next one begins. undefined: there is none, or nothing has come by it yet. */
  #reconnect: (() => void) | undefined;

  /**
   * Begins at once.
   * @param name  under which it is kept.
   * @param onView  called when what can be seen of it has changed.
   */
  constructor(options: ReplicaOptions, name: string, onView: () => void = () => {}) {
    this.#options = options;
    this.#kept = new KeptReplica(options.store, name);
    this.#onView = onView;
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
      makeColumns: (types: Record<string, ColumnType>) =>
        words === undefined || words === false ? new Columns(types) : new TextColumns(types),
      shards: shards ?? (typeof document === "undefined" ? 0 : 1),
    };
    this.#running = this.#restore().then(() => this.#run());
  }

  get view(): ReplicaView {
    const state = this.#state;
    return { status: this.#status, size: state?.size ?? 0, position: state?.position, contactAt: this.#contactAt };
  }

  ready(): Promise<void> {
    return this.#until(() => this.#state !== undefined);
  }

  async get(id: string): Promise<Record<string, unknown> | undefined> {
    return this.#whole().get(id);
  }

  async vector(id: string, column?: string): Promise<Float32Array | undefined> {
    return this.#whole().vector(column, id);
  }

  async search(
    query: ArrayLike<number> | ReplicaTextSearch,
    { column, ...options }: ReplicaSearchOptions,
  ): Promise<SearchResult | TextSearchResult> {
    if (!isTextSearch(query)) return this.#whole().search(column, query, options);
    const { column: named, ...search } = query;
    const { words } = this.#options;
    const stemmer = search.stemmer ?? (typeof words === "object" ? words.stemmer : undefined);
    return this.#whole().search(named, { ...search, ...(stemmer !== undefined && { stemmer }) }, options);
  }

  async current(read?: string): Promise<void> {
    const [reading, number] = (read ?? (await this.#connection.newest(this.#closing.signal))).split("~");
    // An answer that ends tells nothing before its end.
    if (reading === this.#reading() && !this.#isPolling) {
      await this.#until(() => this.#isPolling || this.#reading() !== reading || this.#read() >= Number(number));
      if (reading === this.#reading() && this.#read() >= Number(number)) return;
    }
    // Of another server than the one whose changes come here, or of an earlier time of it: a new connection begins with all of it.
    const connection = this.#connections + 1;
    this.#fresh = connection;
    this.#reconnect?.();
    this.#wakePause?.();
    await this.#until(() => this.#freshened >= connection);
  }

  async close(): Promise<void> {
    if (this.#status.phase === "closed") return;
    this.#closing.abort(new LodestoneError("UNAVAILABLE", "The replica is closed."));
    this.#wakePause?.();
    await this.#running.catch(() => {});
    this.#become({ phase: "closed" });
    await this.#state?.free();
    await this.#loaded?.free();
  }

  /** Who counts the reads. */
  #reading(): string | undefined {
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
    this.#onView();
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
        if (this.#state === undefined || this.#state.isFailed || this.#loaded !== undefined) await this.#load();
        await this.#follow(() => {
          pauseMs = FIRST_PAUSE_MS;
        });
        continue;
      } catch (error) {
        if (signal.aborted) return;
        if (error === RECONNECTS) continue;
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
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wake: (() => void) | undefined;
    await new Promise<void>((resolve) => {
      wake = () => resolve();
      timer = setTimeout(wake, timeMs);
      this.#wakePause = wake;
      globalThis.addEventListener?.("online", wake);
    });
    clearTimeout(timer);
    globalThis.removeEventListener?.("online", wake as () => void);
    this.#wakePause = undefined;
  }

  /** A new state from the server's snapshot, beside the one that is there. */
  async #load(): Promise<void> {
    const { signal } = this.#closing;
    this.#become({ phase: "loading", bytes: 0 });
    if (this.#loaded === undefined || this.#loaded.isFailed) {
      this.#loaded = await this.#build(this.#connection.snapshot(signal, this.#progress()));
      if (this.#loaded === undefined) throw new LodestoneError("UNAVAILABLE", "The server's snapshot was cut off.");
    }
    // An answer that ends: it passes proxies that hold answers back.
    const changes = this.#connection.changes(this.#loaded.position!, { wait: POLL_SECONDS, fresh: true }, signal);
    this.#loaded = await this.#build(changes, this.#loaded);
    if (this.#loaded === undefined) throw new LodestoneError("UNAVAILABLE", "The server's snapshot was too old when it had come.");
    // What is kept is behind what is seen from now on.
    await this.#kept.forget();
    const before = this.#state;
    this.#state = this.#loaded;
    this.#loaded = undefined;
    this.#contactAt = epochNow();
    this.#become({ phase: "behind" });
    await before?.free();
    await this.#kept.replace(this.#state);
  }

  /** What tells how many bytes have come: not of each piece, but always of the last. */
  #progress(): (bytes: number, totalBytes: number | undefined) => void {
    let toldAt = performance.now();
    return (bytes, totalBytes) => {
      const now = performance.now();
      if (now < toldAt + PROGRESS_MS && bytes !== totalBytes) return;
      toldAt = now;
      this.#become({ phase: "loading", bytes, totalBytes });
    };
  }

  /**
   * undefined: the frames have no end, or say that the state cannot be continued.
   * @param into  a whole state, which the frames continue. It is left as it is when the connection breaks.
   */
  async #build(frames: AsyncIterable<ReadFrame>, into?: ReplicaState): Promise<ReplicaState | undefined> {
    let state = into;
    let open: OpenFrame | undefined;
    let group: ReadFrame[] = [];
    let isWhole = into !== undefined;
    try {
      for await (const read of frames) {
        const { frame } = read;
        if (frame.type === "open") {
          if (frame.version !== FRAMES_VERSION) throw new LodestoneError("INVALID", OTHER_VERSION);
          open = frame;
          state ??= await ReplicaState.create(open, this.#stateOptions);
        } else if (frame.type === "records") {
          // Nobody searches it yet, so it need not wait for its position. After the first group it has to.
          if (isWhole) group.push(read);
          else await state!.add(read);
        } else if (frame.type === "position") {
          await state!.apply(group, `${open!.life}~${open!.reading}~${frame.at}`);
          [group, isWhole] = [[], true];
        } else if (frame.type === "restart") {
          isWhole = false;
          break;
        }
      }
    } catch (error) {
      if (into === undefined || into.isFailed) await state?.free();
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
    const number = ++this.#connections;
    const fresh = this.#fresh > this.#freshened;
    const isPolling = this.#isPolling;
    if (isPolling && !fresh) this.#reconnect = () => connection.abort(RECONNECTS);
    let open: OpenFrame | undefined;
    let group: ReadFrame[] = [];
    const buffering = setTimeout(() => {
      if (open === undefined && !isPolling) {
        this.#isPolling = true;
        connection.abort(new LodestoneError("UNAVAILABLE", "Nothing comes through: a proxy may hold it back."));
      }
    }, BUFFERING_MS);
    try {
      for await (const read of this.#connection.changes(state.position!, { wait: isPolling ? POLL_SECONDS : undefined, fresh }, ends)) {
        const { frame } = read;
        if (frame.type === "open") {
          if (frame.version !== FRAMES_VERSION) throw new LodestoneError("INVALID", OTHER_VERSION);
          open = frame;
        } else if (frame.type === "records") group.push(read);
        else if (frame.type === "position") {
          const position = `${open!.life}~${open!.reading}~${frame.at}`;
          await this.#kept.append(open!, group, frame.at);
          await state.apply(group, position);
          this.#tell(group);
          group = [];
          await this.#kept.tidy(state);
          this.#contactAt = epochNow();
          if (fresh) this.#freshened = number;
          // Those who have asked meanwhile are served together by the next one.
          this.#reconnect = () => connection.abort(RECONNECTS);
          if (this.#fresh > number) this.#reconnect();
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
      this.#reconnect = undefined;
      clearTimeout(buffering);
    }
    if (!isPolling) throw new LodestoneError("UNAVAILABLE", "The server has ended the connection.");
  }

  #tell(group: readonly ReadFrame[]): void {
    const { onChange } = this.#options;
    if (onChange === undefined || group.length === 0) return;
    const frames = group.flatMap(({ frame }) => (frame.type === "records" ? [frame] : []));
    onChange({ upserted: frames.flatMap(({ ids }) => ids), deleted: frames.flatMap(({ deleted = [] }) => deleted) });
  }

  async #restore(): Promise<void> {
    const state = await this.#kept.restore((frames) => this.#build(frames));
    if (state === undefined) return;
    this.#state = state;
    this.#become({ phase: "behind" });
    await this.#kept.tidy(state);
  }
}

/** Node's fetch says only that it failed. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/**
 * A replica that the tabs of an origin share: one of them holds it and is connected, the others ask that one.
 *
 *   waiting ── a tab says that it leads ──> following ── that tab ends: the lock comes here ──┐
 *      └────── the lock is free ────────────────────────────────────────────────────────> leading
 *
 *   any ── close(): the lock goes to the next tab ──> closed
 *
 * The lock (Web Locks) says who leads, the channel (BroadcastChannel) carries questions and answers. A question without an answer is
 * asked again when another tab begins to lead: all of them only read. Browsers do not freeze a page that holds a lock.
 */
import type { SearchResult } from "../../core/search-input.ts";
import { isTextSearch, type TextSearchResult } from "../../core/text-search.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { LocalReplica } from "./local-replica.ts";
import {
  epochNow,
  type ReplicaChange,
  type ReplicaOptions,
  type ReplicaSearchOptions,
  type ReplicaSource,
  type ReplicaTextSearch,
  type ReplicaView,
} from "./replica-options.ts";
import type { ReplicaStore } from "./replica-store.ts";

type Call = "get" | "vector" | "search" | "current";

interface Question {
  readonly call: Call;
  readonly args: readonly unknown[];
}

interface Failure {
  readonly name: string;
  readonly message: string;
  readonly code?: LodestoneError["code"] | undefined;
}

type Message =
  /** To the tab that leads. */
  | { readonly type: "question"; readonly from: string; readonly number: number; readonly question: Question }
  | { readonly type: "hello" }
  /** From the tab that leads. */
  | { readonly type: "answer"; readonly to: string; readonly number: number; readonly value?: unknown; readonly failure?: Failure }
  | { readonly type: "view"; readonly view: ReplicaView; readonly begins: boolean }
  | { readonly type: "change"; readonly change: ReplicaChange };

interface Asked extends Question {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

const CLOSED = (): LodestoneError => new LodestoneError("UNAVAILABLE", "The replica is closed.");

const locksOf = (): LockManager | undefined => (globalThis.navigator as { locks?: LockManager } | undefined)?.locks;

/** Whether tabs have the same store, and can agree on one of them. */
export function canBeShared(store: ReplicaStore | undefined): store is ReplicaStore & { readonly sharedAs: string } {
  return store?.sharedAs !== undefined && locksOf() !== undefined && globalThis.BroadcastChannel !== undefined;
}

export class SharedReplica implements ReplicaSource {
  readonly #options: ReplicaOptions;
  readonly #name: string;
  readonly #tab = `${epochNow()}-${Math.random()}`;
  readonly #channel: BroadcastChannel;
  readonly #closing = new AbortController();
  readonly #asked = new Map<number, Asked>();
  #questions = 0;
  #local: LocalReplica | undefined;
  /** As the tab that leads has said it. */
  #view: ReplicaView = { status: { phase: "opening" }, size: 0, position: undefined, contactAt: epochNow() };
  #waiters: (() => void)[] = [];
  #leading: Promise<void>;

  /** @param store  its name among the stores of the origin. */
  constructor(options: ReplicaOptions, name: string, store: string) {
    this.#options = options;
    this.#name = name;
    const shared = `lodestone-replica ${store} ${name}`;
    this.#channel = new BroadcastChannel(shared);
    this.#channel.onmessage = ({ data }) => this.#take(data as Message);
    this.#say({ type: "hello" });
    this.#leading = this.#lead(shared);
  }

  get view(): ReplicaView {
    const own = this.#local?.view;
    if (own === undefined) return this.#view;
    // Until what is kept has been read, the state is the one that the tab before had.
    return own.position === undefined ? { ...this.#view, status: own.status } : own;
  }

  async ready(): Promise<void> {
    while (this.view.position === undefined) {
      this.#closing.signal.throwIfAborted();
      const { phase, reason } = this.view.status;
      if (phase === "failed") throw new LodestoneError("INVALID", reason!);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  get(id: string): Promise<Record<string, unknown> | undefined> {
    return this.#ask("get", id);
  }

  vector(id: string, column?: string): Promise<Float32Array | undefined> {
    return this.#ask("vector", id, column);
  }

  async search(query: ArrayLike<number> | ReplicaTextSearch, options: ReplicaSearchOptions): Promise<SearchResult | TextSearchResult> {
    const { filter, stemmer } = isTextSearch(query) ? query : { ...options, stemmer: undefined };
    checkCloneable("filter", filter, "ids or values of columns");
    checkCloneable("stemmer", stemmer, "that of Replica.open({ words: { stemmer } })");
    return this.#ask("search", query, options);
  }

  current(read?: string): Promise<void> {
    return this.#ask("current", read);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(CLOSED());
    this.#view = { ...this.view, status: { phase: "closed" } };
    await this.#leading;
    this.#channel.close();
    for (const { reject } of this.#asked.values()) reject(CLOSED());
    this.#asked.clear();
    this.#options.onStatus?.(this.#view.status);
    this.#wake();
  }

  /** Until the replica is closed. */
  async #lead(shared: string): Promise<void> {
    const { signal } = this.#closing;
    try {
      await locksOf()!.request(shared, { signal }, async () => {
        const local = new LocalReplica(
          {
            ...this.#options,
            // That it is closed is said once, when the lock is free.
            onStatus: (status) => status.phase !== "closed" && this.#options.onStatus?.(status),
            onChange: (change) => this.#tell(change),
          },
          this.#name,
          () => this.#show(false),
        );
        this.#local = local;
        this.#show(true);
        for (const [number, asked] of this.#asked) this.#answerOwn(number, asked);
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          else signal.addEventListener("abort", () => resolve(), { once: true });
        });
        this.#local = undefined;
        await local.close();
      });
    } catch (error) {
      if (signal.aborted) return;
      this.#become({ ...this.#view, status: { phase: "failed", reason: `The tabs cannot agree on one: ${(error as Error).message}` } });
    }
  }

  /** As the tab that leads: what can be seen, to all. */
  #show(begins: boolean): void {
    if (this.#local === undefined) return;
    const view = this.view;
    if (this.#local.view.position !== undefined) this.#view = view;
    this.#say({ type: "view", view, begins });
    this.#wake();
  }

  #tell(change: ReplicaChange): void {
    this.#say({ type: "change", change });
    this.#options.onChange?.(change);
  }

  #take(message: Message): void {
    if (this.#closing.signal.aborted) return;
    if (this.#local === undefined) this.#follow(message);
    else if (message.type === "hello") this.#show(false);
    else if (message.type === "question") void this.#answer(message.from, message.number, message.question);
  }

  #follow(message: Message): void {
    if (message.type === "answer") {
      if (message.to === this.#tab) this.#settle(message.number, message.value, message.failure);
    } else if (message.type === "change") this.#options.onChange?.(message.change);
    else if (message.type === "view") {
      if (message.begins) for (const [number, { call, args }] of this.#asked) this.#send(number, { call, args });
      this.#become(message.view);
    }
  }

  #become(view: ReplicaView): void {
    const before = this.#view.status;
    this.#view = view;
    if (JSON.stringify(before) !== JSON.stringify(view.status)) this.#options.onStatus?.(view.status);
    this.#wake();
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }

  async #ask<Value>(call: Call, ...args: readonly unknown[]): Promise<Value> {
    this.#closing.signal.throwIfAborted();
    return new Promise<Value>((resolve, reject) => {
      const number = ++this.#questions;
      const asked: Asked = { call, args, resolve: resolve as (value: never) => void, reject };
      this.#asked.set(number, asked);
      try {
        if (this.#local === undefined) this.#send(number, { call, args });
        else this.#answerOwn(number, asked);
      } catch (error) {
        // It cannot be cloned.
        this.#asked.delete(number);
        reject(error);
      }
    });
  }

  #send(number: number, question: Question): void {
    this.#say({ type: "question", from: this.#tab, number, question });
  }

  #answerOwn(number: number, question: Question): void {
    this.#run(question).then(
      (value) => this.#settle(number, value),
      (error) => this.#settle(number, undefined, error),
    );
  }

  async #answer(from: string, number: number, question: Question): Promise<void> {
    const reply = (more: { readonly value?: unknown; readonly failure?: Failure }): void => {
      // When it is closing, the next tab that leads is asked again.
      if (!this.#closing.signal.aborted) this.#say({ type: "answer", to: from, number, ...more });
    };
    try {
      reply({ value: await this.#run(question) });
    } catch (error) {
      const { name, message, code } = error as LodestoneError;
      reply({ failure: { name, message, code } });
    }
  }

  async #run({ call, args }: Question): Promise<unknown> {
    const local = this.#local!;
    await local.ready();
    return (local[call] as (...args: readonly unknown[]) => Promise<unknown>).apply(local, args as unknown[]);
  }

  #settle(number: number, value: unknown, failure?: Failure): void {
    const asked = this.#asked.get(number);
    if (asked === undefined) return;
    this.#asked.delete(number);
    if (failure === undefined) asked.resolve(value as never);
    else asked.reject(failure instanceof Error ? failure : errorOf(failure));
  }

  #say(message: Message): void {
    this.#channel.postMessage(message);
  }
}

/** The tab that holds the replica cannot be given a function. */
function checkCloneable(name: string, value: unknown, expected: string): void {
  if (typeof value === "function") throw new TypeError(`${name} is a function, where tabs share the replica; expected ${expected}.`);
}

function errorOf({ name, message, code }: Failure): Error {
  if (code !== undefined) return new LodestoneError(code, message);
  if (name === "TypeError") return new TypeError(message);
  if (name === "RangeError") return new RangeError(message);
  return new Error(message);
}

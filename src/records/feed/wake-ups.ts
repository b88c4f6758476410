/**
 * Wakes the followers of a branch.
 *
 * Triggers NOTIFY for writers from outside, and on the embedded engine for everybody. Sessions of our own
 * servers announce that they do it themselves (`lodestone.writer`), because PostgreSQL commits transactions
 * that NOTIFY one at a time: with 16 clients, inserts ran at half the rate. So this process wakes its own
 * followers at once, and those of other servers by one NOTIFY for all changes of some milliseconds.
 *
 * A lost wake-up costs latency, never correctness: every few seconds each server looks which outboxes have
 * grown, for all branches in one read-only statement. What a branch's own trims do is not growth, so idle
 * branches wake nobody.
 */
import { type FaultListeners, FaultState } from "../../errors/fault-state.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { FEED_CHANNEL, FEED_SEQUENCE } from "../catalog/table-ddl.ts";
import type { Engine } from "../engine/engine.ts";
import { formatBranchRef, parseBranchRef } from "../identifiers.ts";
import type { BranchRef } from "../schema.ts";

const NOTIFY_INTERVAL_MS = 10;
const SWEEP_INTERVAL_MS = 5_000;

export interface WakeUpOptions extends FaultListeners {
  /** How often to look which outboxes have grown; default 5 s. */
  readonly sweepMs?: number;
}

/** Of one branch, as a sweep finds it. */
interface Growth {
  readonly incarnation: string;
  readonly version: string;
  /** The last number that a row of the outbox was given, whether or not its transaction has committed. */
  readonly last: string | null;
  /** A transaction that began after it grew: until all before it have ended, more rows may become visible. */
  readonly openUntil: bigint | undefined;
}

const SWEEP = `SELECT database, branch, incarnation::text, version::text, pg_sequence_last_value(sequence.oid)::text AS last,
    pg_snapshot_xmin(pg_current_snapshot())::text AS xmin
  FROM lodestone.branches LEFT JOIN pg_namespace AS namespace ON nspname = schema_name
  LEFT JOIN pg_class AS sequence ON relnamespace = namespace.oid AND relname = '${FEED_SEQUENCE}' AND relkind = 'S'`;

export class WakeUps {
  readonly #engine: Engine;
  readonly #catalog: Catalog;
  readonly #listeners = new Set<(ref: BranchRef) => void>();
  readonly #stops: (() => unknown)[] = [];
  readonly #changed = new Set<string>();
  #notifyTimer: NodeJS.Timeout | undefined;
  #sweepTimer: NodeJS.Timeout | undefined;
  #swept = new Map<string, Growth>();
  #running: Promise<unknown> = Promise.resolve();
  readonly #looking: FaultState;
  readonly #telling: FaultState;

  private constructor(engine: Engine, catalog: Catalog, listeners: FaultListeners) {
    this.#engine = engine;
    this.#catalog = catalog;
    this.#looking = new FaultState("Looking for changes by others", listeners);
    this.#telling = new FaultState("Telling other servers of changes", listeners);
  }

  static async open(engine: Engine, catalog: Catalog, options: WakeUpOptions = {}): Promise<WakeUps> {
    const wakeUps = new WakeUps(engine, catalog, options);
    wakeUps.#stops.push(await engine.listen(FEED_CHANNEL, (payload) => wakeUps.#wake(parseBranchRef(payload))));
    wakeUps.#stops.push(catalog.onChange((ref) => wakeUps.#wake(ref)));
    if (!engine.isExclusive)
      wakeUps.#sweepTimer = setInterval(() => {
        wakeUps.#running = wakeUps.#looking.follow(wakeUps.#sweep());
      }, options.sweepMs ?? SWEEP_INTERVAL_MS).unref();
    return wakeUps;
  }

  onChange(listener: (ref: BranchRef) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A transaction of our own may have committed changes to records of the branch. */
  changed(ref: BranchRef): void {
    if (this.#engine.isExclusive) return; // its triggers have told
    this.#wake(ref);
    this.#changed.add(formatBranchRef(ref));
    this.#notifyTimer ??= setTimeout(() => this.#notifyOthers(), NOTIFY_INTERVAL_MS);
  }

  async close(): Promise<void> {
    for (const state of [this.#looking, this.#telling]) state.close();
    this.#listeners.clear();
    clearInterval(this.#sweepTimer);
    clearTimeout(this.#notifyTimer);
    for (const stop of this.#stops) await stop();
    if (this.#changed.size > 0) this.#notifyOthers();
    await this.#running;
  }

  #notifyOthers(): void {
    this.#notifyTimer = undefined;
    const changed = [...this.#changed];
    this.#changed.clear();
    // If it fails, the others' sweep finds the changes.
    const told = this.#engine.query("SELECT pg_notify($1, branch) FROM unnest($2::text[]) AS branch", [FEED_CHANNEL, changed]);
    this.#running = this.#telling.follow(told);
  }

  /** Wakes the branches that have changed since the last time, whoever changed them. */
  async #sweep(): Promise<void> {
    const { rows } = await this.#engine
      .query<Omit<Growth, "openUntil"> & BranchRef & { xmin: string }>(SWEEP)
      .catch((error: { message?: string }) => {
        // A branch was dropped after the statement had found its sequence.
        if (/could not open relation/.test(error.message ?? "")) return { rows: undefined };
        throw error;
      });
    if (rows === undefined) return;
    const before = this.#swept;
    const hasChanged = (row: (typeof rows)[number]): boolean => {
      const known = before.get(formatBranchRef(row));
      return known?.incarnation !== row.incarnation || known.version !== row.version || known.last !== row.last;
    };
    // A snapshot tells no such transaction: those in progress may be beyond its xmax.
    const begun = rows.some(hasChanged)
      ? (await this.#engine.query<{ id: string }>("SELECT pg_current_xact_id()::text AS id")).rows[0]!.id
      : "0";
    this.#swept = new Map();
    for (const row of rows) {
      const { database, branch, incarnation, version, last, xmin } = row;
      const ref = { database, branch };
      const key = formatBranchRef(ref);
      const isNew = hasChanged(row);
      const openUntil = before.get(key)?.openUntil;
      before.delete(key);
      this.#catalog.noticed(ref, incarnation, Number(version));
      if (isNew || openUntil !== undefined) this.#wake(ref);
      const isOpen = openUntil !== undefined && BigInt(xmin) < openUntil;
      this.#swept.set(key, { incarnation, version, last, openUntil: isNew ? BigInt(begun) : isOpen ? openUntil : undefined });
    }
    for (const key of before.keys()) this.#wake(parseBranchRef(key));
  }

  /** undefined: any branch may have changed. */
  #wake(ref: BranchRef | undefined): void {
    if (ref !== undefined) {
      for (const listener of this.#listeners) listener(ref);
      return;
    }
    // If listing fails, the next sweep finds the changes, or the engine reconnects and says so again.
    const listed = this.#catalog.allBranches().then((refs) => {
      for (const ref of refs) for (const listener of this.#listeners) listener(ref);
    });
    void this.#looking.follow(listed);
  }
}

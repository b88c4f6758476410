/**
 * Who wakes the followers of a branch. Triggers NOTIFY for whoever writes from outside, and on the embedded engine for everybody. Sessions of our own servers
 * say that they do it themselves (`lodestone.writer`), because PostgreSQL commits transactions that NOTIFY one at a time: with 16 clients inserts ran at half
 * the rate. So this process wakes its own followers at once, and those of other servers by a NOTIFY that stands for all changes of some milliseconds.
 * Nothing depends on a wake-up but time: a server looks by itself every few seconds.
 */
import type { Catalog } from "../catalog/catalog.ts";
import { FEED_CHANNEL } from "../catalog/table-ddl.ts";
import type { Engine } from "../engine/engine.ts";
import { formatBranchRef, parseBranchRef } from "../identifiers.ts";
import type { BranchRef } from "../schema.ts";

const NOTIFY_INTERVAL_MS = 10;
const SWEEP_INTERVAL_MS = 5_000;

export class WakeUps {
  readonly #engine: Engine;
  readonly #catalog: Catalog;
  readonly #listeners = new Set<(ref: BranchRef) => void>();
  readonly #stops: (() => unknown)[] = [];
  readonly #changed = new Set<string>();
  #notifyTimer: NodeJS.Timeout | undefined;
  #sweepTimer: NodeJS.Timeout | undefined;
  #sweptTo = "";
  #running: Promise<unknown> = Promise.resolve();

  private constructor(engine: Engine, catalog: Catalog) {
    this.#engine = engine;
    this.#catalog = catalog;
  }

  static async open(engine: Engine, catalog: Catalog): Promise<WakeUps> {
    const wakeUps = new WakeUps(engine, catalog);
    wakeUps.#stops.push(await engine.listen(FEED_CHANNEL, (payload) => wakeUps.#wake(parseBranchRef(payload))));
    wakeUps.#stops.push(catalog.onChange((ref) => wakeUps.#wake(ref)));
    if (engine.kind === "server") wakeUps.#sweepTimer = setInterval(() => wakeUps.#sweep(), SWEEP_INTERVAL_MS).unref();
    return wakeUps;
  }

  onChange(listener: (ref: BranchRef) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A transaction of our own may have committed changes to records of the branch. */
  changed(ref: BranchRef): void {
    if (this.#engine.kind === "embedded") return; // its triggers have told
    this.#wake(ref);
    this.#changed.add(formatBranchRef(ref));
    this.#notifyTimer ??= setTimeout(() => this.#notifyOthers(), NOTIFY_INTERVAL_MS);
  }

  async close(): Promise<void> {
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
    this.#running = this.#engine
      .query("SELECT pg_notify($1, branch) FROM unnest($2::text[]) AS branch", [FEED_CHANNEL, changed])
      .catch(() => {}); // the others' sweep finds the changes
  }

  /** Wakes everybody if any transaction, whosever, has ended since the last time. */
  #sweep(): void {
    this.#running = this.#engine.query<{ latest: string }>("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS latest").then(
      ({ rows }) => {
        const latest = rows[0]!.latest;
        if (latest !== this.#sweptTo) this.#wake(undefined);
        this.#sweptTo = latest;
      },
      () => {}, // the database is away; the next time
    );
  }

  /** undefined: any branch may have changed. */
  #wake(ref: BranchRef | undefined): void {
    if (ref !== undefined) {
      for (const listener of this.#listeners) listener(ref);
      return;
    }
    // Should the list not be had, the engine reconnects later and says so again.
    void this.#catalog.listAllBranches().then(
      (branches) => {
        for (const branch of branches) for (const listener of this.#listeners) listener(branch.ref);
      },
      () => {},
    );
  }
}

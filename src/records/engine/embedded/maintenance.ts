/**
 * Does what a PostgreSQL server leaves to background processes, which a single session does not have:
 * checkpoints (the WAL would grow without end), vacuum and analyze (the space of deleted rows would never be
 * reused, plans would go stale), and freezing of old transaction ids.
 *
 * It takes turns with everybody's units, one statement at a time. While others wait, only what is overdue
 * runs.
 */
import { type FaultListeners, FaultState } from "../../../errors/fault-state.ts";
import type { Connection } from "../engine.ts";

const LOOK_EVERY_MS = 15_000;
/** Recovery after a kill replays about this much at most. */
const CHECKPOINT_BYTES = 64 * 1024 * 1024;
const CHECKPOINT_AFTER_MS = 5 * 60_000;
/** A quarter of what PostgreSQL allows before it stops taking writes. */
const FREEZE_AGE = 500_000_000;
const OVERDUE_FACTOR = 3;

export interface MaintenanceOptions extends FaultListeners {
  /** Pause between two looks. */
  readonly maintenanceEveryMs?: number | undefined;
}

export interface MaintenanceHost extends Pick<Connection, "query"> {
  /** Units of work that others have asked for and that have not begun. */
  readonly waiting: number;
  /** Units run so far, without those of maintenance. If it has not changed, nothing can have been written. */
  readonly unitsRun: number;
  /** A backup is running: the log files it needs must stay. */
  readonly isHeld: boolean;
}

export class Maintenance {
  readonly #host: MaintenanceHost;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** undefined: it has not looked yet. */
  #unitsSeen: number | undefined;
  #running: Promise<void> | null = null;
  #stopped = false;
  readonly #fault: FaultState;

  constructor(host: MaintenanceHost, options: MaintenanceOptions = {}) {
    this.#host = host;
    this.#everyMs = options.maintenanceEveryMs ?? LOOK_EVERY_MS;
    this.#fault = new FaultState("Maintenance of the database", options);
  }

  /** From now on looks regularly. For when the database is open. */
  start(): void {
    this.#timer = setInterval(() => this.look(), this.#everyMs).unref();
  }

  /** Also called between two ticks, after much has been written. */
  look(): void {
    if (this.#stopped || this.#host.isHeld || this.#running !== null || this.#host.unitsRun === this.#unitsSeen) return;
    this.#unitsSeen = this.#host.unitsRun;
    this.#running = this.#run()
      // A statement that fails (disk full) is tried again next time.
      .then(
        () => this.#fault.works(),
        (error: unknown) => {
          // What was under way when the database was closed need not be done.
          if (!this.#stopped) this.#fault.failed(error);
        },
      )
      .finally(() => {
        this.#running = null;
      });
  }

  /** Resolves when the current run, if any, has ended. */
  async finished(): Promise<void> {
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #run(): Promise<void> {
    await this.#checkpoint();
    await this.#vacuum();
    await this.#freeze();
  }

  async #checkpoint(): Promise<void> {
    // A checkpoint with a time in the future was made before the clock was set back; its age counts too.
    const { rows } = await this.#host.query<{ bytes: number; age_ms: number }>(
      `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 AS bytes,
         abs(extract(epoch FROM clock_timestamp() - checkpoint_time) * 1000)::float8 AS age_ms FROM pg_control_checkpoint()`,
    );
    const { bytes, age_ms: ageMs } = rows[0]!;
    // A checkpoint itself writes some hundred bytes.
    if (bytes > CHECKPOINT_BYTES || (bytes > 1_000 && ageMs > CHECKPOINT_AFTER_MS))
      await this.#host.query("CHECKPOINT", [], { isUpkeep: true });
  }

  /**
   * Uses the thresholds of autovacuum. Its counters are lost when the session is killed, so a table that has
   * grown by half since its last vacuum counts too.
   *
   * Vectors are left out of ANALYZE: statistics of an array count each of its elements, which takes most of a second for 100,000 vectors
   * of 128 dimensions and more for longer ones, and no plan needs them.
   */
  async #vacuum(): Promise<void> {
    await this.#host.query("SELECT pg_stat_force_next_flush()");
    const { rows } = await this.#host.query<{ name: string; columns: string; vacuum: number; analyze: number }>(
      `SELECT format('%I.%I', s.schemaname, s.relname) AS name,
          (SELECT string_agg(quote_ident(attname), ', ') FILTER (WHERE atttypid <> 'real[]'::regtype)
            FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS columns,
          greatest(s.n_dead_tup / (50 + 0.2 * greatest(c.reltuples, 0)), s.n_ins_since_vacuum / (1000 + 0.2 * greatest(c.reltuples, 0)),
            (pg_relation_size(c.oid) - 4194304) / (1.5 * 8192 * greatest(c.relpages, 1)))::float8 AS vacuum,
          (s.n_mod_since_analyze / (50 + 0.1 * greatest(c.reltuples, 0)))::float8 AS analyze
        FROM pg_stat_all_tables s JOIN pg_class c ON c.oid = s.relid
        WHERE s.schemaname NOT LIKE 'pg\\_toast%' AND c.relpersistence = 'p' AND c.relkind = 'r'`,
    );
    for (const { name, columns, vacuum, analyze } of rows) {
      if (this.#stopped) return;
      const due = Math.max(vacuum, analyze);
      if (due < 1 || (due < OVERDUE_FACTOR && this.#host.waiting > 0)) continue;
      const statement = vacuum >= 1 ? `VACUUM (ANALYZE, TRUNCATE FALSE) ${name} (${columns})` : `ANALYZE ${name} (${columns})`;
      await this.#host.query(statement).catch((error: { code?: string }) => {
        if (error.code !== "42P01" && error.code !== "3F000") throw error; // dropped since
      });
    }
  }

  async #freeze(): Promise<void> {
    const { rows } = await this.#host.query<{ age: number }>("SELECT max(age(datfrozenxid))::int4 AS age FROM pg_database");
    if (rows[0]!.age > FREEZE_AGE) await this.#host.query("VACUUM (FREEZE)");
  }
}

/**
 * Decides which rows of the outboxes are still needed. Every process that follows a branch has a row in
 * `lodestone.followers` with its position. What all of them have seen is removed, and `lodestone.feeds.horizon`
 * remembers how far. A process that was not heard from for `LEASE` no longer holds rows back (nor does a follower that has said that
 * it needs none, `release`); if it returns, it finds its position below the horizon and reads everything again. Horizon and rows
 * change in one transaction, so whoever reads both in one snapshot sees a consistent state.
 *
 * An idle branch costs nothing: only a follower that was given outbox rows writes that they are no longer
 * needed. Besides that, each server writes one row a minute, `lodestone.processes`, that it is still there.
 * (One for each branch made PostgreSQL vacuum and analyze the table as often.)
 */
import { randomUUID } from "node:crypto";
import { type FaultListeners, FaultState } from "../../errors/fault-state.ts";
import { FEED_TABLE } from "../catalog/table-ddl.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { qualified } from "../identifiers.ts";
import type { BranchInfo } from "../schema.ts";
import { xmaxOf, xminOf } from "./position.ts";

const LEASE = "10 minutes";
const HEARTBEAT_MS = 60_000;
/** Removing is a commit of its own, so not every change is worth one. */
const TRIM_INTERVAL_MS = 2_000;
const IS_SILENT = `seen_at < now() - interval '${LEASE}'
  AND follower NOT IN (SELECT follower FROM lodestone.processes WHERE seen_at >= now() - interval '${LEASE}')`;
/** Branches whose outbox another follower has held back, tried again at one heartbeat. */
const TRIMS_PER_HEARTBEAT = 100;

export interface RetentionOptions extends FaultListeners {
  /** Tells the followers of one process apart. */
  readonly name?: string;
  readonly trimIntervalMs?: number;
  readonly heartbeatMs?: number;
}

interface FollowedBranch {
  readonly schemaName: string;
  /** The xmin that this process has acknowledged, and the one that the database knows. */
  acknowledged: bigint;
  recorded: bigint;
  /** The outbox may have rows of transactions below this; those up to the horizon are removed. */
  rowsBelow: bigint;
  horizon: bigint;
}

type Held = readonly [incarnation: string, state: FollowedBranch];

export class FeedRetention {
  readonly #engine: Engine;
  /** All of this process: none of them is silent. */
  readonly #ofProcess: Set<FeedRetention>;
  /** The embedded engine has one process at a time, so what an earlier one needed is what this one needs. */
  readonly #follower: string;
  readonly #trimIntervalMs: number;
  /** By incarnation. */
  readonly #branches = new Map<string, FollowedBranch>();
  readonly #pending = new Map<string, NodeJS.Timeout>();
  readonly #heartbeat: NodeJS.Timeout | undefined;
  readonly #trims: FaultState;
  readonly #beats: FaultState;
  #running: Promise<void> = Promise.resolve();

  constructor(engine: Engine, options: RetentionOptions = {}, ofProcess = new Set<FeedRetention>()) {
    this.#engine = engine;
    this.#ofProcess = ofProcess.add(this);
    this.#follower = engine.isExclusive ? `embedded${options.name ?? ""}` : randomUUID();
    this.#trimIntervalMs = options.trimIntervalMs ?? TRIM_INTERVAL_MS;
    this.#trims = new FaultState("Removing changes that every server has seen", options);
    this.#beats = new FaultState("Telling the other servers that this one still follows the changes", options);
    if (!engine.isExclusive) this.#heartbeat = setInterval(() => this.#beat(), options.heartbeatMs ?? HEARTBEAT_MS).unref();
  }

  /**
   * Must be called before a position is relied on: from then on no other process removes what comes after it.
   * Cheap when called again.
   */
  async follow(branch: BranchInfo, snapshot: string): Promise<void> {
    if (this.#branches.has(branch.incarnation)) return;
    const xmin = xminOf(snapshot);
    await this.#engine.transaction((connection) => this.#record(connection, branch.incarnation, branch.schemaName, xmin), {
      isUpkeep: true,
    });
    this.#branches.set(branch.incarnation, {
      schemaName: branch.schemaName,
      acknowledged: xmin,
      recorded: xmin,
      // Unknown: there may be some.
      rowsBelow: xmaxOf(snapshot),
      horizon: 0n,
    });
  }

  /** The follower was given rows of the outbox that `snapshot` sees. */
  delivered(incarnation: string, snapshot: string): void {
    const state = this.#branches.get(incarnation);
    const xmax = xmaxOf(snapshot);
    if (state !== undefined && xmax > state.rowsBelow) state.rowsBelow = xmax;
  }

  /** Soon removes what nobody needs any more. */
  async acknowledge(branch: BranchInfo, snapshot: string): Promise<void> {
    await this.follow(branch, snapshot);
    const state = this.#branches.get(branch.incarnation)!;
    const xmin = xminOf(snapshot);
    if (xmin > state.acknowledged) state.acknowledged = xmin;
    if (state.acknowledged === state.recorded || state.recorded >= state.rowsBelow) return;
    if (this.#trimIntervalMs === 0) return this.#trim(branch.incarnation);
    if (this.#pending.has(branch.incarnation)) return;
    const timer = setTimeout(() => {
      this.#pending.delete(branch.incarnation);
      // Rows that stay a little longer do no harm; the next acknowledgement tries again.
      this.#running = this.#trims.follow(this.#trim(branch.incarnation));
    }, this.#trimIntervalMs).unref();
    this.#pending.set(branch.incarnation, timer);
  }

  /** This follower needs nothing of the branch any more, until it follows again. */
  async release(incarnation: string): Promise<void> {
    this.forget(incarnation);
    await this.#engine.transaction(
      (connection) =>
        connection.query(
          `DELETE FROM lodestone.followers WHERE follower = $2
             AND schema_name = (SELECT schema_name FROM lodestone.branches WHERE incarnation = $1::uuid)`,
          [incarnation, this.#follower],
        ),
      { isUpkeep: true },
    );
  }

  /** The branch is gone, or another one has its name. */
  forget(incarnation: string): void {
    clearTimeout(this.#pending.get(incarnation));
    this.#pending.delete(incarnation);
    this.#branches.delete(incarnation);
  }

  /** Bytes of the branch's outbox, with rows that were removed and not yet written over. */
  async outboxBytes(branch: BranchInfo): Promise<number> {
    return this.#engine.transaction(
      async (connection) => {
        const { rows } = await connection.query<{ bytes: string }>("SELECT coalesce(pg_relation_size(to_regclass($1)), 0)::text AS bytes", [
          qualified(branch.schemaName, FEED_TABLE),
        ]);
        return Number(rows[0]!.bytes);
      },
      { isUpkeep: true },
    );
  }

  /** The rows stay as they are: a process that starts again within the lease continues where this one stopped. */
  async close(): Promise<void> {
    for (const state of [this.#trims, this.#beats]) state.close();
    clearInterval(this.#heartbeat);
    for (const timer of this.#pending.values()) clearTimeout(timer);
    this.#pending.clear();
    await this.#running;
    this.#ofProcess.delete(this);
  }

  #trim(incarnation: string): Promise<void> {
    return this.#engine.transaction((connection) => this.#trimIn(connection, incarnation), { isUpkeep: true });
  }

  async #trimIn(connection: Connection, incarnation: string): Promise<void> {
    const state = this.#branches.get(incarnation);
    if (state === undefined) return;
    const { acknowledged, schemaName } = state;
    // A branch that was dropped meanwhile has no row to lock, and nothing to remove.
    const locked = await connection.query(
      "SELECT 1 FROM lodestone.feeds JOIN lodestone.branches USING (schema_name) WHERE schema_name = $1 AND incarnation = $2::uuid FOR UPDATE OF feeds",
      [schemaName, incarnation],
    );
    if (locked.rows.length === 0) return;
    await this.#record(connection, incarnation, schemaName, acknowledged);
    const alive = [...this.#ofProcess].filter((own) => own.#branches.has(incarnation)).map((own) => own.#follower);
    await connection.query(`DELETE FROM lodestone.followers WHERE schema_name = $1 AND ${IS_SILENT} AND follower <> ALL ($2::text[])`, [
      schemaName,
      alive,
    ]);
    const { rows } = await connection.query<{ horizon: string }>(
      `UPDATE lodestone.feeds SET horizon = greatest(horizon, (SELECT min(seen_below) FROM lodestone.followers WHERE schema_name = $1))
       WHERE schema_name = $1 RETURNING horizon::text`,
      [schemaName],
    );
    await connection.query(`DELETE FROM ${qualified(schemaName, FEED_TABLE)} WHERE txid < $1::xid8`, [rows[0]!.horizon]);
    // If the transaction fails after all, the next rows are the next reason to try.
    state.recorded = acknowledged;
    state.horizon = BigInt(rows[0]!.horizon);
  }

  async #record(connection: Connection, incarnation: string, schemaName: string, xmin: bigint): Promise<void> {
    await connection.query(
      `INSERT INTO lodestone.followers (schema_name, follower, seen_below)
       SELECT schema_name, $3, $4::xid8 FROM lodestone.branches WHERE schema_name = $1 AND incarnation = $2::uuid
       FOR KEY SHARE -- waits for a branch that is being dropped: the foreign key would refuse it
       ON CONFLICT (schema_name, follower) DO UPDATE SET seen_below = excluded.seen_below, seen_at = now()`,
      [schemaName, incarnation, this.#follower, String(xmin)],
    );
  }

  /**
   * Says that this process is alive, and removes rows that others still needed when they were acknowledged
   * here.
   */
  #beat(): void {
    const heldBack = [...this.#branches]
      .filter(([, { horizon, acknowledged, rowsBelow }]) => horizon < rowsBelow && horizon < acknowledged)
      // All servers lock them in the same order.
      .sort(([, a], [, b]) => (a.schemaName < b.schemaName ? -1 : 1));
    const beaten = this.#engine.transaction(async (connection) => {
      await connection.query(
        "INSERT INTO lodestone.processes (follower) VALUES ($1) ON CONFLICT (follower) DO UPDATE SET seen_at = now()",
        [this.#follower],
      );
      await connection.query(`DELETE FROM lodestone.processes WHERE seen_at < now() - interval '${LEASE}'`);
      const movable = await this.#movable(connection, heldBack);
      for (const [incarnation] of movable) await this.#trimIn(connection, incarnation);
    });
    this.#running = this.#beats.follow(beaten);
  }

  /** Those whose horizon a trim would move: a branch that is held back and idle is only read. */
  async #movable(connection: Connection, heldBack: readonly Held[]): Promise<Held[]> {
    const { rows } = await connection.query<{ schema_name: string; horizon: string; can_move: boolean }>(
      `SELECT schema_name, horizon::text, horizon <
         (SELECT min(seen_below) FROM lodestone.followers WHERE followers.schema_name = feeds.schema_name AND NOT (${IS_SILENT})) AS can_move
       FROM lodestone.feeds WHERE schema_name = ANY ($1::text[])`,
      [heldBack.map(([, { schemaName }]) => schemaName)],
    );
    const found = new Map(rows.map((row) => [row.schema_name, row]));
    const movable = heldBack.filter(([, state]) => {
      const row = found.get(state.schemaName);
      if (row !== undefined) state.horizon = BigInt(row.horizon);
      return row?.can_move === true || state.recorded < state.acknowledged;
    });
    return movable.slice(0, TRIMS_PER_HEARTBEAT);
  }
}

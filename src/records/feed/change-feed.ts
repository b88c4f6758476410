/** The change feed on either engine: see ../feed.ts for what it promises, position.ts and outbox.ts for why no change is skipped. */
import { LodestoneError } from "../../errors.ts";
import { systemColumnType } from "../../filter/system-columns.ts";
import { findBranch, toBranchInfo } from "../catalog/branch-rows.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { formatBranchRef } from "../identifiers.ts";
import type { BranchInfo, BranchRef, TableInfo } from "../schema.ts";
import type { ChangeFeed, FeedBatch, FeedChanges, FeedPosition } from "./feed-types.ts";
import { type OutboxRow, readOutbox } from "./outbox.ts";
import { formatPosition, type Position, parsePosition, xmaxOf, xminOf } from "./position.ts";
import { type RecordPiece, RecordReader } from "./record-reader.ts";
import { FeedRetention } from "./retention.ts";
import { WakeUps } from "./wake-ups.ts";

/** Outbox rows per read, and what their values may take before the read is cut short. */
const MAX_CHANGES = 4_096;
const READ_BYTES = 4_000_000;
/** Rows whose values are read together, first and at most: doubled while they turn out small. */
const FIRST_CHUNK = 64;

interface BranchState {
  readonly snapshot: string;
  readonly branch: BranchInfo;
  readonly horizon: bigint;
}

export class RecordFeed implements ChangeFeed {
  readonly #engine: Engine;
  readonly #catalog: Catalog;
  readonly #retention: FeedRetention;
  readonly #wakeUps: WakeUps;
  /** As last read: schemas can be large, and change seldom. */
  readonly #branches = new Map<string, BranchInfo>();

  private constructor(engine: Engine, catalog: Catalog, wakeUps: WakeUps, options: { trimIntervalMs?: number }) {
    this.#engine = engine;
    this.#catalog = catalog;
    this.#wakeUps = wakeUps;
    this.#retention = new FeedRetention(engine, options);
  }

  static async open(engine: Engine, catalog: Catalog, options: { trimIntervalMs?: number } = {}): Promise<RecordFeed> {
    return new RecordFeed(engine, catalog, await WakeUps.open(engine, catalog), options);
  }

  async close(): Promise<void> {
    await this.#wakeUps.close();
    await this.#retention.close();
  }

  onChange(listener: (ref: BranchRef) => void): () => void {
    return this.#wakeUps.onChange(listener);
  }

  /** To be called after each write of records through this process, whether it succeeded or its outcome is not known. */
  changed(ref: BranchRef): void {
    this.#wakeUps.changed(ref);
  }

  /**
   * Many short transactions rather than one long one, which would stop all writers of the embedded engine and hold back the vacuum of a server: the tables
   * are read piece by piece, and then what changed since the first moment is read once more, until the result is that of one snapshot.
   *
   * @throws {LodestoneError} CONFLICT when the schema changed in between: what was read is of no use; call again. NOT_FOUND when the branch was dropped.
   */
  async readAll(
    ref: BranchRef,
    tables: readonly { readonly table: string; readonly columns?: readonly string[] }[],
    onBatch: (batch: FeedBatch) => Promise<void>,
  ): Promise<{ position: FeedPosition; incarnation: string; schemaVersion: number; tables: readonly TableInfo[] }> {
    const registered = await this.#read((connection) => this.#readState(connection, ref));
    await this.#retention.follow(registered.branch, registered.snapshot);
    const start = await this.#read((connection) => this.#readState(connection, ref));
    const readers = tables.map(({ table, columns }) => readerOf(start.branch, table, columns));
    for (const reader of readers) {
      const readPiece = (after: string | undefined): Promise<RecordPiece> =>
        this.#read(async (connection) => {
          requireSame(start.branch, (await this.#readState(connection, ref)).branch);
          return reader.read(connection, after);
        });
      // The database reads the next piece while the follower takes this one.
      let next: Promise<RecordPiece> | undefined = readPiece(undefined);
      while (next !== undefined) {
        const { batch, last }: RecordPiece = await next;
        next = last === undefined ? undefined : readPiece(last);
        next?.catch(() => {}); // awaited in the next turn, unless onBatch rejects
        if (batch.ids.length > 0) await onBatch(batch);
      }
    }

    let position: Position = { snapshot: start.snapshot };
    for (;;) {
      const changes = await this.#readChanges(ref, position, start.branch.incarnation, readers);
      if (changes === null) throw changedMeanwhile(ref);
      requireSame(start.branch, changes.branch);
      for (const batch of changes.batches) await onBatch(batch);
      position = changes.position;
      if (changes.complete) break;
    }
    return {
      position: formatPosition(position),
      incarnation: start.branch.incarnation,
      schemaVersion: start.branch.version,
      tables: [...start.branch.tables.values()],
    };
  }

  async readSince(ref: BranchRef, position: FeedPosition, incarnation: string): Promise<FeedChanges | null> {
    const parsed = parsePosition(position);
    const changes = parsed === undefined ? null : await this.#readChanges(ref, parsed, incarnation);
    if (changes === null) {
      this.#retention.forget(incarnation);
      return null;
    }
    await this.#retention.follow(changes.branch, parsed!.snapshot);
    if (changes.hasRows) this.#retention.delivered(incarnation, changes.position.partial?.target ?? changes.position.snapshot);
    return {
      position: formatPosition(changes.position),
      schemaVersion: changes.branch.version,
      complete: changes.complete,
      batches: changes.batches,
    };
  }

  async acknowledge(ref: BranchRef, position: FeedPosition, incarnation: string): Promise<void> {
    const parsed = parsePosition(position);
    if (parsed === undefined) throw new LodestoneError("INVALID", `"${position.slice(0, 80)}" is not a position of a change feed.`);
    const branch = await this.#catalog.branch(ref);
    // A position says nothing about another life of the branch.
    if (branch.incarnation === incarnation) await this.#retention.acknowledge(branch, parsed.snapshot);
  }

  /** `readers` limits what is read to their tables and columns. */
  async #readChanges(ref: BranchRef, position: Position, incarnation: string, readers?: readonly RecordReader[]) {
    const read = async (connection: Connection) => {
      const state = await this.#readState(connection, ref);
      if (state.branch.incarnation !== incarnation || !isReachable(position, state)) return null;
      const rows = await readOutbox(connection, state.branch.schemaName, position, MAX_CHANGES);
      const { batches, taken } = await readValues(connection, rows, (physicalName) =>
        readers === undefined
          ? readerOfPhysical(state.branch, physicalName)
          : readers.find((reader) => reader.table.physicalName === physicalName),
      );
      return { branch: state.branch, batches, hasRows: rows.length > 0, ...advance(position, state.snapshot, rows, taken) };
    };
    // Before whatever waits: behind a queue of writers the searches would fall back by as long as the queue takes.
    return this.#read(read, true);
  }

  /** The branch and the bounds of its feed, as the transaction's snapshot sees them. */
  async #readState(connection: Connection, ref: BranchRef): Promise<BranchState> {
    const { rows } = await connection.query<{ incarnation: string; version: string; snapshot: string; horizon: string }>(
      `SELECT incarnation::text, version::text, pg_current_snapshot()::text AS snapshot, horizon::text
       FROM lodestone.branches JOIN lodestone.feeds USING (schema_name) WHERE database = $1 AND branch = $2`,
      [ref.database, ref.branch],
    );
    const key = formatBranchRef(ref);
    let branch = this.#branches.get(key);
    if (rows[0] === undefined || branch?.incarnation !== rows[0].incarnation || branch.version !== Number(rows[0].version)) {
      this.#branches.delete(key);
      branch = toBranchInfo(await findBranch(connection, ref));
      this.#branches.set(key, branch);
    }
    this.#catalog.noticed(ref, branch.incarnation, branch.version);
    return { snapshot: rows[0]!.snapshot, branch, horizon: BigInt(rows[0]!.horizon) };
  }

  #read<Result>(work: (connection: Connection) => Promise<Result>, urgent = false): Promise<Result> {
    return this.#engine.transaction(work, { readOnly: true, isolation: "repeatable read", urgent });
  }
}

/** Not below what was removed, and not from a future that this database has not had (an older copy of it was put back). */
function isReachable(position: Position, state: BranchState): boolean {
  const latest = position.partial?.target ?? position.snapshot;
  return xminOf(position.snapshot) >= state.horizon && xmaxOf(latest) <= xmaxOf(state.snapshot);
}

/** The position after the first `taken` of `rows`. */
function advance(
  position: Position,
  snapshot: string,
  rows: readonly OutboxRow[],
  taken: number,
): { position: Position; complete: boolean } {
  const target = position.partial?.target ?? snapshot;
  if (taken === rows.length && rows.length < MAX_CHANGES) {
    // All that the target sees is delivered. Read with a later snapshot, some values may be later than the target: then one more read completes it.
    return { position: { snapshot: target }, complete: position.partial === undefined };
  }
  const { txid, seq } = rows[taken - 1]!;
  return { position: { snapshot: position.snapshot, partial: { target, txid, seq } }, complete: false };
}

/** The current values of the records that `rows` name, as far as they fit; `taken` of the rows are covered. Rows of tables without a reader are passed over. */
async function readValues(
  connection: Connection,
  rows: readonly OutboxRow[],
  readerOfTable: (physicalName: string) => RecordReader | undefined,
): Promise<{ batches: FeedBatch[]; taken: number }> {
  const batches: FeedBatch[] = [];
  const delivered = new Map<string, Set<string>>();
  let taken = 0;
  let bytes = 0;
  for (let size = FIRST_CHUNK; taken < rows.length && bytes < READ_BYTES; size *= 2) {
    const chunk = rows.slice(taken, taken + size);
    taken += chunk.length;
    for (const [physicalName, ids] of changedIds(chunk, delivered)) {
      const reader = readerOfTable(physicalName);
      if (reader === undefined || ids.length === 0) continue;
      const missing = new Set(ids);
      let last: string | undefined;
      do {
        const piece = await reader.read(connection, last, ids);
        last = piece.last;
        bytes += piece.bytes;
        for (const id of piece.batch.ids) missing.delete(id);
        const isLast = last === undefined;
        if (piece.batch.ids.length > 0 || isLast) batches.push(isLast ? { ...piece.batch, deleted: [...missing] } : piece.batch);
      } while (last !== undefined);
    }
  }
  return { batches, taken };
}

/** By table, each record once in the whole read. */
function changedIds(rows: readonly OutboxRow[], delivered: Map<string, Set<string>>): Map<string, string[]> {
  const changed = new Map<string, string[]>();
  for (const { table, id } of rows) {
    const known = delivered.get(table) ?? new Set();
    delivered.set(table, known);
    if (known.has(id)) continue;
    known.add(id);
    const ids = changed.get(table);
    if (ids === undefined) changed.set(table, [id]);
    else ids.push(id);
  }
  return changed;
}

function readerOfPhysical(branch: BranchInfo, physicalName: string): RecordReader | undefined {
  for (const table of branch.tables.values()) if (table.physicalName === physicalName) return new RecordReader(branch.schemaName, table);
  return undefined;
}

function readerOf(branch: BranchInfo, name: string, columns: readonly string[] | undefined): RecordReader {
  const table = branch.tables.get(name);
  if (table === undefined) throw changedMeanwhile(branch.ref, `Table "${name}" does not exist`);
  for (const column of columns ?? []) {
    if (!table.columns.has(column) && systemColumnType(column) === undefined) {
      throw changedMeanwhile(branch.ref, `Column "${column}" does not exist in table "${name}"`);
    }
  }
  return new RecordReader(branch.schemaName, table, columns);
}

function requireSame(before: BranchInfo, now: BranchInfo): void {
  if (before.incarnation !== now.incarnation || before.version !== now.version) throw changedMeanwhile(now.ref);
}

function changedMeanwhile(ref: BranchRef, what = "The schema changed"): LodestoneError {
  return new LodestoneError(
    "CONFLICT",
    `${what} while the branch "${ref.database}:${ref.branch}" was being read for its change feed; read it again.`,
  );
}

/**
 * The change feed on either engine. feed-types.ts says what it promises; position.ts says why no change is skipped.
 */

import { LodestoneError } from "../../errors/lodestone-error.ts";
import { systemColumnType } from "../../filter/system-columns.ts";
import type { VectorForm } from "../binary-arrays.ts";
import { findBranch, toBranchInfo } from "../catalog/branch-rows.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { isMissingRelation } from "../engine/database-errors.ts";
import type { Connection, Engine, TransactionConnection } from "../engine/engine.ts";
import { formatBranchRef } from "../identifiers.ts";
import type { BranchInfo, BranchRef, TableInfo } from "../schema.ts";
import { FeedTurn } from "./feed-turn.ts";
import type { ChangeFeed, FeedBatch, FeedChanges, FeedPosition, FeedReadOptions, SharedSnapshot, SnapshotSharing } from "./feed-types.ts";
import { readAtSnapshot, shareSnapshot } from "./part.ts";
import { advance, formatPosition, type Position, parsePosition, readOutbox, xmaxOf, xminOf } from "./position.ts";
import { FIRST_CHUNK, readValues } from "./read-values.ts";
import { RecordReader } from "./record-reader.ts";
import { FeedRetention, type RetentionOptions } from "./retention.ts";
import { type WakeUpOptions, WakeUps } from "./wake-ups.ts";

export interface RecordFeedOptions extends RetentionOptions, WakeUpOptions {
  /** How much a read that had to wait for so many milliseconds reads at once. */
  readonly turnAfter?: (waitedMs: number, isShared: boolean) => FeedTurn;
  /** See RecordReader. */
  readonly vectorsPresentOnly?: boolean;
}

interface BranchState {
  readonly snapshot: string;
  readonly branch: BranchInfo;
  readonly horizon: bigint;
}

export class RecordFeed implements ChangeFeed, SnapshotSharing {
  readonly #engine: Engine;
  readonly #catalog: Catalog;
  readonly #options: RecordFeedOptions;
  readonly #retention: FeedRetention;
  readonly #ofProcess: Set<FeedRetention>;
  readonly #others: RecordFeed[] = [];
  readonly #wakeUps: WakeUps;
  readonly #turnAfter: (waitedMs: number, isShared: boolean) => FeedTurn;
  /** As last read: schemas can be large, and seldom change. */
  readonly #branches = new Map<string, BranchInfo>();

  private constructor(
    engine: Engine,
    catalog: Catalog,
    wakeUps: WakeUps,
    options: RecordFeedOptions,
    ofProcess = new Set<FeedRetention>(),
  ) {
    this.#ofProcess = ofProcess;
    this.#engine = engine;
    this.#catalog = catalog;
    this.#wakeUps = wakeUps;
    this.#options = options;
    this.#retention = new FeedRetention(engine, options, ofProcess);
    this.#turnAfter = options.turnAfter ?? ((waitedMs, isShared) => new FeedTurn(waitedMs, isShared));
  }

  static async open(engine: Engine, catalog: Catalog, options: RecordFeedOptions = {}): Promise<RecordFeed> {
    return new RecordFeed(engine, catalog, await WakeUps.open(engine, catalog, options), options);
  }

  /** The same feed for a second follower in this process, with a position of its own. */
  forFollower(name: string, { vectorsPresentOnly = false } = {}): RecordFeed {
    const feed = new RecordFeed(
      this.#engine,
      this.#catalog,
      this.#wakeUps,
      { ...this.#options, name, vectorsPresentOnly },
      this.#ofProcess,
    );
    this.#others.push(feed);
    return feed;
  }

  async close(): Promise<void> {
    await Promise.all([this.#wakeUps.close(), ...[this, ...this.#others].map((feed) => feed.#retention.close())]);
  }

  onChange(listener: (ref: BranchRef) => void): () => void {
    return this.#wakeUps.onChange(listener);
  }

  /** Call this after each write of records through this process, whether it succeeded or its outcome is unknown. */
  changed(ref: BranchRef): void {
    this.#wakeUps.changed(ref);
  }

  /**
   * Many short transactions rather than one long one, which would stop all writers of the embedded engine and
   * hold back the vacuum of a server. The tables are read piece by piece. Then what changed since the first
   * moment is read once more, until the result is that of one snapshot.
   *
   * @throws {LodestoneError} CONFLICT when the schema changed in between: what was read is useless; call again.
   *   NOT_FOUND when the branch was dropped.
   */
  async readAll(
    ref: BranchRef,
    tables: Parameters<ChangeFeed["readAll"]>[1],
    onBatch: (batch: FeedBatch, isChange: boolean) => Promise<void>,
  ): Promise<{ position: FeedPosition; incarnation: string; schemaVersion: number; tables: readonly TableInfo[] }> {
    const registered = await this.#read((connection) => this.#readState(connection, ref));
    await this.#retention.follow(registered.branch, registered.snapshot);
    const start = await this.#read((connection) => this.#readState(connection, ref));
    const readers = tables.map((table) => readerOf(this.#engine.vectors, start.branch, table, this.#options));
    for (const reader of readers) {
      const readTurn = (after: string | undefined): Promise<TableTurn> =>
        retryInSmallerBatches((isCareful) =>
          this.#read(async (connection, turn) => {
            requireSame(start.branch, (await this.#readState(connection, ref)).branch);
            return readPieces(connection, reader, after, isCareful, turn);
          }),
        );
      // The database reads on while the follower takes these.
      let next: Promise<TableTurn> | undefined = readTurn(undefined);
      while (next !== undefined) {
        const { batches, last }: TableTurn = await next;
        next = last === undefined ? undefined : readTurn(last);
        next?.catch(() => {}); // awaited in the next turn, unless onBatch rejects
        for (const batch of batches) await onBatch(batch, false);
      }
    }

    let position: Position = { snapshot: start.snapshot };
    for (;;) {
      const changes = await this.#readChanges(ref, position, start.branch.incarnation, { readers });
      if (changes === null) throw changedMeanwhile(ref);
      requireSame(start.branch, changes.branch);
      for (const batch of changes.batches) await onBatch(batch, true);
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

  async readSince(ref: BranchRef, position: FeedPosition, incarnation: string, options: FeedReadOptions = {}): Promise<FeedChanges | null> {
    const parsed = parsePosition(position);
    const changes = parsed === undefined ? null : await this.#readChanges(ref, parsed, incarnation, options);
    if (changes === null) {
      if (options.isForeign !== true) this.#retention.forget(incarnation);
      return null;
    }
    if (options.isForeign !== true) await this.#retention.follow(changes.branch, parsed!.snapshot);
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
    const branch = await this.#catalog.branch(ref).catch((error: unknown) => {
      if (error instanceof LodestoneError && error.code === "NOT_FOUND") return undefined;
      throw error;
    });
    // A position has no meaning in another life of the branch, and a branch that was dropped keeps nothing.
    if (branch?.incarnation === incarnation) await this.#retention.acknowledge(branch, parsed.snapshot);
  }

  release(incarnation: string): Promise<void> {
    return this.#retention.release(incarnation);
  }

  async backlogBytes(ref: BranchRef): Promise<number> {
    return this.#retention.outboxBytes(await this.#catalog.branch(ref));
  }

  shareSnapshot(): Promise<SharedSnapshot & { end(): Promise<void> }> {
    return shareSnapshot(this.#engine);
  }

  /** `readers` limits what is read to their tables and columns. */
  async #readChanges(
    ref: BranchRef,
    position: Position,
    incarnation: string,
    { readers, parts, only, snapshot }: FeedReadOptions & { readonly readers?: readonly RecordReader[] } = {},
  ) {
    const read = async (connection: TransactionConnection, isCareful: boolean, turn: FeedTurn) => {
      const state = await this.#readState(connection, ref);
      if (state.branch.incarnation !== incarnation || !isReachable(position, state)) return null;
      const batches: FeedBatch[] = [];
      let at = position;
      let size = isCareful ? 1 : FIRST_CHUNK;
      let hasRows = false;
      for (;;) {
        const page = await readOutbox(connection, state.branch.schemaName, at);
        const read = await readValues(connection, page.rows, size, isCareful, (physicalName) =>
          readers === undefined
            ? readerOfPhysical(this.#engine.vectors, state.branch, physicalName, { parts, only }, this.#options)
            : readers.find((reader) => reader.table.physicalName === physicalName),
        );
        batches.push(...read.batches);
        size = read.size;
        hasRows ||= page.rows.length > 0;
        const { position: reached, complete } = advance(at, state.snapshot, page, read.taken, position.partial?.target);
        at = reached;
        if (complete || !turn.goesOn(read.bytes)) return { branch: state.branch, batches, hasRows, position: at, complete };
      }
    };
    // Ahead of whatever waits: behind a queue of writers, searches would fall back by as long as the queue
    // takes.
    return retryInSmallerBatches((isCareful) =>
      this.#read(async (connection, turn) => {
        if (snapshot !== undefined) await readAtSnapshot(connection, snapshot);
        return read(connection, isCareful, turn);
      }, true),
    );
  }

  /** The branch and the bounds of its feed, as the transaction's snapshot sees them. */
  async #readState(connection: Connection, ref: BranchRef): Promise<BranchState> {
    const { rows } = await connection.query<{ incarnation: string; version: string; snapshot: string; horizon: string }>(
      `SELECT incarnation::text, version::text, pg_current_snapshot()::text AS snapshot, horizon::text
       FROM lodestone.branches JOIN lodestone.feeds USING (schema_name) WHERE database = $1 AND branch = $2`,
      [ref.database, ref.branch],
      { isRepeated: true },
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

  #read<Result>(work: (connection: TransactionConnection, turn: FeedTurn) => Promise<Result>, urgent = false): Promise<Result> {
    const askedAt = performance.now();
    const options = { readOnly: true, isolation: "repeatable read", urgent } as const;
    const turn = (): FeedTurn => {
      const { callers } = this.#engine;
      return callers === null ? this.#turnAfter(0, false) : this.#turnAfter(performance.now() - askedAt, callers > 1);
    };
    const read = (): Promise<Result> => this.#engine.transaction((connection) => work(connection, turn()), options);
    return read().catch((error: unknown) => {
      // A snapshot still shows a branch or table that is dropped meanwhile, but its relation is gone. The next one knows.
      if (!isMissingRelation(error)) throw error;
      return read();
    });
  }
}

/** What one turn has read of a table. */
interface TableTurn {
  readonly batches: readonly FeedBatch[];
  /** The id to read on from; undefined when there are no more. */
  readonly last: string | undefined;
}

async function readPieces(
  connection: TransactionConnection,
  reader: RecordReader,
  after: string | undefined,
  isCareful: boolean,
  turn: FeedTurn,
): Promise<TableTurn> {
  const batches: FeedBatch[] = [];
  for (let from = after; ; ) {
    const { batch, last, bytes } = await reader.read(connection, from, { isCareful });
    if (batch.ids.length > 0) batches.push(batch);
    if (last === undefined || !turn.goesOn(bytes)) return { batches, last };
    from = last;
  }
}

/**
 * Neither older than what was removed, nor from a future that this database has not had (an older copy of it
 * was put back).
 */
function isReachable(position: Position, state: BranchState): boolean {
  const latest = position.partial?.target ?? position.snapshot;
  return xminOf(position.snapshot) >= state.horizon && xmaxOf(latest) <= xmaxOf(state.snapshot);
}

/**
 * How a read of the database may fail because of the size of what it reads: at our own bound, or at
 * PostgreSQL's.
 */
const TOO_MUCH = new Set(["TOO_LARGE", "53200", "54000", "XX000"]);

/** Reads as usual, and if that is too much, once more in smaller batches. */
async function retryInSmallerBatches<Result>(read: (isCareful: boolean) => Promise<Result>): Promise<Result> {
  try {
    return await read(false);
  } catch (error) {
    const { code, cause } = error as { code?: string; cause?: { code?: string } };
    if (!TOO_MUCH.has(code ?? "") && !TOO_MUCH.has(cause?.code ?? "")) throw error;
    return await read(true);
  }
}

function readerOfPhysical(
  vectors: VectorForm,
  branch: BranchInfo,
  physicalName: string,
  { parts, only }: Pick<FeedReadOptions, "parts" | "only">,
  { vectorsPresentOnly }: RecordFeedOptions,
): RecordReader | undefined {
  for (const table of branch.tables.values()) {
    if (table.physicalName !== physicalName) continue;
    const names = only?.get(table.name);
    if (only !== undefined && names === undefined) return undefined;
    return new RecordReader(vectors, branch.schemaName, table, { names, part: parts?.get(table.name), vectorsPresentOnly });
  }
  return undefined;
}

function readerOf(
  vectors: VectorForm,
  branch: BranchInfo,
  { table: name, columns, part }: Parameters<ChangeFeed["readAll"]>[1][number],
  { vectorsPresentOnly }: RecordFeedOptions,
): RecordReader {
  const table = branch.tables.get(name);
  if (table === undefined) throw changedMeanwhile(branch.ref, `Table "${name}" does not exist`);
  for (const column of columns ?? []) {
    if (!table.columns.has(column) && systemColumnType(column) === undefined) {
      throw changedMeanwhile(branch.ref, `Column "${column}" does not exist in table "${name}"`);
    }
  }
  return new RecordReader(vectors, branch.schemaName, table, { names: columns, part, vectorsPresentOnly });
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

/**
 * A search engine that keeps nothing in memory. Vectors and filter columns are in tables of another
 * PostgreSQL with pgvector, which answers the searches.
 *
 * A branch's tables and its position in the change feed change in one transaction. So a crash at any moment
 * leaves tables that match their position, and the next process continues from there (`restore`).
 *
 * Several servers may share the database. Each follows the feed. A server commits only on top of the revision
 * that it has read. If there is a newer one, it gets EngineChangedError and adopts that state. So each change
 * is applied once, and in order.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { FeedBatch } from "../../records/feed/feed-types.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import { EngineChangedError, type SearchEngine, type StartEngine } from "../search-engine.ts";
import type { BranchKey, BranchStats, EngineCalls, Method, RestoredState } from "../search-messages.ts";
import { type HeldLock, LOCKED } from "./database-locks.ts";
import { BranchSearcher } from "./exact-search.ts";
import { type OpenTransaction, SCHEMA, SearchDatabase, type SearchDatabaseOptions } from "./search-database.ts";
import {
  addCounts,
  countsFromJson,
  countsToJson,
  createMissing,
  dropSurplus,
  existingGenerations,
  lockOf,
  readBranch,
  schemaFromJson,
  schemaToJson,
} from "./table-layout.ts";
import { type VectorCounts, writeBatch } from "./write-batch.ts";

/** What this process knows of a branch in the database. */
interface Known {
  readonly generation: string;
  /** Incremented by each commit of any server. */
  readonly revision: string;
  readonly schema: FollowedSchema;
  readonly counts: ReadonlyMap<number, number>;
}

interface Build {
  readonly key: BranchKey;
  readonly generation: string;
  readonly incarnation: string;
  readonly version: number;
  readonly schema: FollowedSchema;
  readonly counts: VectorCounts;
  readonly locks: readonly HeldLock[];
}

interface Staged {
  readonly transaction: OpenTransaction;
  readonly known: Known;
  readonly schema: FollowedSchema;
  readonly counts: VectorCounts;
}

class SqlEngine implements SearchEngine {
  readonly keepsState = true;
  readonly #database: SearchDatabase;
  readonly #searcher: BranchSearcher;
  readonly #onFault: (error: unknown) => void;
  readonly #known = new Map<BranchKey, Known>();
  readonly #builds = new Map<number, Build>();
  readonly #staged = new Map<BranchKey, Staged>();

  constructor(database: SearchDatabase, onFault: (error: unknown) => void = () => {}) {
    this.#database = database;
    this.#searcher = new BranchSearcher(database);
    this.#onFault = onFault;
    void this.#dropOrphans().catch(onFault);
  }

  readonly holdsTexts = false;

  get searchesAtOnce(): number {
    return this.#database.searchesAtOnce;
  }

  async call<M extends Method>(method: M, argument: Parameters<EngineCalls[M]>[0]): Promise<ReturnType<EngineCalls[M]>> {
    return (await this.#handlers[method](argument)) as ReturnType<EngineCalls[M]>;
  }

  async close(): Promise<void> {
    for (const key of [...this.#staged.keys()]) await this.#unstage(key);
    for (const build of [...this.#builds.keys()]) await this.#abandon(build).catch(this.#onFault);
    await this.#database.close();
  }

  readonly #handlers: { [M in Method]: (argument: Parameters<EngineCalls[M]>[0]) => Promise<ReturnType<EngineCalls[M]>> } = {
    begin: (call) => this.#begin(call),
    load: ({ build, batch }) => this.#load(build, batch),
    install: ({ build, position }) => this.#install(build, position),
    abandon: ({ build }) => this.#abandon(build),
    stage: ({ key, batch, schema }) => this.#stage(key, batch, schema),
    unstage: ({ key }) => this.#unstage(key),
    commit: (call) => this.#commit(call),
    restore: ({ key, incarnation }) => this.#restore(key, incarnation),
    // Every commit is on disk there already.
    snapshot: async () => null,
    flush: async () => null,
    leaveSnapshots: async () => {},
    drop: ({ key }) => this.#drop(key),
    search: (job) => this.#searcher.search(job),
    searchTexts: () => Promise.reject(new TypeError("The search database holds no words.")),
    textsRead: async () => {},
  };

  async #begin({ build, key, incarnation, version, tables }: Parameters<EngineCalls["begin"]>[0]): Promise<void> {
    const branchLock = await this.#database.locks.tryLock(LOCKED.branch, lockOf(key));
    if (branchLock === null) {
      throw new LodestoneError("UNAVAILABLE", `Another server is reading branch ${key} into the search database.`, {
        retryAfterSeconds: 1,
      });
    }
    const locks = [branchLock];
    try {
      const row = await this.#database.read(lockOf(key), (statements) => readBranch(statements, key));
      // Another server was faster.
      if (row?.incarnation === incarnation && row.revision !== this.#known.get(key)?.revision) throw new EngineChangedError(key);
      const generation = await this.#database.write(async (statements) => {
        const [next] = await statements.query<{ generation: string }>(`SELECT nextval('${SCHEMA}.generations')::text AS generation`);
        return next!.generation;
      });
      const generationLock = await this.#database.locks.tryLock(LOCKED.generation, Number(generation));
      if (generationLock !== null) locks.push(generationLock);
      this.#builds.set(build, { key, generation, incarnation, version, schema: tables, counts: new Map(), locks });
      await createMissing(this.#database, generation, tables);
    } catch (error) {
      this.#builds.delete(build);
      for (const lock of locks) await lock.release();
      throw error;
    }
  }

  async #load(build: number, batch: FeedBatch): Promise<void> {
    const { generation, schema, counts } = this.#builds.get(build)!;
    const table = schema.get(batch.table);
    if (table === undefined) return;
    const changed: VectorCounts = new Map();
    await this.#database.write((statements) => writeBatch(statements, this.#database, generation, table, batch, changed));
    addCounts(counts, changed);
  }

  async #install(build: number, position: string): Promise<BranchStats> {
    const { key, generation, incarnation, version, schema, counts, locks } = this.#builds.get(build)!;
    if (!locks.every((lock) => lock.isHeld())) {
      throw new LodestoneError("UNAVAILABLE", `The connection that held branch ${key} while it was read has gone.`, {
        retryAfterSeconds: 1,
      });
    }
    const transaction = await this.#database.begin(lockOf(key));
    let before: string | undefined;
    let revision: string;
    try {
      before = (await readBranch(transaction, key, "FOR UPDATE"))?.generation;
      const [row] = await transaction.query<{ revision: string }>(
        `INSERT INTO ${SCHEMA}.branches AS b (key, generation, revision, incarnation, version, position, tables, counts)
         VALUES ($1, $2, 1, $3, $4, $5, $6, $7) ON CONFLICT (key) DO UPDATE SET generation = excluded.generation, revision = b.revision + 1,
         incarnation = excluded.incarnation, version = excluded.version, position = excluded.position, tables = excluded.tables, counts = excluded.counts
         RETURNING revision::text`,
        [key, generation, incarnation, version, position, schemaToJson(schema), countsToJson(counts)],
      );
      revision = row!.revision;
      await transaction.commit();
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    this.#known.set(key, { generation, revision, schema, counts });
    this.#builds.delete(build);
    for (const lock of locks) await lock.release();
    if (before !== undefined) await dropSurplus(this.#database, before, null).catch(this.#onFault);
    return statsOf(counts);
  }

  async #abandon(build: number): Promise<void> {
    const found = this.#builds.get(build);
    if (found === undefined) return;
    this.#builds.delete(build);
    try {
      await dropSurplus(this.#database, found.generation, null);
    } finally {
      for (const lock of found.locks) await lock.release();
    }
  }

  async #stage(key: BranchKey, batch: FeedBatch, schema: FollowedSchema | undefined): Promise<void> {
    const staged = await this.#open(key, schema);
    try {
      await this.#write(staged, batch);
    } catch (error) {
      await this.#unstage(key);
      throw error;
    }
  }

  async #unstage(key: BranchKey): Promise<void> {
    const staged = this.#staged.get(key);
    this.#staged.delete(key);
    await staged?.transaction.rollback();
  }

  async #commit({ key, schema, batches, position }: Parameters<EngineCalls["commit"]>[0]): Promise<BranchStats> {
    const staged = await this.#open(key, schema?.tables);
    const { known, transaction } = staged;
    const counts = new Map(known.counts);
    let revision: string;
    try {
      for (const batch of batches) await this.#write(staged, batch);
      addCounts(counts, staged.counts);
      if (schema !== undefined) for (const id of counts.keys()) if (!hasColumn(schema.tables, id)) counts.delete(id);
      const [row] = await transaction.query<{ revision: string }>(
        `UPDATE ${SCHEMA}.branches SET revision = revision + 1, position = $2, counts = $3, version = coalesce($4::int8, version),
         tables = coalesce($5::jsonb, tables) WHERE key = $1 RETURNING revision::text`,
        [key, position, countsToJson(counts), schema?.version ?? null, schema === undefined ? null : schemaToJson(schema.tables)],
      );
      revision = row!.revision;
      // If this fails, it is unknown whether the commit was made. The next revision that is read will tell.
      await transaction.commit();
    } catch (error) {
      await this.#unstage(key);
      throw error;
    }
    this.#staged.delete(key);
    this.#known.set(key, { generation: known.generation, revision, schema: staged.schema, counts });
    if (schema !== undefined) await this.#dropSurplus(key).catch(this.#onFault);
    return statsOf(counts);
  }

  /**
   * The transaction of the next commit. Begins one if there is none. It locks the branch's row at the
   * revision that this process knows.
   */
  async #open(key: BranchKey, schema: FollowedSchema | undefined): Promise<Staged> {
    const open = this.#staged.get(key);
    if (open !== undefined) return open;
    const known = this.#known.get(key);
    if (known === undefined) throw new EngineChangedError(key);
    // Done before the transaction, which must not lock whole tables. Searches do not see it until the commit
    // names it.
    if (schema !== undefined) await createMissing(this.#database, known.generation, schema);
    const transaction = await this.#database.begin(lockOf(key));
    try {
      const row = await readBranch(transaction, key, "FOR UPDATE");
      if (row === undefined || row.revision !== known.revision || row.generation !== known.generation) throw new EngineChangedError(key);
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    const staged = { transaction, known, schema: schema ?? known.schema, counts: new Map() };
    this.#staged.set(key, staged);
    return staged;
  }

  async #write({ transaction, known, schema, counts }: Staged, batch: FeedBatch): Promise<void> {
    const table = schema.get(batch.table);
    if (table !== undefined) await writeBatch(transaction, this.#database, known.generation, table, batch, counts);
  }

  async #restore(key: BranchKey, incarnation: string): Promise<RestoredState | null> {
    this.#known.delete(key);
    const row = await this.#database.read(lockOf(key), (statements) => readBranch(statements, key));
    if (row === undefined || row.incarnation !== incarnation) return null;
    const schema = schemaFromJson(row.tables);
    const counts = countsFromJson(row.counts);
    this.#known.set(key, { generation: row.generation, revision: row.revision, schema, counts });
    return { version: Number(row.version), schema, position: row.position, stats: statsOf(counts) };
  }

  /** If another server has created a new branch of that name, that one stays. */
  async #drop(key: BranchKey): Promise<void> {
    await this.#unstage(key);
    const known = this.#known.get(key);
    this.#known.delete(key);
    this.#searcher.forget(key);
    if (known === undefined) return;
    await this.#database.write((statements) =>
      statements.query(`DELETE FROM ${SCHEMA}.branches WHERE key = $1 AND generation = $2`, [key, known.generation]),
    );
    await dropSurplus(this.#database, known.generation, null).catch(this.#onFault);
  }

  async #dropSurplus(key: BranchKey): Promise<void> {
    const known = this.#known.get(key);
    if (known !== undefined) await dropSurplus(this.#database, known.generation, known.schema);
  }

  /** Drops orphans: the tables of builds that no process will finish. */
  async #dropOrphans(): Promise<void> {
    const [all, used] = await this.#database.write(async (statements) => [
      await existingGenerations(statements),
      await statements.query<{ generation: string }>(`SELECT generation::text FROM ${SCHEMA}.branches`),
    ]);
    const kept = new Set(used.map(({ generation }) => generation));
    for (const generation of all) {
      if (kept.has(generation)) continue;
      const lock = await this.#database.locks.tryLock(LOCKED.generation, Number(generation));
      if (lock === null) continue;
      try {
        // It may have been installed meanwhile.
        const rows = await this.#database.write((statements) =>
          statements.query(`SELECT 1 FROM ${SCHEMA}.branches WHERE generation = $1`, [generation]),
        );
        if (rows.length === 0) await dropSurplus(this.#database, generation, null);
      } finally {
        await lock.release();
      }
    }
  }
}

/**
 * Connects, and creates what is missing in the database.
 *
 * @throws {LodestoneError} UNAVAILABLE or INVALID, with what to do, when the database cannot be used.
 */
export async function startSqlEngine(url: string, options: SearchDatabaseOptions, onFault: (error: unknown) => void): Promise<StartEngine> {
  const database = await SearchDatabase.open(url, options);
  return () => new SqlEngine(database, onFault);
}

function hasColumn(schema: FollowedSchema, columnId: number): boolean {
  for (const table of schema.values()) for (const column of table.columns.values()) if (column.id === columnId) return true;
  return false;
}

/** The vectors are not in this process's memory. */
function statsOf(counts: ReadonlyMap<number, number>): BranchStats {
  let vectors = 0;
  for (const count of counts.values()) vectors += count;
  return { vectors, texts: 0, memoryBytes: 0, fileBytes: 0, columnsInFiles: 0 };
}

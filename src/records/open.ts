/**
 * Opens a record store: the engine, the catalog, the change feed, and the functions on records behind one
 * interface.
 */

import { LodestoneError } from "../errors/lodestone-error.ts";
import { requireTable } from "./catalog/branch-rows.ts";
import { Catalog } from "./catalog/catalog.ts";
import { toBranchSchema, toColumnSchema, toTableSchema } from "./catalog/document.ts";
import { tableStatistics } from "./catalog/table-statistics.ts";
import { checkBranch } from "./check/check-branch.ts";
import { aggregateRecords } from "./data/aggregate/aggregate-records.ts";
import { summarizeRecords } from "./data/aggregate/summarize-records.ts";
import { queryRecords } from "./data/read/query-records.ts";
import { getRecord, getRecords, scanRecords } from "./data/read/read-records.ts";
import { readVectors } from "./data/read/read-vectors.ts";
import { runTransaction } from "./data/transaction/record-transaction.ts";
import { insertRecords } from "./data/write/bulk-insert.ts";
import { ConcurrentInserts } from "./data/write/concurrent-inserts.ts";
import { deleteRecord, insertRecord, replaceRecord, updateRecord, upsertRecord } from "./data/write/write-record.ts";
import { isMissingRelation } from "./engine/database-errors.ts";
import type { Engine } from "./engine/engine.ts";
import { engineForCaller, isReading } from "./engine/engine-for-caller.ts";
import { type EngineOptions, openEngine } from "./engine/open-engine.ts";
import { RecordFeed } from "./feed/change-feed.ts";
import { MigrationStore } from "./migrations/migration-store.ts";
import type { RecordStore } from "./record-store.ts";
import type { BranchInfo, BranchRef, TableInfo } from "./schema.ts";
import { runSql, runSqlBatch } from "./sql/run-sql.ts";

/**
 * @param copy  `isCopy`: the data was restored from a copy of the files and goes its own way from here on.
 *   Followers of the original may not follow it.
 * @throws {LodestoneError} UNAVAILABLE: the directory is in use by another process, or the server cannot be
 *   reached, is too old, or holds data of a newer Lodestone. CORRUPT: a directory of another PostgreSQL
 *   version.
 */
export async function openRecordStore(options: EngineOptions, copy: { readonly isCopy?: boolean } = {}): Promise<RecordStore> {
  const { onFault, onRecovery, onStep } = options;
  const engine = await openEngine(options);
  try {
    onStep?.("reading the catalog");
    const catalog = await Catalog.open(engine, copy);
    const feed = await RecordFeed.open(engine, catalog, { onFault, onRecovery });
    return recordStoreOf(engine, catalog, feed, new MigrationStore(engine, catalog), new ConcurrentInserts(), onFault);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** The reason may be that our cache is older than another server's change. Nothing was changed. */
function mayBeStale(error: unknown): boolean {
  return isMissingRelation(error) || (error instanceof LodestoneError && error.code === "INVALID");
}

/**
 * @param engine  that of one caller, or the engine itself, which everything that serves many callers at once
 *   uses.
 */
function recordStoreOf(
  engine: Engine,
  catalog: Catalog,
  feed: RecordFeed,
  migrations: MigrationStore,
  inserts: ConcurrentInserts,
  onFault: EngineOptions["onFault"],
): RecordStore {
  /** @param table  that the branch should have. */
  const branchOf = async (ref: BranchRef, table?: string): Promise<BranchInfo> => {
    const branch = await catalog.branch(ref);
    return table === undefined || branch.tables.has(table) ? branch : catalog.current(ref);
  };
  const onBranch = async <Result>(ref: BranchRef, work: (branch: BranchInfo) => Promise<Result>, table?: string): Promise<Result> => {
    const branch = await branchOf(ref, table);
    try {
      return await work(branch);
    } catch (error) {
      if (!mayBeStale(error)) throw error;
      const fresh = await catalog.current(ref);
      if (fresh.version === branch.version && fresh.incarnation === branch.incarnation) throw error;
      return await work(fresh);
    }
  };
  const onTable = <Result>(
    ref: BranchRef,
    name: string,
    work: (branch: BranchInfo, table: TableInfo) => Promise<Result>,
  ): Promise<Result> => onBranch(ref, (branch) => work(branch, requireTable(branch, name)), name);
  /**
   * For everything that may write records. A write that fails may have been committed all the same, and looking
   * in vain does no harm.
   */
  const writing = async <Result>(ref: BranchRef, write: Promise<Result>): Promise<Result> => {
    try {
      return await write;
    } finally {
      feed.changed(ref);
    }
  };
  const writingTable: typeof onTable = (ref, name, work) => writing(ref, onTable(ref, name, work));
  return {
    feed,
    migrations,

    listDatabases: () => catalog.listDatabases(),
    allBranches: () => catalog.allBranches(),
    listBranches: (database) => catalog.listBranches(database),
    createBranch: (ref, options) => catalog.createBranch(ref, options),
    dropBranch: (ref) => catalog.dropBranch(ref),
    dropDatabase: (database) => catalog.dropDatabase(database),
    renameBranch: (ref, to) => catalog.renameBranch(ref, to),
    renameDatabase: (database, to) => catalog.renameDatabase(database, to),
    branch: (ref) => catalog.branch(ref),
    currentBranch: (ref) => catalog.current(ref),

    schema: async (ref) => toBranchSchema(await catalog.current(ref)),
    tableStatistics: (ref) => onBranch(ref, (branch) => tableStatistics(engine, branch)),
    createTable: async (ref, table, columns) => void (await catalog.change(ref, (editor) => editor.createTable(table, columns))),
    renameTable: async (ref, table, to) => void (await catalog.change(ref, (editor) => editor.renameTable(table, to))),
    dropTable: async (ref, table) => void (await catalog.change(ref, (editor) => editor.dropTable(table))),
    tableSchema: async (ref, table) => {
      const branch = await catalog.current(ref);
      return toTableSchema(requireTable(branch, table), branch.systemNaming);
    },
    setSystemNaming: async (ref, naming) => void (await catalog.change(ref, async (editor) => editor.setSystemNaming(naming))),
    setTableSchema: async (ref, table, columns) => void (await catalog.change(ref, (editor) => editor.setColumns(table, columns))),
    addColumn: async (ref, table, column) => void (await catalog.change(ref, (editor) => editor.addColumn(table, column))),
    column: async (ref, table, name) => {
      const column = requireTable(await catalog.current(ref), table).columns.get(name);
      if (column === undefined) throw new LodestoneError("NOT_FOUND", `Column "${name}" does not exist in table "${table}".`);
      return toColumnSchema(column);
    },
    renameColumn: async (ref, table, column, to) => void (await catalog.change(ref, (editor) => editor.renameColumn(table, column, to))),
    // As comments, languages are no part of migrations: there is no operation for it.
    setColumnLanguage: async (ref, table, column, language) =>
      void (await catalog.change(ref, async (editor) => {
        await editor.setLanguage(table, column, language);
        return [];
      })),
    dropColumn: async (ref, table, column) => void (await catalog.change(ref, (editor) => editor.dropColumn(table, column))),

    insertRecord: (ref, name, record, options) =>
      writingTable(ref, name, (branch, table) => insertRecord(engine, branch, table, record, options, inserts.write)),
    replaceRecord: (ref, name, id, record, options) =>
      writingTable(ref, name, (branch, table) => replaceRecord(engine, branch, table, id, record, options, inserts.write)),
    updateRecord: (ref, name, id, fields, options) =>
      writingTable(ref, name, (branch, table) => updateRecord(engine, branch, table, id, fields, options)),
    upsertRecord: (ref, name, id, fields, options) =>
      writingTable(ref, name, (branch, table) => upsertRecord(engine, branch, table, id, fields, options)),
    getRecord: (ref, name, id, options) => onTable(ref, name, (branch, table) => getRecord(engine, branch, table, id, options)),
    getRecords: (ref, name, ids, options) => onTable(ref, name, (branch, table) => getRecords(engine, branch, table, ids, options)),
    deleteRecord: (ref, name, id, options) => writingTable(ref, name, (branch, table) => deleteRecord(engine, branch, table, id, options)),
    insertRecords: (ref, name, records, options) =>
      writingTable(ref, name, (branch, table) => insertRecords(engine, branch, table, records, options)),

    async *scanRecords(ref, name, options) {
      const branch = await branchOf(ref, name);
      yield* scanRecords(engine, branch, requireTable(branch, name), options);
    },
    readVectors: (ref, name, request) => onTable(ref, name, (branch, table) => readVectors(engine, branch, table, request)),
    query: (ref, name, request, options) => onTable(ref, name, (branch, table) => queryRecords(engine, branch, table, request, options)),
    transaction: (ref, operations, options) =>
      writing(
        ref,
        onBranch(ref, (branch) => runTransaction(engine, branch, operations, options)),
      ),
    aggregate: (ref, name, request) => onTable(ref, name, (branch, table) => aggregateRecords(engine, branch, table, request)),
    summarize: (ref, name, request, options) =>
      onTable(ref, name, (branch, table) => summarizeRecords(engine, branch, table, request, options)),
    sql: (ref, request) => {
      const running = onBranch(ref, (branch) => runSql(engine, branch, request, onFault));
      return isReading(request.statement) ? running : writing(ref, running);
    },
    sqlBatch: (ref, request) =>
      writing(
        ref,
        onBranch(ref, (branch) => runSqlBatch(engine, branch, request, onFault)),
      ),

    check: (ref) => checkBranch(engine, ref),
    backup: (directory, signal) => engine.backup(directory, signal),
    ...(engine.walBytes && { walBytes: () => engine.walBytes!() }),
    health: () => engine.health(),

    forCaller: (signal, budget) => recordStoreOf(engineForCaller(engine, signal, budget), catalog, feed, migrations, inserts, onFault),

    async close() {
      // First, or the others would wait for their turn behind what runs.
      const closed = engine.close();
      await feed.close();
      await catalog.close();
      await closed;
    },
  };
}

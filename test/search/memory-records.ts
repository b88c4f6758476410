/**
 * Records in memory with a change feed, for tests of the search store that must control when and how a read
 * happens. Positions are counts of changes. The real record store is tested in follow-records.test.ts.
 */
import { LodestoneError } from "../../src/errors/lodestone-error.ts";
import type { ChangeFeed, FeedBatch, FeedChanges, FeedColumn } from "../../src/records/feed/feed-types.ts";
import type { BranchInfo, BranchRef, ColumnInfo, ColumnSchema, TableInfo } from "../../src/records/schema.ts";

export type MemoryRecord = { id: string; [column: string]: unknown };

interface MemoryTable {
  id: number;
  name: string;
  columns: (ColumnSchema & { id: number })[];
  records: Map<string, MemoryRecord>;
}

interface MemoryBranch {
  ref: BranchRef;
  incarnation: string;
  version: number;
  tables: MemoryTable[];
  /** One entry per change: the transaction it belongs to, the table and the record. */
  changes: { transaction: number; tableId: number; id: string }[];
  transactions: number;
}

let nextId = 1;

export class MemoryRecords {
  readonly #branches = new Map<string, MemoryBranch>();
  readonly #listeners = new Set<(ref: BranchRef) => void>();
  /** Maximum number of changes in one read. It may cut a transaction; the read is then incomplete. */
  readLimit = 1000;
  /** Awaited before each read; may reject. */
  beforeRead: (kind: "all" | "since") => Promise<void> | void = () => {};
  reads = { all: 0, since: 0 };
  /** Positions at which reads of changes began. */
  positionsRead: string[] = [];
  /** Positions below are too old. */
  trimmedBelow = 0;
  isSilent = false;
  /** The last position that a follower no longer needs. The feed may forget what is before it. */
  acknowledged = 0;

  readonly feed: ChangeFeed = {
    release: async () => {},
    backlogBytes: async () => 0,
    forFollower: () => this.feed,
    onChange: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
    readAll: async (ref, tables, onBatch) => {
      this.reads.all++;
      await this.beforeRead("all");
      const branch = this.#branch(ref);
      const info = await this.branch(ref);
      const position = String(branch.changes.length);
      // One snapshot: everything is copied before the first batch is returned.
      const batches: FeedBatch[] = [];
      for (const { table: name, columns } of tables) {
        const table = tableOf(branch, name);
        const records = [...table.records.values()];
        for (let start = 0; start < records.length; start += this.readLimit) {
          batches.push(toBatch(table, records.slice(start, start + this.readLimit), [], columns));
        }
      }
      for (const batch of batches) {
        await onBatch(batch, false);
        if (branch.version !== info.version) throw new LodestoneError("CONFLICT", "The schema changed while the branch was being read.");
      }
      return { position, incarnation: info.incarnation, schemaVersion: info.version, tables: [...info.tables.values()] };
    },
    readSince: async (ref, position, incarnation): Promise<FeedChanges | null> => {
      this.reads.since++;
      this.positionsRead.push(position);
      await this.beforeRead("since");
      const branch = this.#branch(ref);
      const start = Number(position);
      if (incarnation !== branch.incarnation || start < this.trimmedBelow) return null;
      const end = Math.min(branch.changes.length, start + this.readLimit);
      const touched = new Map<number, Set<string>>();
      for (const { tableId, id } of branch.changes.slice(start, end)) touched.set(tableId, (touched.get(tableId) ?? new Set()).add(id));
      const batches: FeedBatch[] = [];
      for (const [tableId, ids] of touched) {
        const table = branch.tables.find((t) => t.id === tableId);
        if (table === undefined) continue;
        const records = [...ids].flatMap((id) => table.records.get(id) ?? []);
        batches.push(
          toBatch(
            table,
            records,
            [...ids].filter((id) => !table.records.has(id)),
          ),
        );
      }
      const complete = end === branch.changes.length;
      return { position: String(end), schemaVersion: branch.version, complete, batches };
    },
    acknowledge: async (_ref, position) => {
      this.acknowledged = Number(position);
    },
  };

  async branch(ref: BranchRef): Promise<BranchInfo> {
    const branch = this.#branch(ref);
    const tables = new Map<string, TableInfo>();
    for (const table of branch.tables) {
      const columns = new Map<string, ColumnInfo>(table.columns.map((column) => [column.name, { ...column, physicalName: column.name }]));
      tables.set(table.name, { id: table.id, name: table.name, physicalName: table.name, columns });
    }
    const { incarnation, version } = branch;
    return { ref, schemaName: "", sqlSchemaName: "", systemNaming: "dotted", roleName: "", incarnation, version, createdAt: "", tables };
  }

  currentBranch(ref: BranchRef): Promise<BranchInfo> {
    return this.branch(ref);
  }

  async allBranches(): Promise<BranchRef[]> {
    return [...this.#branches.values()].map(({ ref }) => ref);
  }

  createBranch(ref: BranchRef, incarnation = `incarnation ${nextId++}`): void {
    const branch = { ref, incarnation, version: 1, tables: [], changes: [], transactions: 0 };
    this.#branches.set(`${ref.database}:${ref.branch}`, branch);
    this.#notify(ref);
  }

  dropBranch(ref: BranchRef): void {
    this.#branches.delete(`${ref.database}:${ref.branch}`);
    this.#notify(ref);
  }

  /** Changes the tables: the callback gets them and edits them in place. */
  alter(ref: BranchRef, edit: (tables: MemoryTable[]) => void): void {
    const branch = this.#branch(ref);
    edit(branch.tables);
    branch.version++;
    this.#notify(ref);
  }

  createTable(ref: BranchRef, name: string, columns: ColumnSchema[]): void {
    this.alter(ref, (tables) => tables.push({ id: nextId++, name, columns: columns.map(withId), records: new Map() }));
  }

  /** The position after all changes. */
  changeCount(ref: BranchRef): number {
    return this.#branch(ref).changes.length;
  }

  /** One transaction. */
  write(ref: BranchRef, table: string, records: MemoryRecord[], deleted: string[] = []): void {
    const branch = this.#branch(ref);
    const { id: tableId, records: kept } = tableOf(branch, table);
    const transaction = ++branch.transactions;
    for (const record of records) {
      kept.set(record.id, record);
      branch.changes.push({ transaction, tableId, id: record.id });
    }
    for (const id of deleted) if (kept.delete(id)) branch.changes.push({ transaction, tableId, id });
    this.#notify(ref);
  }

  #branch(ref: BranchRef): MemoryBranch {
    const branch = this.#branches.get(`${ref.database}:${ref.branch}`);
    if (branch === undefined) throw new LodestoneError("NOT_FOUND", `Branch "${ref.branch}" does not exist in database "${ref.database}".`);
    return branch;
  }

  #notify(ref: BranchRef): void {
    if (!this.isSilent) for (const listener of this.#listeners) listener(ref);
  }
}

export function withId(column: ColumnSchema): ColumnSchema & { id: number } {
  return { ...column, id: nextId++ };
}

function tableOf(branch: MemoryBranch, name: string): MemoryTable {
  const table = branch.tables.find((t) => t.name === name);
  if (table === undefined) throw new LodestoneError("NOT_FOUND", `Table "${name}" does not exist.`);
  return table;
}

function toBatch(table: MemoryTable, records: MemoryRecord[], deleted: string[], only?: readonly string[]): FeedBatch {
  const columns = new Map<string, FeedColumn>();
  for (const column of table.columns) {
    if (only !== undefined && !only.includes(column.name)) continue;
    const values = records.map((record) => record[column.name] ?? null);
    columns.set(column.name, toColumn(column, values));
  }
  return { table: table.name, ids: records.map((record) => record.id), columns, deleted };
}

function toColumn(column: ColumnSchema, values: unknown[]): FeedColumn {
  switch (column.type) {
    case "vector": {
      const { dimension } = column.vector!;
      const rows = values.flatMap((value, i) => (value === null ? [] : [i]));
      return {
        kind: "vector",
        dimension,
        rows: Uint32Array.from(rows),
        elements: Float32Array.from(rows.flatMap((i) => values[i] as number[])),
      };
    }
    case "int":
    case "datetime":
      return { kind: column.type, values: values as (bigint | null)[] };
    case "float":
      return { kind: "float", values: values as (number | null)[] };
    case "bool":
      return { kind: "bool", values: values as (boolean | null)[] };
    case "multiple":
      return { kind: "multiple", values: values as ((string | null)[] | null)[] };
    case "json":
      return { kind: "json", values: values as (string | null)[] };
    default:
      return { kind: "text", values: values as (string | null)[] };
  }
}

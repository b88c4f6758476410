/** POST …/transaction: operations in order, as one unit. Later ones see what earlier ones did; all or nothing. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { type SystemColumn, type SystemNaming, systemColumnNamed, VERSION_COLUMNS } from "../../../filter/system-columns.ts";
import { isContention } from "../../engine/database-errors.ts";
import { type Connection, type Engine, slicesOf } from "../../engine/engine.ts";
import { checkReadOnly, type ReadOnlyOption } from "../../read-only.ts";
import type {
  AnswerOptions,
  JsonObject,
  ReadOptions,
  Selection,
  TransactionOperation,
  TransactionResult,
  WriteOptions,
} from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { getRecords } from "../read/read-records.ts";
import { setOwn } from "../sql-parts/answer-field.ts";
import { compileProjection } from "../sql-parts/projection.ts";
import { REPEATED, ROW, relation, WriteParameters } from "../sql-parts/statement-parts.ts";
import { recordIdOf } from "../values/record-metadata.ts";
import { bulkStatement, explainBulk } from "../write/bulk-insert.ts";
import { explained } from "../write/constraint-errors.ts";
import { excludedAssignments } from "../write/record-writer.ts";
import { deleteRecord, replaceWith, updateWith, upsertWith } from "../write/write-record.ts";
import { type Batch, batchesOf, isBatchable, lockRecords } from "./transaction-batches.ts";
import {
  type DeleteOperation,
  type GetOperation,
  type InsertOperation,
  readOperations,
  transactionFailed,
  type UpdateOperation,
} from "./transaction-operations.ts";

/**
 * @throws {LodestoneError} INVALID with `errors[{index, message}]`: all operations that are invalid by
 *   themselves, or the first that failed; FORBIDDEN for a write of a caller that may only read. Nothing is
 *   applied then.
 */
export async function runTransaction(
  engine: Engine,
  branch: BranchInfo,
  operations: readonly TransactionOperation[],
  options: AnswerOptions & ReadOnlyOption = {},
): Promise<TransactionResult[]> {
  const read = await readOperations(branch, operations);
  const writes = read.some(({ kind }) => kind !== "get");
  checkReadOnly(options, writes, "get records in a transaction");
  if (read.length === 0) return [];
  const batches = batchesOf(read);
  if (batches.length === 1 && isOneStatement(batches[0]!)) {
    try {
      const runner = new TransactionRunner(engine, branch, options);
      await runner.run(batches[0]!);
      return runner.results;
    } catch (error) {
      // It was rolled back in favour of another transaction: transactions are tried again.
      if (!isContention(error)) throw error;
    }
  }
  return engine.transaction(
    async (connection) => {
      await lockRecords(connection, branch, batches);
      const runner = new TransactionRunner(connection, branch, options);
      for (const batch of batches) await runner.run(batch);
      return runner.results;
    },
    // One snapshot for all of it. Under read committed a DELETE of four records that another transaction just
    // wrote would see some of them and not the others (those that are updated are followed, those that are new
    // are not), and two reads would see two states.
    { readOnly: !writes, isolation: read.length === 1 ? "read committed" : "repeatable read" },
  );
}

/**
 * Inserts of one statement are a transaction by themselves, if their answer is small. Not deletes: those of several records
 * need a snapshot of their own, and one that is missing may have to undo the others.
 */
function isOneStatement({ kind, operations: [first] }: Batch): boolean {
  return kind === "insert" && first.columns === undefined && isBatchable(first as InsertOperation);
}

class TransactionRunner {
  readonly results: TransactionResult[] = [];
  readonly #connection: Connection;
  readonly #branch: BranchInfo;
  readonly #answer: AnswerOptions;

  constructor(connection: Connection, branch: BranchInfo, answer: AnswerOptions) {
    this.#connection = connection;
    this.#branch = branch;
    this.#answer = answer;
  }

  async run({ kind, operations }: Batch): Promise<void> {
    // Unless the batch says otherwise, its first operation failed.
    let index = operations[0].index;
    try {
      switch (kind) {
        case "insert":
          await this.#insert(operations as InsertOperation[]);
          break;
        case "delete":
          await this.#delete(operations as DeleteOperation[]);
          break;
        case "get":
          await this.#get(operations as GetOperation[]);
          break;
        case "update":
          for (const operation of operations as UpdateOperation[]) {
            index = operation.index;
            await this.#update(operation);
          }
      }
    } catch (error) {
      if (!(error instanceof LodestoneError) || PASSED_ON.has(error.code)) throw error;
      const [failed] = error.errors ?? [];
      throw transactionFailed([failed ?? { index, code: error.code, message: error.message }], error);
    }
  }

  async #insert(operations: readonly InsertOperation[]): Promise<void> {
    const [first] = operations as [InsertOperation];
    if (!isBatchable(first)) return this.#insertOne(first);
    const { table, columns, createOnly } = first;
    const records = operations.map((operation) => operation.record);
    const parameters = new WriteParameters(this.#connection);
    const projection = compileProjection(this.#branch, first.selection, ROW, this.#answer);
    const statement =
      bulkStatement(this.#branch, table, records, parameters) +
      (createOnly ? "" : ` ON CONFLICT ("id") DO UPDATE SET ${excludedAssignments(first.table)}`) +
      ` RETURNING ${ROW}."id", ${columns === undefined ? "''" : projection.sql} AS record`;
    let rows: { id: string; record: string }[];
    try {
      ({ rows } = await this.#connection.query<{ id: string; record: string }>(statement, parameters.values, REPEATED));
    } catch (error) {
      throw atOperation(operations, explainBulk(table, records, error));
    }
    const written = new Map(rows.map((row) => [row.id, row.record]));
    const slices = slicesOf(this.#connection);
    for (const { id } of records) {
      const text = written.get(id)!;
      this.results.push({ operation: "insert", id, rows: 1, ...this.#writtenColumns(first, () => projection.decode(text)) });
      if (slices.spend(text.length)) await slices.rest();
    }
  }

  async #insertOne(operation: InsertOperation): Promise<void> {
    const { table, record, columns, createOnly } = operation;
    const options = { ...this.#writing(columns, operation), createOnly };
    const written = await replaceWith(this.#connection, this.#branch, table, record, options);
    this.results.push({ operation: "insert", id: record.id, rows: 1, ...this.#writtenColumns(operation, () => written.record) });
  }

  async #update(operation: UpdateOperation): Promise<void> {
    const { table, id, update, upsert, columns } = operation;
    const options = this.#writing(columns, operation);
    const record = upsert
      ? (await upsertWith(this.#connection, this.#branch, table, update, options)).record
      : await updateWith(this.#connection, this.#branch, table, update, options);
    this.results.push({ operation: "update", id, rows: 1, ...this.#writtenColumns(operation, () => record) });
  }

  async #delete(operations: readonly DeleteOperation[]): Promise<void> {
    const [first] = operations as [DeleteOperation];
    if (asksForColumns(first)) return this.#deleteOne(first);
    const ids = operations.map((operation) => operation.id);
    const { rows } = await explained(first.table, () =>
      this.#connection.query<{ id: string }>(
        `DELETE FROM ${relation(this.#branch, first.table)} AS ${ROW} WHERE ${ROW}."id" = ANY ($1::text[]) RETURNING ${ROW}."id"`,
        [ids],
        REPEATED,
      ),
    );
    const removed = new Set(rows.map((row) => row.id));
    for (const operation of operations) {
      // An id that is given twice does not exist the second time.
      const found = removed.delete(operation.id);
      if (!found && operation.failIfMissing) throw atOperation([operation], nothingDeleted(operation.table));
      this.results.push({ operation: "delete", rows: found ? 1 : 0 });
    }
  }

  async #deleteOne({ table, id, columns, failIfMissing }: DeleteOperation): Promise<void> {
    try {
      const record = await deleteRecord(this.#connection, this.#branch, table, id, this.#reading(columns));
      this.results.push({ operation: "delete", rows: 1, columns: exactly(columns, record!, this.#branch.systemNaming) });
    } catch (error) {
      if (!(error instanceof LodestoneError) || error.code !== "NOT_FOUND") throw error;
      if (failIfMissing) throw nothingDeleted(table);
      this.results.push({ operation: "delete", rows: 0, columns: {} });
    }
  }

  async #get(operations: readonly GetOperation[]): Promise<void> {
    const [first] = operations as [GetOperation];
    const ids = operations.map((operation) => operation.id);
    const records = await getRecords(this.#connection, this.#branch, first.table, ids, this.#reading(first.columns));
    const { systemNaming } = this.#branch;
    const found = new Map<string, JsonObject>(records.map((record) => [recordIdOf(record, systemNaming), record]));
    for (const id of ids) {
      const record = found.get(id);
      // An empty list, which the Python SDK sends when no columns are named: the id and the metadata, as everywhere else.
      const isNamed = first.columns?.length !== 0;
      const columns = record === undefined ? {} : isNamed ? exactly(first.columns, record, systemNaming) : record;
      this.results.push({ operation: "get", columns });
    }
  }

  /**
   * `columns` of a write's result: those asked for, or the retired service's empty object where the id may have
   * existed before.
   */
  #writtenColumns(operation: InsertOperation | UpdateOperation, record: () => JsonObject): { columns?: JsonObject } {
    const { columns } = operation;
    if (columns !== undefined) return { columns: exactly(columns, record(), this.#branch.systemNaming) };
    return operation.kind === "insert" && operation.createOnly ? {} : { columns: {} };
  }

  #reading(columns: Selection | undefined): ReadOptions {
    return columns === undefined ? this.#answer : { ...this.#answer, columns };
  }

  #writing(columns: Selection | undefined, { ifVersion }: InsertOperation | UpdateOperation): WriteOptions {
    return { ...this.#reading(columns), ...(ifVersion === undefined ? {} : { ifVersion }) };
  }
}

function asksForColumns({ columns }: DeleteOperation): boolean {
  return columns !== undefined && columns.length > 0;
}

/** The text is the retired service's, which clients compare. */
function nothingDeleted(table: TableInfo): LodestoneError {
  return new LodestoneError("NOT_FOUND", `table [${table.name}]: no rows deleted`);
}

/** Errors that are not about an operation already say what to do. */
const PASSED_ON: ReadonlySet<string> = new Set(["TOO_LARGE", "TIMEOUT", "UNAVAILABLE", "OVERLOADED", "OUT_OF_MEMORY", "CORRUPT"]);

/** An error about a record of a batch, as an error of that record's operation. */
function atOperation(operations: readonly { readonly index: number }[], error: unknown): unknown {
  if (!(error instanceof LodestoneError) || PASSED_ON.has(error.code)) return error;
  const within = error.errors?.[0];
  const { index } = operations[within?.index ?? 0]!;
  const message = within?.message ?? error.message;
  return new LodestoneError(error.code, message, { errors: [{ index, code: error.code, message }], cause: error });
}

/**
 * A record as a transaction answers it: only the columns asked for. Everywhere else any selection includes the id and
 * the metadata.
 * @param columns  undefined: all.
 */
function exactly(columns: Selection | undefined, record: JsonObject, naming: SystemNaming): JsonObject {
  if (columns === undefined || columns.includes("*")) return record;
  const asked = systemColumnsIn(columns);
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    const system = naming === "underscored" || name === "id" ? systemColumnNamed(name) : undefined;
    if (name === "xata" && naming === "dotted") {
      const members = Object.entries(value as JsonObject).filter(([member]) => asked.has(`xata.${member}` as SystemColumn));
      if (members.length > 0) setOwn(kept, name, Object.fromEntries(members));
    } else if (system === undefined || asked.has(system)) setOwn(kept, name, value);
  }
  return kept;
}

/** In either naming; `xata` and `xata.*` are all of the metadata. */
function systemColumnsIn(columns: Selection): ReadonlySet<SystemColumn> {
  const asked = new Set<SystemColumn>();
  for (const column of columns) {
    if (column === "xata" || column === "xata.*") for (const name of VERSION_COLUMNS) asked.add(name);
    const system = typeof column === "string" ? systemColumnNamed(column) : undefined;
    if (system !== undefined) asked.add(system);
  }
  return asked;
}

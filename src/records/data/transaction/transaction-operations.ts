/**
 * The operations of a transaction. Each is checked by itself before anything runs, so that a client learns of
 * all its mistakes at once. Their members are checked by the schema of the endpoint, what they hold is checked here.
 */
import { LodestoneError, type OperationError } from "../../../errors/lodestone-error.ts";
import { quoted, quotedNames } from "../../../errors/value-in-words.ts";
import type { Selection, TransactionOperation } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { ALL_COLUMNS, type RecordSelection, readSelection } from "../sql-parts/selection.ts";
import { withLongJson } from "../values/long-json.ts";
import { requireRecordId } from "../values/record-metadata.ts";
import { notExpected } from "../values/request-parts.ts";
import { type EncodedRecord, encodeRecord } from "../values/sent-record.ts";
import { type RecordUpdate, readUpdate } from "../write/write-record.ts";

interface Common {
  readonly index: number;
  readonly table: TableInfo;
  /** undefined: the result has no columns. */
  readonly columns: Selection | undefined;
  readonly selection: RecordSelection;
}

export interface InsertOperation extends Common {
  readonly kind: "insert";
  readonly record: EncodedRecord;
  /** The id must be new: it was made here, or createOnly is set. */
  readonly createOnly: boolean;
  readonly ifVersion: number | undefined;
}

export interface UpdateOperation extends Common {
  readonly kind: "update";
  readonly id: string;
  readonly update: RecordUpdate;
  readonly upsert: boolean;
  readonly ifVersion: number | undefined;
}

export interface DeleteOperation extends Common {
  readonly kind: "delete";
  readonly id: string;
  readonly failIfMissing: boolean;
}

export interface GetOperation extends Common {
  readonly kind: "get";
  readonly id: string;
}

export type Operation = InsertOperation | UpdateOperation | DeleteOperation | GetOperation;

/** @throws {LodestoneError} INVALID, with an entry in `errors` for each operation that is wrong. */
export async function readOperations(branch: BranchInfo, operations: readonly TransactionOperation[]): Promise<Operation[]> {
  const errors: OperationError[] = [];
  const read: Operation[] = [];
  for (const [index, operation] of operations.entries()) {
    try {
      read.push(await readOperation(branch, operation, index));
    } catch (error) {
      if (!(error instanceof LodestoneError)) throw error;
      errors.push({ index, code: error.code, message: error.message });
    }
  }
  if (errors.length > 0) throw transactionFailed(errors);
  return read;
}

/** Nothing was applied. */
export function transactionFailed(errors: readonly OperationError[], cause?: unknown): LodestoneError {
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more, see errors)` : "";
  return new LodestoneError("INVALID", `Nothing was applied: ${errors[0]!.message}${more}`, { errors, cause });
}

async function readOperation(branch: BranchInfo, operation: TransactionOperation, index: number): Promise<Operation> {
  const place = `operations[${index}].${Object.keys(operation)[0]}`;
  const common = (table: TableInfo, columns: Selection | undefined, unasked?: Selection): Common => {
    const selection = readSelection(branch, table, columns ?? unasked, `${place}.columns`);
    return { index, table, columns, selection };
  };
  if ("insert" in operation) {
    const { table: name, record: sent, createOnly = false, ifVersion, columns } = operation.insert;
    const table = requireTable(branch, name, `${place}.table`);
    const shared = common(table, columns);
    const record = encodeRecord(table, (await withLongJson(table, sent)) as object, `${place}.record`);
    return { ...shared, kind: "insert", record, createOnly: createOnly || record.isNewId, ifVersion };
  }
  if ("update" in operation) {
    const { table: name, id, fields, upsert = false, ifVersion, columns } = operation.update;
    const table = requireTable(branch, name, `${place}.table`);
    const shared = common(table, columns);
    if (upsert) requireRecordId(id, `${place}.id`);
    else requireText(id, `${place}.id`);
    const update = readUpdate(table, (await withLongJson(table, fields)) as object, `${place}.fields`, id);
    return { ...shared, kind: "update", id, update, upsert, ifVersion };
  }
  if ("delete" in operation) {
    const { table, id, failIfMissing = false, columns } = operation.delete;
    const shared = common(requireTable(branch, table, `${place}.table`), columns);
    return { ...shared, kind: "delete", id: requireText(id, `${place}.id`), failIfMissing };
  }
  const { table, id, columns } = operation.get;
  const shared = common(requireTable(branch, table, `${place}.table`), columns, ALL_COLUMNS);
  return { ...shared, kind: "get", id: requireText(id, `${place}.id`) };
}

function requireTable(branch: BranchInfo, name: string, place: string): TableInfo {
  const table = branch.tables.get(name);
  if (table !== undefined) return table;
  throw new LodestoneError(
    "NOT_FOUND",
    `${place}: there is no table ${quoted(name)}; the branch has ${quotedNames([...branch.tables.keys()], "no tables")}.`,
  );
}

/** SQL may have written any id, so every operation but creating accepts any text that PostgreSQL can hold. */
function requireText(id: string, place: string): string {
  if (!id.includes("\u0000")) return id;
  throw notExpected(place, id, "the id of a record");
}

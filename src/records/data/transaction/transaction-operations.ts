/**
 * The operations of a transaction. Each is checked by itself before anything runs, so that a client learns of
 * all its mistakes at once.
 */
import { LodestoneError, type OperationError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { isObject } from "../../../text/json-object.ts";
import { MAX_OPERATIONS } from "../../request-limits.ts";
import type { Selection } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { ALL_COLUMNS, type RecordSelection, readSelection } from "../sql-parts/selection.ts";
import { withLongJson } from "../values/long-json.ts";
import { requireRecordId } from "../values/record-id.ts";
import { readFields } from "../values/sent-record.ts";
import { checkIfVersion } from "../values/version-check.ts";
import { type BulkRecord, readBulkRecord } from "../write/bulk-insert.ts";
import { readChanges } from "../write/update-record.ts";

interface Common {
  readonly index: number;
  readonly table: TableInfo;
  /** undefined: the result has no columns. */
  readonly columns: Selection | undefined;
  readonly selection: RecordSelection;
}

export interface InsertOperation extends Common {
  readonly kind: "insert";
  readonly record: BulkRecord;
  /** As it was sent; for inserts that run one by one. */
  readonly source: unknown;
  /** The id must be new: it was made here, or createOnly is set. */
  readonly createOnly: boolean;
  readonly ifVersion: number | undefined;
}

export interface UpdateOperation extends Common {
  readonly kind: "update";
  readonly id: string;
  readonly fields: unknown;
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
export async function readOperations(branch: BranchInfo, operations: unknown): Promise<Operation[]> {
  if (!Array.isArray(operations))
    throw new LodestoneError("INVALID", `operations is ${inWords(operations)}; expected an array of operations.`);
  if (operations.length > MAX_OPERATIONS) {
    throw new LodestoneError(
      "INVALID",
      `operations has ${operations.length} operations; at most ${MAX_OPERATIONS} go into one transaction.`,
    );
  }
  const errors: OperationError[] = [];
  const read: Operation[] = [];
  for (const [index, operation] of operations.entries()) {
    try {
      read.push(readOperation(branch, await operationWithLongJson(branch, operation), index));
    } catch (error) {
      if (!(error instanceof LodestoneError)) throw error;
      errors.push({ index, message: error.message });
    }
  }
  if (errors.length > 0) throw transactionFailed(errors);
  return read;
}

/** The operation with its record, or its fields, as `withLongJson` gives them. Nothing of it was checked yet. */
async function operationWithLongJson(branch: BranchInfo, operation: unknown): Promise<unknown> {
  if (!isObject(operation)) return operation;
  for (const [kind, member] of [
    ["insert", "record"],
    ["update", "fields"],
  ] as const) {
    const given = operation[kind];
    const table = isObject(given) && typeof given.table === "string" ? branch.tables.get(given.table) : undefined;
    if (!isObject(given) || table === undefined) continue;
    const value = await withLongJson(table, given[member]);
    if (value !== given[member]) return { ...operation, [kind]: { ...given, [member]: value } };
  }
  return operation;
}

/** Nothing was applied. */
export function transactionFailed(errors: readonly OperationError[], cause?: unknown): LodestoneError {
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more, see errors)` : "";
  return new LodestoneError("INVALID", `Nothing was applied: ${errors[0]!.message}${more}`, { errors, cause });
}

const KINDS = ["insert", "update", "delete", "get"] as const;
const MEMBERS = {
  insert: ["table", "record", "createOnly", "ifVersion", "columns"],
  update: ["table", "id", "fields", "ifVersion", "upsert", "columns"],
  delete: ["table", "id", "failIfMissing", "columns"],
  get: ["table", "id", "columns"],
} as const;

function readOperation(branch: BranchInfo, operation: unknown, index: number): Operation {
  const at = `operations[${index}]`;
  const keys = isObject(operation) ? Object.keys(operation) : [];
  const kind = KINDS.find((name) => keys.length === 1 && keys[0] === name);
  if (!isObject(operation) || kind === undefined) {
    throw new LodestoneError(
      "INVALID",
      `${at} is ${inWords(operation)}; expected an object with one of the keys insert, update, delete and get.`,
    );
  }
  const place = `${at}.${kind}`;
  const given = operation[kind];
  if (!isObject(given)) throw new LodestoneError("INVALID", `${place} is ${inWords(given)}; expected an object with a table.`);
  for (const key of Object.keys(given)) {
    if (!(MEMBERS[kind] as readonly string[]).includes(key)) {
      throw new LodestoneError("INVALID", `${place} has an unknown member ${quoted(key)}; it takes ${quotedNames(MEMBERS[kind], "")}.`);
    }
  }
  const table = requireTable(branch, given.table, `${place}.table`);
  const columns = (given.columns ?? undefined) as Selection | undefined;
  const selection = readSelection(branch, table, columns ?? (kind === "get" ? ALL_COLUMNS : undefined), `${place}.columns`);
  const common = { index, table, columns, selection };
  const flag = (name: string): boolean => {
    const value = given[name] ?? false;
    if (typeof value !== "boolean") throw new LodestoneError("INVALID", `${place}.${name} is ${inWords(value)}; expected true or false.`);
    return value;
  };
  const ifVersion = (): number | undefined => {
    const value = given.ifVersion ?? undefined;
    checkIfVersion(value, `${place}.ifVersion`);
    return value as number | undefined;
  };
  switch (kind) {
    case "insert": {
      const record = readBulkRecord(table, given.record, `${place}.record`);
      const made = readFields(table, given.record, place).id;
      return {
        ...common,
        kind,
        record,
        source: given.record,
        createOnly: flag("createOnly") || made === undefined || made === null,
        ifVersion: ifVersion(),
      };
    }
    case "update": {
      const upsert = flag("upsert");
      const id = upsert ? requireRecordId(given.id, `${place}.id`) : requireText(given.id, `${place}.id`);
      readChanges(table, given.fields, `${place}.fields`, id);
      return { ...common, kind, id, fields: given.fields, upsert, ifVersion: ifVersion() };
    }
    case "delete":
      return { ...common, kind, id: requireText(given.id, `${place}.id`), failIfMissing: flag("failIfMissing") };
    case "get":
      return { ...common, kind, id: requireText(given.id, `${place}.id`) };
  }
}

function requireTable(branch: BranchInfo, name: unknown, place: string): TableInfo {
  if (typeof name !== "string") throw new LodestoneError("INVALID", `${place} is ${inWords(name)}; expected the name of a table.`);
  const table = branch.tables.get(name);
  if (table !== undefined) return table;
  throw new LodestoneError(
    "NOT_FOUND",
    `${place}: there is no table ${quoted(name)}; the branch has ${quotedNames([...branch.tables.keys()], "no tables")}.`,
  );
}

/** SQL may have written any id, so every operation but creating accepts any text. */
function requireText(id: unknown, place: string): string {
  if (typeof id === "string" && !id.includes("\u0000")) return id;
  throw new LodestoneError("INVALID", `${place} is ${inWords(id)}; expected the id of a record.`);
}

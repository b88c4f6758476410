/**
 * Single records: POST …/data inserts, PUT …/data/{id} replaces, PATCH updates, POST …/data/{id} updates or creates,
 * DELETE deletes. Functions whose names end in `With` take what was checked already, for transactions.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import type { JsonObject, ReadOptions, WriteOptions } from "../../requests.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import { Parameters, quotedColumn, REPEATED, ROW, relation, WriteParameters } from "../sql-parts/statement-parts.ts";
import { type ColumnValue, toColumnValue } from "../values/column-value.ts";
import { withLongJson } from "../values/long-json.ts";
import { recordNotFound, recordVersionOf, requireRecordId, versionConflict } from "../values/record-metadata.ts";
import { notExpected } from "../values/request-parts.ts";
import { type EncodedRecord, encodeRecord, idOf, readFields, requireValues } from "../values/sent-record.ts";
import { explained } from "./constraint-errors.ts";
import {
  excludedAssignments,
  insertStatement,
  type RecordWriter,
  replaceAssignments,
  type Session,
  UNCHANGED,
  updateStatement,
  withWriter,
} from "./record-writer.ts";

export interface WrittenRecord {
  readonly record: JsonObject;
  readonly created: boolean;
}

/**
 * Inserts with an id made by the service, or with the record's own `id`, which must be new (CONFLICT).
 * @param write  how: alone, or with others that come at the same time.
 */
export async function insertRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  record: JsonObject,
  options: WriteOptions = {},
  write: typeof replaceWith = replaceWith,
): Promise<JsonObject> {
  const encoded = encodeRecord(table, (await withLongJson(table, record)) as object, "record");
  return (await write(session, branch, table, encoded, { ...options, createOnly: true })).record;
}

/**
 * Replaces the whole record: omitted columns get their default. Creates it if it does not exist. createOnly:
 * CONFLICT if it exists. ifVersion: CONFLICT unless it exists with that version.
 */
export async function replaceRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  record: JsonObject,
  options: WriteOptions = {},
  write: typeof replaceWith = replaceWith,
): Promise<WrittenRecord> {
  const encoded = encodeRecord(table, (await withLongJson(table, record)) as object, "record", requireRecordId(id));
  return write(session, branch, table, encoded, options);
}

/** `replaceRecord` of a record that was checked already. */
export async function replaceWith(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  record: EncodedRecord,
  { createOnly = false, ifVersion, ...options }: WriteOptions,
): Promise<WrittenRecord> {
  return withWriter(session, branch, table, options, async (writer) => {
    if (ifVersion !== undefined) {
      if (createOnly) await refuseExisting(writer, record.id);
      return { record: await replaceVersion(writer, record, ifVersion), created: false };
    }
    if (createOnly) return { record: await insert(writer, record), created: true };
    const parameters = new WriteParameters(writer);
    const statement = `${insertStatement(branch, table, record, parameters)} ON CONFLICT ("id") DO UPDATE SET ${excludedAssignments(table)}`;
    const written = (await writer.write(statement, parameters))!;
    // A record that existed before has at least version 1 now.
    return { record: written, created: recordVersionOf(written, branch.systemNaming) === 0 };
  });
}

async function insert(writer: RecordWriter, record: EncodedRecord): Promise<JsonObject> {
  const parameters = new WriteParameters(writer);
  const written = await writer.write(insertStatement(writer.branch, writer.table, record, parameters), parameters);
  return written!;
}

async function refuseExisting(writer: RecordWriter, id: string): Promise<void> {
  if ((await writer.version(id)) === undefined) return;
  throw new LodestoneError(
    "CONFLICT",
    `Table ${quoted(writer.table.name)} has a record with the id ${quoted(id)} already, and createOnly is set.`,
  );
}

async function replaceVersion(writer: RecordWriter, record: EncodedRecord, ifVersion: number): Promise<JsonObject> {
  const parameters = new WriteParameters(writer);
  const assignments = replaceAssignments(writer.table, record, parameters);
  const written = await writer.write(
    updateStatement(writer.branch, writer.table, assignments, record.id, ifVersion, parameters),
    parameters,
  );
  if (written !== undefined) return written;
  throw versionConflict(writer.table, record.id, ifVersion, await writer.version(record.id));
}

const OPERATORS = { $increment: "+", $decrement: "-", $multiply: "*", $divide: "/" } as const;
type Operator = keyof typeof OPERATORS;

/**
 * Another client may create the record between an update that finds nothing and the insert, and delete it again
 * in the next round.
 */
const MAX_ATTEMPTS = 5;

/** What an update does to one column. */
interface Change {
  readonly column: ColumnInfo;
  /** undefined: the value is set. */
  readonly operator: Operator | undefined;
  readonly value: ColumnValue;
}

/** An update, checked: sets the given columns and leaves the rest. */
export interface RecordUpdate {
  readonly id: string;
  readonly changes: readonly Change[];
  /** What messages call it. */
  readonly place: string;
}

/** @throws {LodestoneError} NOT_FOUND when there is no such record; CONFLICT when its version is not `ifVersion`. */
export async function updateRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  fields: JsonObject,
  options: WriteOptions = {},
): Promise<JsonObject> {
  const changes = readUpdate(table, (await withLongJson(table, fields)) as object, "record", id);
  return updateWith(session, branch, table, changes, options);
}

/** `updateRecord` with fields that were checked already. */
export async function updateWith(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  record: RecordUpdate,
  { ifVersion, ...options }: WriteOptions,
): Promise<JsonObject> {
  const { id } = record;
  if (id.includes("\u0000")) throw recordNotFound(table, id);
  return withWriter(session, branch, table, options, async (writer) => {
    const updated = await update(writer, record, ifVersion);
    if (updated !== undefined) return updated;
    const version = await writer.version(id);
    if (version === undefined || ifVersion === undefined) throw recordNotFound(table, id);
    throw versionConflict(table, id, ifVersion, version);
  });
}

/** Updates, or creates with the fields as the whole record. With `ifVersion` the record must exist (CONFLICT). */
export async function upsertRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  fields: JsonObject,
  options: WriteOptions = {},
): Promise<WrittenRecord> {
  const changes = readUpdate(table, (await withLongJson(table, fields)) as object, "record", requireRecordId(id));
  return upsertWith(session, branch, table, changes, options);
}

/** `upsertRecord` with fields that were checked already. */
export async function upsertWith(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  record: RecordUpdate,
  { ifVersion, ...options }: WriteOptions,
): Promise<WrittenRecord> {
  const { id } = record;
  return withWriter(session, branch, table, options, async (writer) => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // The update comes first: an insert that turns into an update would require notNull columns that the
      // record has already.
      const updated = await update(writer, record, ifVersion);
      if (updated !== undefined) return { record: updated, created: false };
      if (ifVersion !== undefined) throw versionConflict(table, id, ifVersion, await writer.version(id));
      const parameters = new WriteParameters(writer);
      const inserted = await writer.write(
        `${insertStatement(branch, table, newRecord(table, record), parameters)} ON CONFLICT ("id") DO NOTHING`,
        parameters,
      );
      if (inserted !== undefined) return { record: inserted, created: true };
      // Another client created it in between: then it can be updated.
    }
    throw new LodestoneError(
      "OVERLOADED",
      `Record ${quoted(id)} of table ${quoted(table.name)} is repeatedly created and deleted by other clients; try again.`,
      { retryAfterSeconds: 1 },
    );
  });
}

async function update(writer: RecordWriter, { id, changes }: RecordUpdate, ifVersion: number | undefined): Promise<JsonObject | undefined> {
  const parameters = new WriteParameters(writer);
  const set = changes.length === 0 ? UNCHANGED : changes.map((change) => assignment(change, parameters)).join(", ");
  return writer.write(updateStatement(writer.branch, writer.table, set, id, ifVersion, parameters), parameters);
}

function assignment({ column, operator, value }: Change, parameters: WriteParameters): string {
  const name = quotedColumn(column);
  const bound = parameters.column(column, value);
  if (operator === undefined) return `${name} = ${bound}`;
  // A counter without a value counts from 0; a product of null stays null.
  const base = operator === "$increment" || operator === "$decrement" ? `coalesce(${ROW}.${name}, 0)` : `${ROW}.${name}`;
  return `${name} = ${base} ${OPERATORS[operator]} ${bound}`;
}

/** Checks the fields. Arithmetic happens in the database, so no concurrent update is lost. */
export function readUpdate(table: TableInfo, fields: object, place: string, id: string): RecordUpdate {
  const read = readFields(table, fields, place);
  idOf(read, place, id);
  const changes = Array.from(read.values, ([column, value]): Change => {
    const at = `${place}.${column.name}`;
    const { operator, operand } = operatorOf(column, value, at) ?? { operator: undefined, operand: value };
    return { column, operator, value: toColumnValue(column, operand, operator === undefined ? at : `${at}.${operator}`) };
  });
  return { id, changes, place };
}

/** `{"$increment": 1}`; in a json column that is a value like any other. */
function operatorOf(column: ColumnInfo, value: unknown, place: string): { operator: Operator; operand: unknown } | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || column.type === "json") return undefined;
  const keys = Object.keys(value);
  const operator = keys.find((key) => key.startsWith("$"));
  if (operator === undefined) return undefined;
  if (keys.length > 1 || !Object.hasOwn(OPERATORS, operator)) {
    throw notExpected(place, value, "one of $increment, $decrement, $multiply and $divide alone");
  }
  if (column.type !== "int" && column.type !== "float") {
    throw new LodestoneError(
      "INVALID",
      `${place}: ${operator} is for int and float columns; column ${quoted(column.name)} is of type ${column.type}.`,
    );
  }
  const operand: unknown = (value as Record<string, unknown>)[operator];
  if (operand === null || operand === undefined) throw new LodestoneError("INVALID", `${place}.${operator} is null; expected a number.`);
  if (operator === "$divide" && operand === 0) throw new LodestoneError("INVALID", `${place}.$divide is 0; divide by another number.`);
  return { operator: operator as Operator, operand };
}

/** The record that an upsert creates: arithmetic starts from the column's default, or from 0 where it adds. */
function newRecord(table: TableInfo, { id, changes, place }: RecordUpdate): EncodedRecord {
  const values = new Map<ColumnInfo, ColumnValue>();
  for (const { column, operator, value } of changes) {
    if (operator === undefined) {
      values.set(column, value);
      continue;
    }
    const base = column.defaultValue ?? (operator === "$increment" || operator === "$decrement" ? "0" : null);
    if (base === null) continue;
    values.set(column, column.type === "int" ? wholeResult(base, operator, value) : floatResult(column, base, operator, value, place));
  }
  requireValues(table, values, place);
  return { id, isNewId: false, values };
}

/** As text, with every digit: int columns hold more than JavaScript's numbers do. PostgreSQL refuses what is beyond int8. */
function wholeResult(base: string, operator: Operator, value: ColumnValue): string {
  const [a, b] = [BigInt(base), BigInt(value as number)];
  return String({ $increment: () => a + b, $decrement: () => a - b, $multiply: () => a * b, $divide: () => a / b }[operator]());
}

function floatResult(column: ColumnInfo, base: string, operator: Operator, value: ColumnValue, place: string): ColumnValue {
  const [a, b] = [Number(base), Number(value)];
  const result = { $increment: a + b, $decrement: a - b, $multiply: a * b, $divide: a / b }[operator];
  return toColumnValue(column, result, `${place}.${column.name}`);
}

/**
 * The foreign keys set links to the record to null.
 * @returns the removed record when `columns` is given.
 * @throws {LodestoneError} NOT_FOUND.
 */
export async function deleteRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  options: ReadOptions = {},
): Promise<JsonObject | undefined> {
  if (id.includes("\u0000")) throw recordNotFound(table, id);
  const parameters = new Parameters();
  const statement = `DELETE FROM ${relation(branch, table)} AS ${ROW} WHERE ${ROW}."id" = ${parameters.add(id)}`;
  if (options.columns === undefined) {
    const { rowCount } = await explained(table, () => session.query(statement, parameters.values, REPEATED));
    if (rowCount === 0) throw recordNotFound(table, id);
    return undefined;
  }
  return withWriter(session, branch, table, options, async (writer) => {
    // What is behind links is read before the record is deleted; the record is locked, so that it is the same
    // one.
    const before = writer.isFlat ? undefined : await writer.read(id, "FOR UPDATE");
    const removed = await writer.write(statement, parameters, before);
    if (removed === undefined) throw recordNotFound(table, id);
    return removed;
  });
}

/**
 * PATCH and POST …/data/{id}: sets the given columns and leaves the rest. Arithmetic happens in the database,
 * so no concurrent update is lost.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../../errors/value-in-words.ts";
import type { JsonObject, WriteOptions } from "../../requests.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import { Parameters, ROW } from "../sql-parts/bound-parameters.ts";
import { quotedColumn } from "../sql-parts/sql-names.ts";
import { type Parameter, toParameter } from "../values/column-value.ts";
import { type EncodedRecord, idOf, requireValues } from "../values/encode-record.ts";
import { withLongJson } from "../values/long-json.ts";
import { requireRecordId } from "../values/record-id.ts";
import { readFields } from "../values/sent-record.ts";
import { checkIfVersion, recordNotFound, versionConflict } from "../values/version-check.ts";
import type { WrittenRecord } from "./insert-record.ts";
import { type RecordWriter, type Session, withWriter } from "./record-writer.ts";
import { insertStatement, UNCHANGED, updateStatement } from "./write-statement.ts";

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
  readonly value: Parameter;
}

/** @throws {LodestoneError} NOT_FOUND when there is no such record; CONFLICT when its version is not `ifVersion`. */
export async function updateRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  fields: unknown,
  options: WriteOptions = {},
  place = "record",
): Promise<JsonObject> {
  const changes = readChanges(table, await withLongJson(table, fields), place, id);
  checkIfVersion(options.ifVersion);
  if (id.includes("\u0000")) throw recordNotFound(table, id);
  return withWriter(session, branch, table, options, async (writer) => {
    const record = await update(writer, id, changes, options.ifVersion);
    if (record !== undefined) return record;
    const version = await writer.version(id);
    if (version === undefined || options.ifVersion === undefined) throw recordNotFound(table, id);
    throw versionConflict(table, id, options.ifVersion, version);
  });
}

/** Updates, or creates with the fields as the whole record. With `ifVersion` the record must exist (CONFLICT). */
export async function upsertRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  fields: unknown,
  options: WriteOptions = {},
  place = "record",
): Promise<WrittenRecord> {
  requireRecordId(id);
  const changes = readChanges(table, await withLongJson(table, fields), place, id);
  const { ifVersion } = options;
  checkIfVersion(ifVersion);
  return withWriter(session, branch, table, options, async (writer) => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // The update comes first: an insert that turns into an update would require notNull columns that the
      // record has already.
      const updated = await update(writer, id, changes, ifVersion);
      if (updated !== undefined) return { record: updated, created: false };
      if (ifVersion !== undefined) throw versionConflict(table, id, ifVersion, await writer.version(id));
      const parameters = new Parameters();
      const inserted = await writer.write(
        `${insertStatement(branch, table, newRecord(table, id, changes, place), parameters)} ON CONFLICT ("id") DO NOTHING`,
        parameters,
      );
      if (inserted !== undefined) return { record: inserted, created: true };
      // Another client created it in between: then it can be updated.
    }
    throw new LodestoneError(
      "OVERLOADED",
      `Record ${quoted(id)} of table ${quoted(table.name)} is repeatedly created and deleted by other clients; try again.`,
      {
        retryAfterSeconds: 1,
      },
    );
  });
}

async function update(
  writer: RecordWriter,
  id: string,
  changes: readonly Change[],
  ifVersion: number | undefined,
): Promise<JsonObject | undefined> {
  const parameters = new Parameters();
  const set = changes.length === 0 ? UNCHANGED : changes.map((change) => assignment(change, parameters)).join(", ");
  return writer.write(updateStatement(writer.branch, writer.table, set, id, ifVersion, parameters), parameters);
}

function assignment({ column, operator, value }: Change, parameters: Parameters): string {
  const name = quotedColumn(column);
  const bound = parameters.column(column, value);
  if (operator === undefined) return `${name} = ${bound}`;
  // A counter without a value counts from 0; a product of null stays null.
  const base = operator === "$increment" || operator === "$decrement" ? `coalesce(${ROW}.${name}, 0)` : `${ROW}.${name}`;
  return `${name} = ${base} ${OPERATORS[operator]} ${bound}`;
}

/** Checks the fields and makes bound values of them. */
export function readChanges(table: TableInfo, fields: unknown, place: string, id: string): Change[] {
  const read = readFields(table, fields, place);
  idOf(read, place, id);
  const changes: Change[] = [];
  for (const [column, value] of read.values) {
    const at = `${place}.${column.name}`;
    const operation = operatorOf(column, value, at);
    changes.push({
      column,
      operator: operation?.operator,
      value: toParameter(
        column,
        operation === undefined ? value : operation.operand,
        operation === undefined ? at : `${at}.${operation.operator}`,
      ),
    });
  }
  return changes;
}

/** `{"$increment": 1}`; in a json column that is a value like any other. */
function operatorOf(column: ColumnInfo, value: unknown, place: string): { operator: Operator; operand: unknown } | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || column.type === "json") return undefined;
  const keys = Object.keys(value);
  const operator = keys.find((key) => key.startsWith("$"));
  if (operator === undefined) return undefined;
  if (keys.length > 1 || !Object.hasOwn(OPERATORS, operator)) {
    throw new LodestoneError(
      "INVALID",
      `${place} is ${inWords(value)}; expected one of $increment, $decrement, $multiply and $divide alone.`,
    );
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
function newRecord(table: TableInfo, id: string, changes: readonly Change[], place: string): EncodedRecord {
  const values = new Map<ColumnInfo, Parameter>();
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
  return { id, values };
}

/** As text, with every digit: int columns hold more than JavaScript's numbers do. PostgreSQL refuses what is beyond int8. */
function wholeResult(base: string, operator: Operator, value: Parameter): string {
  const [a, b] = [BigInt(base), BigInt(value as number)];
  return String({ $increment: () => a + b, $decrement: () => a - b, $multiply: () => a * b, $divide: () => a / b }[operator]());
}

function floatResult(column: ColumnInfo, base: string, operator: Operator, value: Parameter, place: string): Parameter {
  const [a, b] = [Number(base), Number(value)];
  const result = { $increment: a + b, $decrement: a - b, $multiply: a * b, $divide: a / b }[operator];
  return toParameter(column, result, `${place}.${column.name}`);
}

/** A whole record on its way into a row: its fields are checked, and so is that nothing required is missing. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../../errors/value-in-words.ts";
import type { ColumnInfo, TableInfo } from "../../schema.ts";
import { type Parameter, toParameter } from "./column-value.ts";
import { newRecordId, requireRecordId } from "./record-id.ts";
import { type RecordFields, readFields } from "./sent-record.ts";

export interface EncodedRecord {
  readonly id: string;
  /** The columns that were given, in the order given. */
  readonly values: ReadonlyMap<ColumnInfo, Parameter>;
}

/** For insert and replace: omitted columns get their default, so those without one must not be notNull. */
export function encodeRecord(table: TableInfo, record: unknown, place: string, id?: string): EncodedRecord {
  const fields = readFields(table, record, place);
  const recordId = idOf(fields, place, id) ?? newRecordId();
  const values = new Map<ColumnInfo, Parameter>();
  for (const [column, value] of fields.values) values.set(column, toParameter(column, value, `${place}.${column.name}`));
  requireValues(table, values, place);
  return { id: recordId, values };
}

/** A new row must have a value in each notNull column. */
export function requireValues(table: TableInfo, values: ReadonlyMap<ColumnInfo, unknown>, place: string): void {
  for (const column of table.columns.values()) {
    if (column.notNull && column.defaultValue === undefined && !values.has(column)) {
      throw new LodestoneError(
        "INVALID",
        `${place} has no value for column ${quoted(column.name)}, which is notNull and has no default; give it one.`,
      );
    }
  }
}

/** The id that the record is about: from the address or from the body; both must agree. */
export function idOf(fields: RecordFields, place: string, id: string | undefined): string | undefined {
  if (fields.id === undefined || fields.id === null) return id;
  if (id === undefined) return requireRecordId(fields.id, `${place}.id`);
  if (fields.id === id) return id;
  throw new LodestoneError(
    "INVALID",
    `${place}.id is ${inWords(fields.id)}, but the request is about the record ${quoted(id)}; leave it out, or make them equal.`,
  );
}

/**
 * A record as a client sends it: taken apart into columns, checked, and converted. Columns with dots in their names are object paths:
 * `{"address.city": …}` and `{"address": {"city": …}}` mean the same. `xata` (or `xata_version` and the like)
 * is what the service gives out and the SDK sends back, so it is ignored.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { unknownColumn } from "../../../filter/column-path.ts";
import { rootPlace } from "../../../filter/fault.ts";
import { isUnderscored, systemColumnNamed } from "../../../filter/system-columns.ts";
import type { ColumnInfo, TableInfo } from "../../schema.ts";
import { type ColumnValue, toColumnValue } from "./column-value.ts";
import { newRecordId, requireRecordId } from "./record-metadata.ts";
import { columnsBelow, notExpected } from "./request-parts.ts";

export interface RecordFields {
  /** The id in the body, unchecked; undefined when there is none. */
  readonly id: unknown;
  /** By column, values as they were sent. In the order sent. */
  readonly values: ReadonlyMap<ColumnInfo, unknown>;
}

/** @param place How messages name the record: `record`, `records[3]`, `operations[0].insert.record`. */
export function readFields(table: TableInfo, record: object, place: string): RecordFields {
  const values = new Map<ColumnInfo, unknown>();
  let id: unknown;
  const set = (column: ColumnInfo, value: unknown): void => {
    if (values.has(column)) throw new LodestoneError("INVALID", `${place} gives column ${quoted(column.name)} twice; give it once.`);
    values.set(column, value);
  };
  const visit = (prefix: string, object: object): void => {
    for (const [key, value] of Object.entries(object)) {
      const name = prefix + key;
      if (value === undefined) continue;
      const column = table.columns.get(name);
      if (column !== undefined) set(column, value);
      else if (systemColumnNamed(name) === "id") id = value;
      else if (name === "xata" || isUnderscored(name)) continue;
      else if (name.startsWith("xata.")) throw systemColumn(name, place);
      else visitObject(name, value);
    }
  };
  const visitObject = (name: string, value: unknown): void => {
    const members = columnsBelow(table, name);
    if (members.length === 0) throw unknownColumn(table, name, rootPlace(place));
    if (value === null) for (const column of members) set(column, null);
    else if (typeof value === "object" && !Array.isArray(value)) visit(`${name}.`, value);
    else {
      const names = members.map((column) => column.name);
      throw notExpected(`${place}.${name}`, value, `an object, since the table has the columns ${quotedNames(names, "")}`);
    }
  };
  visit("", record);
  return { id, values };
}

function systemColumn(name: string, place: string): LodestoneError {
  return new LodestoneError("INVALID", `${place}: ${quoted(name)} is kept by the service and cannot be written; leave it out.`);
}

export interface EncodedRecord {
  readonly id: string;
  /** Whether the id was made here, so that no other record can have it. */
  readonly isNewId: boolean;
  /** The columns that were given, in the order given. */
  readonly values: ReadonlyMap<ColumnInfo, ColumnValue>;
}

/**
 * A whole record: omitted columns get their default, so those without one must not be notNull.
 * @param id  of the address; undefined: the record's own, or a new one.
 */
export function encodeRecord(table: TableInfo, record: object, place: string, id?: string): EncodedRecord {
  const fields = readFields(table, record, place);
  const given = idOf(fields, place, id);
  const values = new Map<ColumnInfo, ColumnValue>();
  for (const [column, value] of fields.values) values.set(column, toColumnValue(column, value, `${place}.${column.name}`));
  requireValues(table, values, place);
  return { id: given ?? newRecordId(), isNewId: given === undefined, values };
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

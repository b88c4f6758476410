/**
 * A record as a client sends it, taken apart into columns. Columns with dots in their names are object paths:
 * `{"address.city": …}` and `{"address": {"city": …}}` mean the same. `xata` (or `xata_version` and the like)
 * is what the service gives out and the SDK sends back, so it is ignored.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted, quotedNames } from "../../../errors/value-in-words.ts";
import { unknownColumn } from "../../../filter/column-path.ts";
import { rootPlace } from "../../../filter/fault.ts";
import { isUnderscored, systemColumnNamed } from "../../../filter/system-columns.ts";
import type { ColumnInfo, TableInfo } from "../../schema.ts";

export interface RecordFields {
  /** The id in the body, unchecked; undefined when there is none. */
  readonly id: unknown;
  /** By column, values as they were sent. In the order sent. */
  readonly values: ReadonlyMap<ColumnInfo, unknown>;
}

/** @param place How messages name the record: `record`, `records[3]`, `operations[0].insert.record`. */
export function readFields(table: TableInfo, record: unknown, place: string): RecordFields {
  if (typeof record !== "object" || record === null || Array.isArray(record)) {
    throw new LodestoneError("INVALID", `${place} is ${inWords(record)}; expected an object with values by column name.`);
  }
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
      throw new LodestoneError(
        "INVALID",
        `${place}.${name} is ${inWords(value)}; expected an object, since the table has the columns ${quotedNames(
          members.map((column) => column.name),
          "",
        )}.`,
      );
    }
  };
  visit("", record);
  return { id, values };
}

/** The columns of an object path: those whose names go on after `name` and a dot. */
export function columnsBelow(table: TableInfo, name: string): ColumnInfo[] {
  const prefix = `${name}.`;
  return [...table.columns.values()].filter((column) => column.name.startsWith(prefix));
}

function systemColumn(name: string, place: string): LodestoneError {
  return new LodestoneError("INVALID", `${place}: ${quoted(name)} is kept by the service and cannot be written; leave it out.`);
}

/** Compares a table of the server with where it came from: number and checksum of the records, both read again. */

import { createHash } from "node:crypto";
import { parseTimestamp } from "../../filter/datetime.ts";
import type { JsonObject, JsonValue } from "../../records/requests.ts";
import type { BranchRef, ColumnSchema } from "../../records/schema.ts";
import { type ApiClient, tableRecords } from "../api-client.ts";
import type { MigrationTable } from "./open-source.ts";

export interface Verification {
  readonly source: Checksum;
  readonly server: Checksum;
  readonly isSame: boolean;
}

export async function verifyTable(client: ApiClient, ref: BranchRef, table: MigrationTable, signal: AbortSignal): Promise<Verification> {
  const columns = await client.tableColumns(ref, table.name);
  const own = (columns ?? []).filter(({ name }) => table.columns.some((column) => column.name === name));
  const reading = { hasIds: true, timed: new Set<string>() };
  let source = await sourceChecksum(table, own, own, reading, signal);
  // The time of an insert is not known beforehand, so such columns are not compared.
  const compared = own.filter(({ name }) => !reading.timed.has(name));
  if (compared.length < own.length || !reading.hasIds) source = await sourceChecksum(table, own, compared, reading, signal);
  const server = await serverChecksum(client, ref, table.name, compared, reading.hasIds, signal);
  return { source, server, isSame: source.records === server.records && source.sum === server.sum };
}

async function sourceChecksum(
  table: MigrationTable,
  columns: readonly ColumnSchema[],
  compared: readonly ColumnSchema[],
  reading: { hasIds: boolean; timed: Set<string> },
  signal: AbortSignal,
): Promise<Checksum> {
  const checksum = new TableChecksum(compared, reading.hasIds);
  if (table.file === undefined) return checksum.result;
  const source = await table.open();
  for await (const { record } of source.rows(source.start, columns)) {
    signal.throwIfAborted();
    if (record.id === undefined || record.id === null) reading.hasIds = false;
    const expected: JsonObject = { ...record };
    for (const column of compared) {
      if (column.defaultValue === undefined || valueAt(record, column.name) !== undefined) continue;
      if (column.type === "datetime" && column.defaultValue === "now") reading.timed.add(column.name);
      else expected[column.name] = defaultOf(column);
    }
    checksum.add(expected);
  }
  return checksum.result;
}

/** The value that an insert without one gets. */
function defaultOf({ type, defaultValue = "" }: ColumnSchema): JsonValue {
  if (type === "bool") return defaultValue === "true";
  return type === "multiple" || type === "vector" ? (JSON.parse(defaultValue) as JsonValue) : defaultValue;
}

async function serverChecksum(
  client: ApiClient,
  ref: BranchRef,
  table: string,
  columns: readonly ColumnSchema[],
  withIds: boolean,
  signal: AbortSignal,
): Promise<Checksum> {
  const checksum = new TableChecksum(columns, withIds);
  for await (const page of tableRecords(client, ref, table)) {
    signal.throwIfAborted();
    for (const record of page) checksum.add(JSON.parse(record) as JsonObject);
  }
  return checksum.result;
}

/**
 * A checksum of a table's records that does not depend on their order: the sum, modulo 2^128, of a hash of
 * each. It is the same for the records of a source, as they were sent, and for those of the server, as it returns
 * them, whenever every value is the same.
 */
export interface Checksum {
  readonly records: number;
  /** 32 hexadecimal digits. */
  readonly sum: string;
}

export class TableChecksum {
  readonly #columns: readonly ColumnSchema[];
  readonly #withIds: boolean;
  #records = 0;
  #sum = 0n;

  /** @param withIds  false: the ids were made on the way. */
  constructor(columns: readonly ColumnSchema[], withIds: boolean) {
    this.#columns = columns;
    this.#withIds = withIds;
  }

  add(record: JsonObject): void {
    const values: JsonValue[] = this.#columns.map((column) => canonical(column, valueAt(record, column.name)));
    if (this.#withIds) values.push(String(record.id ?? record.xata_id));
    const digest = createHash("sha256").update(JSON.stringify(values)).digest();
    this.#sum = BigInt.asUintN(128, this.#sum + digest.readBigUInt64BE(0) * 2n ** 64n + digest.readBigUInt64BE(8));
    this.#records++;
  }

  get result(): Checksum {
    return { records: this.#records, sum: this.#sum.toString(16).padStart(32, "0") };
  }
}

/** Columns with dots in their names are objects in answers, and may be either in files. */
function valueAt(record: JsonObject, name: string): JsonValue | undefined {
  if (Object.hasOwn(record, name)) return record[name];
  let value: JsonValue | undefined = record;
  for (const step of name.split(".")) {
    value = typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  return value;
}

function canonical({ type }: ColumnSchema, value: JsonValue | undefined): JsonValue {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "int":
    case "float":
      return Number(value);
    case "datetime":
      return String(parseTimestamp(String(value)) ?? value);
    case "vector":
      return (value as number[]).map(Math.fround);
    case "json":
      return JSON.stringify(sorted(typeof value === "string" ? parsedOr(value) : value));
    case "link":
      return typeof value === "object" ? String((value as JsonObject).id ?? (value as JsonObject).xata_id) : value;
    default:
      return value;
  }
}

function parsedOr(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** Sorts members, since jsonb does not keep their order. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}

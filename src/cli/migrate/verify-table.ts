/** Compares a table of the server with where it came from: number and checksum of the records, both read again. */
import type { JsonObject, JsonValue } from "../../records/requests.ts";
import type { BranchRef, ColumnSchema } from "../../records/schema.ts";
import type { ApiClient } from "../api-client.ts";
import { tableRecords } from "../table-records.ts";
import type { MigrationTable } from "./migration-source.ts";
import { type Checksum, TableChecksum, valueAt } from "./table-checksum.ts";

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

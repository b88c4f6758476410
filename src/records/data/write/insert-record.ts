/** POST …/data, and PUT …/data/{id}: a new record, or the whole content of an existing one. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import type { JsonObject, WriteOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { Parameters } from "../sql-parts/bound-parameters.ts";
import { type EncodedRecord, encodeRecord } from "../values/encode-record.ts";
import { withLongJson } from "../values/long-json.ts";
import { requireRecordId } from "../values/record-id.ts";
import { recordVersionOf } from "../values/record-metadata.ts";
import { checkIfVersion, versionConflict } from "../values/version-check.ts";
import { type RecordWriter, type Session, withWriter } from "./record-writer.ts";
import { excludedAssignments, insertStatement, replaceAssignments, updateStatement } from "./write-statement.ts";

export interface WrittenRecord {
  readonly record: JsonObject;
  readonly created: boolean;
}

/** Inserts with an id made by the service, or with the record's own `id`, which must be new (CONFLICT). */
export async function insertRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  record: unknown,
  options: WriteOptions = {},
  place = "record",
): Promise<JsonObject> {
  const encoded = encodeRecord(table, await withLongJson(table, record), place);
  return withWriter(session, branch, table, options, (writer) => insert(writer, encoded));
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
  record: unknown,
  options: WriteOptions = {},
  place = "record",
): Promise<WrittenRecord> {
  const encoded = encodeRecord(table, await withLongJson(table, record), place, requireRecordId(id));
  checkIfVersion(options.ifVersion);
  const { createOnly = false, ifVersion } = options;
  return withWriter(session, branch, table, options, async (writer) => {
    if (ifVersion !== undefined) {
      if (createOnly) await refuseExisting(writer, encoded.id);
      return { record: await replaceVersion(writer, encoded, ifVersion), created: false };
    }
    if (createOnly) return { record: await insert(writer, encoded), created: true };
    const parameters = new Parameters();
    const statement = `${insertStatement(branch, table, encoded, parameters)} ON CONFLICT ("id") DO UPDATE SET ${excludedAssignments(table)}`;
    const written = (await writer.write(statement, parameters))!;
    // A record that existed before has at least version 1 now.
    return { record: written, created: recordVersionOf(written, branch.systemNaming) === 0 };
  });
}

async function insert(writer: RecordWriter, record: EncodedRecord): Promise<JsonObject> {
  const parameters = new Parameters();
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
  const parameters = new Parameters();
  const assignments = replaceAssignments(writer.table, record, parameters);
  const written = await writer.write(
    updateStatement(writer.branch, writer.table, assignments, record.id, ifVersion, parameters),
    parameters,
  );
  if (written !== undefined) return written;
  throw versionConflict(writer.table, record.id, ifVersion, await writer.version(record.id));
}

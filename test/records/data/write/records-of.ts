/** The record operations on one table, as tests call them. */
import { getRecord } from "../../../../src/records/data/read/read-records.ts";
import { deleteRecord, insertRecord, replaceRecord, updateRecord, upsertRecord } from "../../../../src/records/data/write/write-record.ts";
import type { JsonObject, ReadOptions, WriteOptions } from "../../../../src/records/requests.ts";
import type { RecordFixture } from "../../../support/record-engines.ts";

const ALL = { columns: ["*"] };

/** Writes answer with all columns unless told otherwise. */
export function recordsOf(fixture: RecordFixture, table: string) {
  const context = () => [fixture.engine, fixture.branch, fixture.table(table)] as const;
  return {
    insert: (record: object, options: WriteOptions = ALL) => insertRecord(...context(), record as JsonObject, options),
    replace: (id: string, record: object, options: WriteOptions = ALL) => replaceRecord(...context(), id, record as JsonObject, options),
    update: (id: string, fields: object, options: WriteOptions = ALL) => updateRecord(...context(), id, fields as JsonObject, options),
    upsert: (id: string, fields: object, options: WriteOptions = ALL) => upsertRecord(...context(), id, fields as JsonObject, options),
    get: (id: string, options?: ReadOptions) => getRecord(...context(), id, options),
    remove: (id: string, columns?: string[]) => deleteRecord(...context(), id, columns && { columns }),
  };
}

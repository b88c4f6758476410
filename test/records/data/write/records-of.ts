/** The record operations on one table, as tests call them. */
import { getRecord } from "../../../../src/records/data/read/get-records.ts";
import { deleteRecord } from "../../../../src/records/data/write/delete-record.ts";
import { insertRecord, replaceRecord } from "../../../../src/records/data/write/insert-record.ts";
import { updateRecord, upsertRecord } from "../../../../src/records/data/write/update-record.ts";
import type { ReadOptions, WriteOptions } from "../../../../src/records/requests.ts";
import type { RecordFixture } from "../../../support/record-engines.ts";

const ALL = { columns: ["*"] };

/** Writes answer with all columns unless told otherwise. */
export function recordsOf(fixture: RecordFixture, table: string) {
  const context = () => [fixture.engine, fixture.branch, fixture.table(table)] as const;
  return {
    insert: (record: unknown, options: WriteOptions = ALL) => insertRecord(...context(), record, options),
    replace: (id: string, record: unknown, options: WriteOptions = ALL) => replaceRecord(...context(), id, record, options),
    update: (id: string, fields: unknown, options: WriteOptions = ALL) => updateRecord(...context(), id, fields, options),
    upsert: (id: string, fields: unknown, options: WriteOptions = ALL) => upsertRecord(...context(), id, fields, options),
    get: (id: string, options?: ReadOptions) => getRecord(...context(), id, options),
    remove: (id: string, columns?: string[]) => deleteRecord(...context(), id, columns && { columns }),
  };
}

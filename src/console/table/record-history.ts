/**
 * Changes of records, which can be undone as long as the page is open. Each is one transaction: all of it, or
 * nothing.
 */
import { signal } from "@preact/signals";
import { MAX_OPERATIONS } from "../../records/request-limits.ts";
import { ApiError, branchPath, call, type Place, recordPath, tablePath } from "../api/client.ts";
import { keptFor } from "../state/kept.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { fromText, linkId, textOf } from "./cell-text.ts";
import type { TableRecord } from "./record-pages.ts";

type Operation = Readonly<Record<string, unknown>>;

interface Change {
  /** "deleted 3 records". */
  readonly said: string;
  readonly back: readonly Operation[];
}

/** Records as last written that are held at most. */
const MAX_WRITTEN = 1_000;

/** Operations that a table's history holds at most; its oldest changes go first. */
const MAX_KEPT_OPERATIONS = 20_000;

/** Of a table; the same whenever its view is opened again. */
export function historyOf(place: Place, table: TableSchema): RecordHistory {
  const history = keptFor(`history ${tablePath(place, table.name)}`, () => new RecordHistory(place, table));
  history.table = table;
  return history;
}

/** The record that was read or written last after an edit, for all that show it. @property path  of its table. */
export const changedRecord = signal<{ readonly path: string; readonly record: TableRecord } | undefined>(undefined);

/**
 * Writes the text of a cell.
 * @throws {Error} the server's words; if somebody else has changed the record meanwhile, what the cell holds now, which is then shown.
 */
export async function saveCell(place: Place, table: TableSchema, old: TableRecord, column: ColumnSchema, text: string): Promise<void> {
  const path = tablePath(place, table.name);
  try {
    changedRecord.value = { path, record: await historyOf(place, table).edit(old, column, fromText(column, text)) };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 422)) throw error;
    const now = await call<TableRecord>("GET", `${recordPath(place, table.name, old.id)}?columns=*`);
    changedRecord.value = { path, record: now };
    throw new Error(
      `Somebody else changed this record meanwhile: ${column.name} is now ${textOf(column, now[column.name]) || "empty"}. Save again to write yours over it.`,
    );
  }
}

export class RecordHistory {
  /** The last one is the first to be undone. */
  readonly changes = signal<readonly Change[]>([]);
  readonly #place: Place;
  /** Changes happen one after the other, so the last one is what is undone. Resolves to whether it succeeded. */
  #turn: Promise<boolean> = Promise.resolve(true);
  #waiting = 0;
  /** Records as they were last written here: a change may be asked for before the table shows the one before. */
  readonly #written = new Map<string, TableRecord>();
  /** As it is now. */
  table: TableSchema;

  constructor(place: Place, table: TableSchema) {
    this.#place = place;
    this.table = table;
  }

  /**
   * @returns the record as it is now.
   * @throws {ApiError} 422 when somebody else has changed it since it was read.
   */
  edit(shown: TableRecord, column: ColumnSchema, value: unknown): Promise<TableRecord> {
    return this.#inTurn(async () => {
      const record = this.#newest(shown);
      const path = `${recordPath(this.#place, this.table.name, record.id)}?columns=*&ifVersion=${record.xata.version}`;
      const now = await call<TableRecord>("PATCH", path, { [column.name]: value });
      const old = sendable(column, record[column.name]);
      const back = { update: { table: this.table.name, id: record.id, fields: { [column.name]: old }, ifVersion: now.xata.version } };
      this.#remember({ said: `changed ${column.name} of ${record.id}`, back: [back] });
      this.#written.delete(now.id);
      this.#written.set(now.id, now);
      if (this.#written.size > MAX_WRITTEN) this.#written.delete(this.#written.keys().next().value as string);
      return now;
    });
  }

  #newest(record: TableRecord): TableRecord {
    const written = this.#written.get(record.id);
    return written !== undefined && written.xata.updatedAt > record.xata.updatedAt ? written : record;
  }

  /** @param work  is told whether the change before it succeeded. */
  #inTurn<T>(work: (isPreviousDone: boolean) => Promise<T>): Promise<T> {
    this.#waiting++;
    const turn = this.#turn.then(work).finally(() => this.#waiting--);
    this.#turn = turn.then(
      () => true,
      () => false,
    );
    return turn;
  }

  /**
   * Changes all of the records or none, at most MAX_OPERATIONS.
   * @throws {ApiError} 422 when somebody else has changed one of them since it was read.
   */
  async editAll(changes: readonly { readonly record: TableRecord; readonly fields: Readonly<Record<string, unknown>> }[]): Promise<void> {
    if (changes.length > MAX_OPERATIONS) {
      throw new Error(`${changes.length} rows were pasted; a transaction changes ${MAX_OPERATIONS} at most. Nothing was changed.`);
    }
    const table = this.table.name;
    await this.#run(changes.map(({ record: { id, xata }, fields }) => ({ update: { table, id, fields, ifVersion: xata.version } })));
    const back = changes.map(({ record, fields }) => {
      const old = this.table.columns
        .filter(({ name }) => name in fields)
        .map((column) => [column.name, sendable(column, record[column.name])]);
      return { update: { table, id: record.id, fields: Object.fromEntries(old), ifVersion: record.xata.version + 1 } };
    });
    this.#remember({ said: `pasted into ${changes.length} records`, back });
  }

  async insert(id: string, fields: Readonly<Record<string, unknown>>): Promise<void> {
    const record = id === "" ? fields : { ...fields, id };
    const operations = [{ insert: { table: this.table.name, record, createOnly: true } }];
    const { results } = await this.#run(operations);
    const inserted = results[0]?.id as string;
    this.#remember({ said: `inserted ${inserted}`, back: [{ delete: { table: this.table.name, id: inserted, failIfMissing: true } }] });
  }

  /**
   * Inserts all of the records or none, at most MAX_OPERATIONS.
   *
   * @param replaces  whether existing records are replaced, which cannot be undone.
   */
  async insertAll(records: readonly Readonly<Record<string, unknown>>[], replaces: boolean): Promise<void> {
    const table = this.table.name;
    const { results } = await this.#run(records.map((record) => ({ insert: { table, record, createOnly: !replaces } })));
    if (replaces) return;
    const back = results.map(({ id }) => ({ delete: { table, id, failIfMissing: true } }));
    this.#remember({ said: `imported ${back.length} records`, back });
  }

  /**
   * Deletes all of the records or none.
   * @throws {Error} more than MAX_OPERATIONS.
   */
  async deleteAll(records: readonly TableRecord[]): Promise<void> {
    if (records.length > MAX_OPERATIONS) {
      throw new Error(`${records.length} records are selected; a transaction deletes ${MAX_OPERATIONS} at most. Nothing was deleted.`);
    }
    await this.#run(records.map(({ id }) => ({ delete: { table: this.table.name, id, failIfMissing: true } })));
    const back = records.map((record) => ({ insert: { table: this.table.name, record: this.#fieldsOf(record), createOnly: true } }));
    this.#remember({ said: records.length === 1 ? `deleted ${records[0]?.id}` : `deleted ${records.length} records`, back });
  }

  /**
   * Undoes the last change, also one that is still on its way. If that one is refused, nothing is undone.
   * @throws {ApiError} when the current state does not allow it; it can then be tried again.
   */
  undo(): Promise<void> {
    const isOnItsWay = this.#waiting > 0;
    return this.#inTurn(async (isPreviousDone) => {
      const change = this.changes.value.at(-1);
      if (change === undefined || (isOnItsWay && !isPreviousDone)) return;
      await this.#send(change.back);
      this.changes.value = this.changes.value.filter((other) => other !== change);
    });
  }

  #run(operations: readonly Operation[]): Promise<{ results: { id?: string }[] }> {
    return this.#inTurn(() => this.#send(operations));
  }

  #send(operations: readonly Operation[]): Promise<{ results: { id?: string }[] }> {
    return call("POST", `${branchPath(this.#place)}/transaction`, { operations });
  }

  #remember(change: Change): void {
    const changes = [...this.changes.value, change];
    let held = changes.reduce((sum, { back }) => sum + back.length, 0);
    while (held > MAX_KEPT_OPERATIONS) held -= changes.shift()?.back.length ?? held;
    this.changes.value = changes;
  }

  #fieldsOf(record: TableRecord): Record<string, unknown> {
    const fields: Record<string, unknown> = { id: record.id };
    for (const column of this.table.columns) {
      const value = sendable(column, record[column.name]);
      if (value !== null) fields[column.name] = value;
    }
    return fields;
  }
}

/** A value from a response in the form in which it is sent. */
function sendable(column: ColumnSchema, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  return column.type === "link" ? (linkId(value) ?? null) : value;
}

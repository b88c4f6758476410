/**
 * Cells on their way to the server. An editor closes at once, and one goes on typing elsewhere; the texts are written one after the other.
 * A cell that the server refuses opens again, with what was typed and the reason.
 */
import { signal } from "@preact/signals";
import { messageOf, type Place, tablePath } from "../api/client.ts";
import { keptFor } from "../state/kept.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { saveCell } from "./record-history.ts";
import type { TableRecord } from "./record-pages.ts";

interface WrittenCell {
  readonly text: string;
  /** Why the server refused it; "" while it is on its way. */
  readonly fault: string;
}

/** Of a table; the same whenever its view is opened again. */
export function cellWritesOf(place: Place, table: TableSchema): CellWrites {
  const writes = keptFor(`cell writes ${tablePath(place, table.name)}`, () => new CellWrites(place, table));
  writes.table = table;
  return writes;
}

export class CellWrites {
  /** By column and id; those that have been written are not here. */
  readonly cells = signal<ReadonlyMap<string, WrittenCell>>(new Map());
  readonly #place: Place;
  /** As it is now. */
  table: TableSchema;

  constructor(place: Place, table: TableSchema) {
    this.#place = place;
    this.table = table;
  }

  of(id: string, column: string): WrittenCell | undefined {
    return this.cells.value.get(keyOf(id, column));
  }

  async write(record: TableRecord, column: ColumnSchema, text: string): Promise<void> {
    const key = keyOf(record.id, column.name);
    const written: WrittenCell = { text, fault: "" };
    this.#set(key, written);
    const fault = await saveCell(this.#place, this.table, record, column, text).then(() => "", messageOf);
    // It may have been written again meanwhile.
    if (this.cells.value.get(key) === written) this.#set(key, fault === "" ? undefined : { text, fault });
  }

  /** What was refused is given up. */
  drop(id: string, column: string): void {
    this.#set(keyOf(id, column), undefined);
  }

  #set(key: string, cell: WrittenCell | undefined): void {
    const cells = new Map(this.cells.value);
    if (cell === undefined) cells.delete(key);
    else cells.set(key, cell);
    this.cells.value = cells;
  }
}

const keyOf = (id: string, column: string): string => `${column} ${id}`;

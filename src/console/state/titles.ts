/**
 * What records are called where people read of them: the value of one column, the table's title, instead of the id. It is
 * guessed from the first records, can be chosen, and the choice is kept in this browser.
 */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, messageOf, type Place, tablePath } from "../api/client.ts";
import { keptFor } from "./kept.ts";
import { connection } from "./page-session.ts";
import type { ColumnSchema, TableSchema } from "./server-content.ts";

const PROBED_RECORDS = 20;
const MOST_KEPT = 5_000;
const MOST_AT_ONCE = 200;
const MOST_CHARACTERS = 80;
const NAMED = /title|name|label|headline|subject|caption/i;
const HEX = /^#[0-9a-f]{6}$/i;

type Fields = { readonly id: string } & Readonly<Record<string, unknown>>;

/** Whether a column may be a title: a text that is not long. */
export const canBeTitle = ({ type }: ColumnSchema): boolean => type === "string" || type === "email";

/** Of a table; the same whenever it is asked for. */
export function titlesOf(place: Place, table: TableSchema): Titles {
  const columns = table.columns.filter(canBeTitle).map(({ name }) => name);
  const path = tablePath(place, table.name);
  return keptFor(`titles ${path} ${columns}`, () => new Titles(path, columns));
}

/** Of a table, with the titles of these records on their way. */
export function useTitles(place: Place, table: TableSchema, ids: readonly string[]): Titles {
  const titles = titlesOf(place, table);
  // Once more when the server is back.
  useEffect(() => titles.want(ids), [titles, titles.column.value, connection.value, ids.join("\n")]);
  return titles;
}

/** Records are called by their ids until titles are wanted again. */
const noTitles = (error: unknown): void => console.warn(`The titles of records could not be read: ${messageOf(error)}`);

export class Titles {
  /** undefined: records are called by their ids. */
  readonly column = signal<string | undefined>(undefined);
  readonly #path: string;
  readonly #columns: readonly string[];
  /** Whether the column has been chosen or guessed. */
  #isSettled: boolean;
  #guessing: Promise<void> | undefined;
  readonly #texts = signal<ReadonlyMap<string, string>>(new Map());
  readonly #wanted = new Set<string>();
  #isAsking = false;

  /** @param columns  that may be the title. */
  constructor(path: string, columns: readonly string[]) {
    this.#path = path;
    this.#columns = columns;
    const chosen = localStorage.getItem(this.#key);
    if (chosen !== null) this.column.value = columns.find((name) => name === chosen);
    this.#isSettled = chosen !== null || columns.length === 0;
    void this.#settle().catch(noTitles);
  }

  /** The title of a record, or its id as long as there is none. */
  of(id: string): string {
    return this.#texts.value.get(id) ?? id;
  }

  /** Reads the titles of these records, those that it does not have. */
  want(ids: readonly string[]): void {
    for (const id of ids) if (!this.#texts.peek().has(id) && this.#wanted.size < MOST_KEPT) this.#wanted.add(id);
    if (!this.#isAsking) void this.#ask().catch(noTitles);
  }

  /** A record as it is now. */
  take(record: Fields): void {
    if (this.column.peek() !== undefined) this.#put([record]);
  }

  /** @param column  undefined: the id. */
  choose(column: string | undefined): void {
    localStorage.setItem(this.#key, column ?? "");
    this.#texts.value = new Map();
    this.column.value = column;
  }

  /** Records whose id begins with the text, or whose title contains it. */
  async find(text: string, most: number, signal?: AbortSignal): Promise<readonly string[]> {
    await this.#settle();
    const column = this.column.peek();
    const either = [{ id: { $startsWith: text } }, ...(column === undefined ? [] : [{ [column]: { $iContains: text } }])];
    const found = await this.#read(text === "" ? undefined : { $any: either }, most, signal);
    this.#put(found);
    return found.map(({ id }) => id);
  }

  get #key(): string {
    return `lodestone.title ${this.#path}`;
  }

  /** Guesses once; again if the server could not be asked. */
  async #settle(): Promise<void> {
    if (this.#isSettled) return;
    this.#guessing ??= this.#guess().finally(() => {
      this.#guessing = undefined;
    });
    await this.#guessing;
    this.#isSettled = true;
  }

  /** A column that is called so, or else the first in which records differ. Colours are no titles. */
  async #guess(): Promise<void> {
    const { records } = await call<{ records: readonly Fields[] }>("POST", `${this.#path}/query`, {
      columns: this.#columns,
      page: { size: PROBED_RECORDS },
    });
    const isTitle = (name: string): boolean => {
      const values = records.map((record) => record[name]).filter((value) => typeof value === "string" && value !== "");
      return values.length > 0 && new Set(values).size === values.length && !values.every((value) => HEX.test(value as string));
    };
    const fitting = this.#columns.filter(isTitle);
    this.column.value = fitting.find((name) => NAMED.test(name)) ?? fitting[0];
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    try {
      await this.#settle();
      while (this.#wanted.size > 0 && this.column.peek() !== undefined) {
        const ids = [...this.#wanted].slice(0, MOST_AT_ONCE);
        const found = await this.#read({ id: { $any: ids } }, ids.length);
        for (const id of ids) this.#wanted.delete(id);
        this.#put(found);
      }
      this.#wanted.clear();
    } finally {
      this.#isAsking = false;
    }
  }

  async #read(filter: unknown, size: number, signal?: AbortSignal): Promise<readonly Fields[]> {
    const question = { columns: [this.column.peek() ?? "id"], filter, page: { size } };
    return (await call<{ records: readonly Fields[] }>("POST", `${this.#path}/query`, question, signal)).records;
  }

  #put(records: readonly Fields[]): void {
    const column = this.column.peek();
    if (column === undefined) return;
    const old = this.#texts.peek();
    const texts = new Map(old.size + records.length > MOST_KEPT ? [] : old);
    for (const record of records) {
      const value = record[column];
      if (typeof value === "string" && value !== "") texts.set(record.id, value.slice(0, MOST_CHARACTERS));
      else texts.delete(record.id);
    }
    this.#texts.value = texts;
  }
}

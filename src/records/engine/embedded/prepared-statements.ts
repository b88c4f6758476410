/**
 * The prepared statements of a session: PostgreSQL parses and plans each once. Only texts that the service itself makes, which
 * come again and again. Names are never used twice, so none can mean another text.
 */
import type pg from "pg";

/** Each holds its plan in PostgreSQL's memory, the more the longer it is. */
const MAX_STATEMENTS = 100;
const MAX_CHARACTERS = 5_000;

export class PreparedStatements {
  readonly #client: pg.Client;
  readonly #names = new Map<string, string>();
  #given = 0;

  constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Nothing more is prepared until all are gone. */
  get isFull(): boolean {
    return this.#names.size >= MAX_STATEMENTS;
  }

  /** undefined: this one is parsed each time. */
  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || this.isFull || text.length > MAX_CHARACTERS) return known;
    const name = `lodestone_${++this.#given}`;
    this.#names.set(text, name);
    return name;
  }

  /** After DEALLOCATE ALL. */
  forget(): void {
    this.#names.clear();
    // What the driver takes for prepared; no public member of it says so.
    (this.#client as unknown as { connection: { parsedStatements: Record<string, string> } }).connection.parsedStatements = {};
  }
}

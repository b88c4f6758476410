/** The tables of a branch whose words are held, or are to be: those that were searched for, unless they did not fit lately. */
import type { LodestoneError } from "../../errors/lodestone-error.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import { IndexFullError } from "../search-engine.ts";

/** Words that did not fit into memory are not read again for so long. */
const AGAIN_MS = 5 * 60_000;

export class WantedTexts {
  /** By id. */
  readonly #tables = new Set<number>();
  /** The words did not fit; when they were asked for last. */
  #refused: { readonly error: LodestoneError; readonly at: number } | undefined;

  get tables(): ReadonlySet<number> {
    return this.#tables;
  }

  get isRefused(): boolean {
    return this.#refused !== undefined;
  }

  /** @throws {IndexFullError} they did not fit into the memory for indexes lately. */
  add(tables: readonly number[]): void {
    if (this.#refused !== undefined) {
      if (performance.now() - this.#refused.at < AGAIN_MS) throw new IndexFullError(this.#refused.error);
      this.#refused = undefined;
    }
    for (const table of tables) this.#tables.add(table);
  }

  /** Those that a snapshot has are wanted, too. */
  addHeld(schema: FollowedSchema): void {
    if (!this.isRefused) for (const table of heldBy(schema)) this.#tables.add(table);
  }

  /** They did not fit: they are asked for no longer, for a while. */
  refuse(error: LodestoneError): IndexFullError {
    this.#tables.clear();
    this.#refused = { error, at: performance.now() };
    return new IndexFullError(error);
  }

  /** Tables that are gone are asked for no longer. */
  keepThoseOf(schema: FollowedSchema): void {
    for (const table of this.#tables) if (lacksTexts(schema, [table])) this.#tables.delete(table);
  }

  /** Whether the words of that schema are these, and no others when none are wanted. */
  isMetBy(schema: FollowedSchema): boolean {
    return this.#tables.size > 0 ? !lacksTexts(schema, [...this.#tables]) : heldBy(schema).size === 0;
  }
}

const heldBy = (schema: FollowedSchema): Set<number> =>
  new Set([...schema.values()].filter(({ texts }) => texts === true).map(({ id }) => id));

/** Whether any of these tables, by id, is there without its words, or is not there. */
export function lacksTexts(schema: FollowedSchema, tables: readonly number[]): boolean {
  if (tables.length === 0) return false;
  const held = heldBy(schema);
  return tables.some((table) => !held.has(table));
}

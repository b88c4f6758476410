/** Statements of a branch: those that were run last, kept in this tab's session, and those saved under a name, kept in this browser. */
import { branchPath, type Place } from "../api/client.ts";

const MOST_RECENT = 30;
const MOST_SAVED = 100;
/** A longer one is not kept. */
export const MOST_CHARACTERS = 20_000;

export interface SavedStatement {
  readonly name: string;
  readonly text: string;
  readonly params: string;
}

const recentKey = (place: Place): string => `lodestone.sql ${branchPath(place)}`;
const savedKey = (place: Place): string => `lodestone.saved-sql ${branchPath(place)}`;

/** Latest first. */
export const recentStatements = (place: Place): readonly string[] => listIn(sessionStorage, recentKey(place)).map(String);

export function keepRecent(place: Place, statement: string): void {
  if (statement.length > MOST_CHARACTERS) return;
  const kept = [statement, ...recentStatements(place).filter((other) => other !== statement)].slice(0, MOST_RECENT);
  sessionStorage.setItem(recentKey(place), JSON.stringify(kept));
}

/** In the order of their names. */
export const savedStatements = (place: Place): readonly SavedStatement[] => listIn(localStorage, savedKey(place)).filter(isSaved);

/**
 * In place of the one that has the name.
 * @throws {RangeError} it has no name, is too long, or there are too many.
 */
export function saveStatement(place: Place, statement: SavedStatement): void {
  const others = savedStatements(place).filter(({ name }) => name !== statement.name);
  if (statement.name === "") throw new RangeError("Give it a name.");
  if (statement.text.length > MOST_CHARACTERS) throw new RangeError(`A statement of more than ${MOST_CHARACTERS} characters is not saved.`);
  if (others.length >= MOST_SAVED) throw new RangeError(`There are ${MOST_SAVED} saved statements already. Delete one first.`);
  write(place, [...others, statement]);
}

export const deleteStatement = (place: Place, name: string): void =>
  write(
    place,
    savedStatements(place).filter((other) => other.name !== name),
  );

const write = (place: Place, statements: readonly SavedStatement[]): void =>
  localStorage.setItem(savedKey(place), JSON.stringify(statements.toSorted((a, b) => a.name.localeCompare(b.name, "en"))));

const isSaved = (value: unknown): value is SavedStatement =>
  typeof value === "object" &&
  value !== null &&
  ["name", "text", "params"].every((member) => typeof Reflect.get(value, member) === "string");

/** Whatever a storage holds that is not a list is taken for an empty one. */
function listIn(storage: Storage, key: string): readonly unknown[] {
  try {
    const kept: unknown = JSON.parse(storage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

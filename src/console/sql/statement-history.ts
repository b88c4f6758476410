/** Recent statements, kept in this tab's session for each branch. */
import { branchPath, type Place } from "../api/paths.ts";

const MOST = 30;
const MOST_CHARACTERS = 20_000;

const keyOf = (place: Place): string => `lodestone.sql ${branchPath(place)}`;

/** Latest first. */
export function statements(place: Place): readonly string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(keyOf(place)) ?? "[]");
    return Array.isArray(kept) ? kept.map(String) : [];
  } catch {
    return [];
  }
}

export function keepStatement(place: Place, statement: string): void {
  if (statement.length > MOST_CHARACTERS) return;
  const kept = [statement, ...statements(place).filter((other) => other !== statement)].slice(0, MOST);
  sessionStorage.setItem(keyOf(place), JSON.stringify(kept));
}

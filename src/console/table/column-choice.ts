/** The hidden columns of a table, kept in this browser. */
import { type Place, tablePath } from "../api/paths.ts";

const keyOf = (place: Place, table: string): string => `lodestone.hidden ${tablePath(place, table)}`;

export function hiddenColumns(place: Place, table: string): ReadonlySet<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(place, table)) ?? "[]");
    return new Set(Array.isArray(kept) ? kept.map(String) : []);
  } catch {
    return new Set();
  }
}

export function keepHiddenColumns(place: Place, table: string, hidden: ReadonlySet<string>): void {
  if (hidden.size === 0) localStorage.removeItem(keyOf(place, table));
  else localStorage.setItem(keyOf(place, table), JSON.stringify([...hidden]));
}

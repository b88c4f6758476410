/**
 * The current place, kept in the address's fragment: `#/search/demo:main/colors`,
 * `#/table/demo:main/colors/red`.
 */
import { signal } from "@preact/signals";
import type { Place } from "../api/client.ts";

const VIEWS = ["home", "search", "table", "sql", "schema", "server", "reference"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  readonly place: Place | undefined;
  readonly table: string | undefined;
  /** A record of the table, if a link led to one. */
  readonly record: string | undefined;
}

export const route = signal<Route>(parseHash(location.hash));

addEventListener("hashchange", () => {
  route.value = parseHash(location.hash);
});

function parseHash(hash: string): Route {
  const [view = "", place = "", table = "", record = ""] = hash.replace(/^#\/?/, "").split("/").map(decode);
  const colon = place.indexOf(":");
  return {
    view: VIEWS.find((name) => name === view) ?? "home",
    place: colon > 0 ? { database: place.slice(0, colon), branch: place.slice(colon + 1) } : undefined,
    table: table === "" ? undefined : table,
    record: record === "" ? undefined : record,
  };
}

export function hrefOf(view: View, place?: Place, table?: string, record?: string): string {
  const parts = [view, ...(place === undefined ? [] : [`${encodeURIComponent(place.database)}:${encodeURIComponent(place.branch)}`])];
  if (place !== undefined && table !== undefined) parts.push(encodeURIComponent(table));
  if (place !== undefined && table !== undefined && record !== undefined) parts.push(encodeURIComponent(record));
  return `#/${parts.join("/")}`;
}

export function go(view: View, place?: Place, table?: string): void {
  location.hash = hrefOf(view, place, table);
}

/** Back leads past it: for an address that the page itself completes. */
export function goInstead(view: View, place?: Place, table?: string): void {
  location.replace(hrefOf(view, place, table));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * What is shown, kept in the address's fragment: the view, the place, the table, a record of it, and what the view was told:
 * `#/search/demo:main/colors?words=red`, `#/table/demo:main/colors/red?sort=family`.
 */
import { signal } from "@preact/signals";
import type { Place } from "../api/client.ts";

const VIEWS = ["home", "search", "table", "sql", "schema", "server", "reference", "new"] as const;
export type View = (typeof VIEWS)[number];

/** By name; "" and undefined are as if they were not there. */
export type Params = Readonly<Record<string, string | undefined>>;

export interface Route {
  readonly view: View;
  readonly place: Place | undefined;
  readonly table: string | undefined;
  /** A record of the table, whose card is open. */
  readonly record: string | undefined;
  readonly params: Params;
}

/** What each view of each table was told last, so that coming back to it shows the same. */
const lastParams = new Map<string, Params>();

let shownHash = location.hash;
export const route = signal<Route>(parseHash(shownHash));

addEventListener("hashchange", follow);

function follow(): void {
  if (location.hash === shownHash) return;
  shownHash = location.hash;
  route.value = parseHash(shownHash);
}

/** Followed at once: the event comes later. @param isCompletion  Back leads past it: the page itself completes the address. */
function move(href: string, isCompletion = false): void {
  if (isCompletion) location.replace(href);
  else location.hash = href;
  follow();
}

function parseHash(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view = "", place = "", table = "", record = ""] = path.split("/").map(decode);
  const colon = place.indexOf(":");
  const found: Route = {
    view: VIEWS.find((name) => name === view) ?? "home",
    place: colon > 0 ? { database: place.slice(0, colon), branch: place.slice(colon + 1) } : undefined,
    table: table === "" ? undefined : table,
    record: record === "" ? undefined : record,
    params: Object.fromEntries(new URLSearchParams(query)),
  };
  lastParams.set(hrefOf(found.view, found.place, found.table), found.params);
  return found;
}

export function hrefOf(view: View, place?: Place, table?: string, record?: string, params: Params = {}): string {
  const parts = [view, ...(place === undefined ? [] : [`${encodeURIComponent(place.database)}:${encodeURIComponent(place.branch)}`])];
  if (place !== undefined && table !== undefined) parts.push(encodeURIComponent(table));
  if (place !== undefined && table !== undefined && record !== undefined) parts.push(encodeURIComponent(record));
  const given = Object.entries(params).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, value]]));
  return `#/${parts.join("/")}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
}

/** The address of a view as it was last. */
export const lastHrefOf = (view: View, place?: Place, table?: string): string =>
  hrefOf(view, place, table, undefined, lastParams.get(hrefOf(view, place, table)));

/** Another key may not see what this one was told. */
export const forgetParams = (): void => lastParams.clear();

export const go = (view: View, place?: Place, table?: string): void => move(hrefOf(view, place, table));

/** For an address that the page itself completes. */
export const goInstead = (view: View, place?: Place, table?: string): void =>
  move(hrefOf(view, place, table, undefined, route.peek().params), true);

/** The view is told something else; Back leads to what it was told before, unless this completes it. */
export function tell(params: Params, isCompletion = false): void {
  const { view, place, table, record, params: old } = route.peek();
  move(hrefOf(view, place, table, record, { ...old, ...params }), isCompletion);
}

/** Opens the card of a record of the current table, or closes it. */
export function openRecord(id: string | undefined): void {
  const { view, place, table, params } = route.peek();
  move(hrefOf(view, place, table, id, params));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

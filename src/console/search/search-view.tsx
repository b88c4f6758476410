/** Search by example or by words, beside the map that shows why these are the nearest. */
import type { JSX } from "preact";
import { Notice, Waiting } from "../parts/notice.tsx";
import { route } from "../state/route.ts";
import { currentTable, tables } from "../state/server-content.ts";
import { hasText, TableSearch } from "./table-search.tsx";

export function SearchView(): JSX.Element {
  const { place } = route.value;
  const table = currentTable.value;
  if (tables.value?.length === 0) return <Notice>This branch has no tables yet.</Notice>;
  if (place === undefined || table === undefined) return <Waiting what="Reading the schema …" />;
  if (!hasText(table) && !table.columns.some(({ type }) => type === "vector"))
    return <Notice>The table {table.name} has neither a column of vectors nor one of text, so there is nothing to search.</Notice>;
  return <TableSearch key={`${place.database}:${place.branch}/${table.name}`} place={place} table={table} />;
}

/** What stands in place of a view of a table when there is none: the server is empty, or the address names what does not exist. */
import type { JSX } from "preact";
import type { Place } from "../api/client.ts";
import { hrefOf, route } from "../state/route.ts";
import { currentTable, databases, type TableSchema, tables } from "../state/server-content.ts";
import { Notice, Waiting } from "./notice.tsx";

/** A view of the current table. */
export function CurrentTable({ view }: { view: (place: Place, table: TableSchema) => JSX.Element }): JSX.Element {
  const { place, table: name } = route.value;
  const table = currentTable.value;
  if (place === undefined || tables.value === undefined) return <NoPlace />;
  if (table !== undefined) return view(place, table);
  return tables.value.length === 0 || name !== undefined ? <NoTable place={place} name={name} /> : <NoPlace />;
}

/** Without a branch, or before its tables are known. */
export function NoPlace(): JSX.Element {
  if (route.value.place !== undefined || databases.value?.length !== 0) return <Waiting what="Loading the schema …" />;
  return (
    <Notice>
      There is no database yet. Load the demo on <a href={hrefOf("home")}>Home</a>, or create one under{" "}
      <a href={hrefOf("schema")}>Schema</a>.
    </Notice>
  );
}

/** @param name  of a table that the branch does not have. */
export function NoTable({ place, name }: { place: Place; name: string | undefined }): JSX.Element {
  const { view } = route.value;
  const found = tables.value ?? [];
  const branch = `${place.database}:${place.branch}`;
  if (found.length === 0) {
    return (
      <Notice>
        {branch} has no tables yet. <a href={hrefOf("schema", place)}>Create one under Schema</a>.
      </Notice>
    );
  }
  return (
    <Notice>
      <p>
        There is no table <bdi class="name">{name}</bdi> in {branch}. It has:
      </p>
      <ul class="choices">
        {found.map((table) => (
          <li key={table.name}>
            <a href={hrefOf(view, place, table.name)}>
              <bdi>{table.name}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </Notice>
  );
}

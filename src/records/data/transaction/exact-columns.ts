/**
 * A record as a transaction answers it: only the columns asked for. Everywhere else any selection includes the
 * id and the metadata.
 */
import { type SystemColumn, type SystemNaming, systemColumnNamed, VERSION_COLUMNS } from "../../../filter/system-columns.ts";
import type { JsonObject, Selection } from "../../requests.ts";
import { setOwn } from "../sql-parts/answer-field.ts";

/** @param columns undefined: all. */
export function exactly(columns: Selection | undefined, record: JsonObject, naming: SystemNaming): JsonObject {
  if (columns === undefined || columns.includes("*")) return record;
  const asked = systemColumnsIn(columns);
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    const system = naming === "underscored" || name === "id" ? systemColumnNamed(name) : undefined;
    if (name === "xata" && naming === "dotted") {
      const members = Object.entries(value as JsonObject).filter(([member]) => asked.has(`xata.${member}` as SystemColumn));
      if (members.length > 0) setOwn(kept, name, Object.fromEntries(members));
    } else if (system === undefined || asked.has(system)) setOwn(kept, name, value);
  }
  return kept;
}

/** In either naming; `xata` and `xata.*` are all of the metadata. */
function systemColumnsIn(columns: Selection): ReadonlySet<SystemColumn> {
  const asked = new Set<SystemColumn>();
  for (const column of columns) {
    if (column === "xata" || column === "xata.*") for (const name of VERSION_COLUMNS) asked.add(name);
    const system = typeof column === "string" ? systemColumnNamed(column) : undefined;
    if (system !== undefined) asked.add(system);
  }
  return asked;
}

/** A record as a transaction answers it: just the columns asked for. Everywhere else the id and the metadata come with any selection. */
import type { JsonObject, JsonValue, Selection } from "../../requests.ts";
import { setOwn } from "../sql-parts/answer-field.ts";

/** @param columns undefined: all. */
export function exactly(columns: Selection | undefined, record: JsonObject): JsonObject {
  if (columns === undefined || columns.includes("*")) return record;
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    const part = name === "id" ? only(columns.includes("id"), value) : name === "xata" ? metadata(columns, value as JsonObject) : value;
    if (part !== undefined) setOwn(kept, name, part);
  }
  return kept;
}

function only(isAsked: boolean, value: JsonValue): JsonValue | undefined {
  return isAsked ? value : undefined;
}

/** `xata` and `xata.*`: whole; `xata.version`: that alone. */
function metadata(columns: Selection, whole: JsonObject): JsonObject | undefined {
  if (columns.includes("xata") || columns.includes("xata.*")) return whole;
  const members = Object.entries(whole).filter(([name]) => columns.includes(`xata.${name}`));
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

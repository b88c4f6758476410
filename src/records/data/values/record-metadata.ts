/**
 * The id and the metadata of a record in an answer, by the names that the branch has for them: `id` and `xata:
 * {version, createdAt, updatedAt}`, or `xata_id`, `xata_version`, `xata_createdat`, `xata_updatedat`. What a
 * search adds (table, score, highlight) is treated in the same way.
 */
import { type SystemNaming, systemColumnName } from "../../../filter/system-columns.ts";
import type { JsonObject } from "../../requests.ts";

/** @param members By their names within `xata`. */
export function withMetadata(record: JsonObject, naming: SystemNaming, members: JsonObject): JsonObject {
  if (naming === "dotted") return { ...record, xata: { ...(record.xata as JsonObject | undefined), ...members } };
  return { ...record, ...Object.fromEntries(Object.entries(members).map(([name, value]) => [underscored(name), value])) };
}

/** In place. */
export function setMetadata(record: JsonObject, naming: SystemNaming, members: JsonObject): void {
  if (naming === "dotted") record.xata = members;
  else for (const [name, value] of Object.entries(members)) record[underscored(name)] = value;
}

export function recordIdOf(record: JsonObject, naming: SystemNaming): string {
  return record[systemColumnName("id", naming)] as string;
}

export function recordVersionOf(record: JsonObject, naming: SystemNaming): number {
  return (naming === "dotted" ? (record.xata as JsonObject).version : record[underscored("version")]) as number;
}

function underscored(member: string): string {
  return `xata_${member.toLowerCase()}`;
}

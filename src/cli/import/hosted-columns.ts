/**
 * The columns that the retired service added to every table, as its exports name them:
 * with a dot, or in PostgreSQL's own form with an underscore.
 */
import { SYSTEM_NAMINGS, systemColumnName, VERSION_COLUMNS } from "../../filter/system-columns.ts";

const METADATA: ReadonlySet<string> = new Set(
  SYSTEM_NAMINGS.flatMap((naming) => VERSION_COLUMNS.map((column) => systemColumnName(column, naming))),
);
const UNDERSCORED_ID = systemColumnName("id", "underscored");

/**
 * The name under which a column of an export is imported. Ids become `id`; undefined for metadata, which the
 * service writes by itself.
 *
 * A table with direct access to PostgreSQL may have a column `id` of its own beside `xata_id`. Records link by
 * the latter, so the former gets another name.
 */
export function importedName(name: string, header: readonly string[]): string | undefined {
  if (METADATA.has(name)) return undefined;
  if (name === UNDERSCORED_ID) return "id";
  return name === "id" && header.includes(UNDERSCORED_ID) ? OWN_ID : name;
}

export const OWN_ID = "id_";

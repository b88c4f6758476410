/** The columns that the retired service added to every table, as its exports name them: with a dot, or in PostgreSQL's own form with an underscore. */

const METADATA: ReadonlySet<string> = new Set([
  "xata.version",
  "xata.createdAt",
  "xata.updatedAt",
  "xata_version",
  "xata_createdat",
  "xata_updatedat",
]);

/**
 * Under which name a column of an export is imported: ids become `id`; undefined for metadata, which the service writes by itself. A table with direct access to
 * PostgreSQL may have a column `id` of its own beside `xata_id`; records link by the latter, so the former gets another name.
 */
export function importedName(name: string, header: readonly string[]): string | undefined {
  if (METADATA.has(name)) return undefined;
  if (name === "xata_id") return "id";
  return name === "id" && header.includes("xata_id") ? OWN_ID : name;
}

export const OWN_ID = "id_";

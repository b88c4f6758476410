/** The columns that the retired service added to every table, as its exports name them: with a dot, or in PostgreSQL's own form with an underscore. */

const METADATA: ReadonlySet<string> = new Set([
  "xata.version",
  "xata.createdAt",
  "xata.updatedAt",
  "xata_version",
  "xata_createdat",
  "xata_updatedat",
]);

/** Under which name a column of an export is imported: ids become `id`; undefined for metadata, which the service writes by itself. */
export function importedName(name: string, header: readonly string[]): string | undefined {
  if (METADATA.has(name)) return undefined;
  return name === "xata_id" && !header.includes("id") ? "id" : name;
}

/**
 * The columns that every table has besides its own. This is the only list of them.
 *
 * They have two sets of names. Inside, and in most branches, they are dotted: `id`, `xata.version` … In a
 * branch that came from a database with direct access to PostgreSQL they are underscored: `xata_id`,
 * `xata_version` … That is a property of the branch (`systemNaming`) and decides what answers and SQL call
 * them. Requests may use either, unless a table has a column of its own by that name.
 */

/** By name, with the column type of their values. Read-only, except for `id` on insert. */
export const SYSTEM_COLUMN_TYPES = {
  id: "string",
  "xata.version": "int",
  "xata.createdAt": "datetime",
  "xata.updatedAt": "datetime",
} as const;

export type SystemColumn = keyof typeof SYSTEM_COLUMN_TYPES;

export const SYSTEM_COLUMNS = Object.keys(SYSTEM_COLUMN_TYPES) as readonly SystemColumn[];

/** All except `id`, which is not a value of a record but its name. */
export const VERSION_COLUMNS = SYSTEM_COLUMNS.filter((name) => name !== "id");

export function systemColumnType(name: string): (typeof SYSTEM_COLUMN_TYPES)[SystemColumn] | undefined {
  return Object.hasOwn(SYSTEM_COLUMN_TYPES, name) ? SYSTEM_COLUMN_TYPES[name as SystemColumn] : undefined;
}

export const SYSTEM_NAMINGS = ["dotted", "underscored"] as const;
export type SystemNaming = (typeof SYSTEM_NAMINGS)[number];

const UNDERSCORED: Readonly<Record<SystemColumn, string>> = {
  id: "xata_id",
  "xata.version": "xata_version",
  "xata.createdAt": "xata_createdat",
  "xata.updatedAt": "xata_updatedat",
};

const BY_UNDERSCORED: ReadonlyMap<string, SystemColumn> = new Map(SYSTEM_COLUMNS.map((name) => [UNDERSCORED[name], name]));

/** What answers and SQL of a branch call the column. */
export function systemColumnName(column: SystemColumn, naming: SystemNaming): string {
  return naming === "underscored" ? UNDERSCORED[column] : column;
}

/** The column that is meant by a name of either naming. */
export function systemColumnNamed(name: string): SystemColumn | undefined {
  return BY_UNDERSCORED.get(name) ?? (systemColumnType(name) === undefined ? undefined : (name as SystemColumn));
}

/** True for `xata_id` and the like: a schema with such a name comes from a branch that calls them so. */
export function isUnderscored(name: string): boolean {
  return BY_UNDERSCORED.has(name);
}

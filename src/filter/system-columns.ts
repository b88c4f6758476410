/** The columns that every table has beside its own. The one list of them: everything that asks for their names or types asks here. */

/** By name, with the column type that their values have. Read-only but for `id` on insert. */
export const SYSTEM_COLUMN_TYPES = {
  id: "string",
  "xata.version": "int",
  "xata.createdAt": "datetime",
  "xata.updatedAt": "datetime",
} as const;

export type SystemColumn = keyof typeof SYSTEM_COLUMN_TYPES;

export const SYSTEM_COLUMNS = Object.keys(SYSTEM_COLUMN_TYPES) as readonly SystemColumn[];

/** Those but for `id`, which is not a value of a record but its name. */
export const VERSION_COLUMNS = SYSTEM_COLUMNS.filter((name) => name !== "id");

export function systemColumnType(name: string): (typeof SYSTEM_COLUMN_TYPES)[SystemColumn] | undefined {
  return Object.hasOwn(SYSTEM_COLUMN_TYPES, name) ? SYSTEM_COLUMN_TYPES[name as SystemColumn] : undefined;
}

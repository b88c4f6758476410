/** Schema changes as `schema/apply` and `schema/compare` represent them, and each one in words. */
import type { SchemaOperation } from "../../records/schema.ts";
import type { ColumnSchema } from "../state/server-content.ts";

export type { SchemaOperation };

/** "vector · 384", "link to makers". */
export function typeInWords({ type, vector, link }: ColumnSchema): string {
  if (vector !== undefined) return `vector · ${vector.dimension}`;
  return link === undefined ? type : `link to ${link.table}`;
}

export function rulesOf({ notNull, unique, defaultValue }: ColumnSchema): readonly string[] {
  return [
    ...(notNull === true ? ["not null"] : []),
    ...(unique === true ? ["unique"] : []),
    ...(defaultValue === undefined || defaultValue === null ? [] : [`default ${defaultValue}`]),
  ];
}

/** As a line of a difference. */
export function inWords(operation: SchemaOperation): { readonly sign: "+" | "−" | "→"; readonly text: string } {
  if ("addTable" in operation) return { sign: "+", text: `table ${operation.addTable.table}` };
  if ("removeTable" in operation) return { sign: "−", text: `table ${operation.removeTable.table}` };
  if ("renameTable" in operation) {
    return { sign: "→", text: `table ${operation.renameTable.oldName} becomes ${operation.renameTable.newName}` };
  }
  if ("addColumn" in operation) {
    const { table, column } = operation.addColumn;
    const rules = rulesOf(column).map((rule) => `, ${rule}`);
    return { sign: "+", text: `column ${table}.${column.name}: ${typeInWords(column)}${rules.join("")}` };
  }
  if ("removeColumn" in operation) return { sign: "−", text: `column ${operation.removeColumn.table}.${operation.removeColumn.column}` };
  const { table, oldName, newName } = operation.renameColumn;
  return { sign: "→", text: `column ${table}.${oldName} becomes ${newName}` };
}

export const isDestructive = (operation: SchemaOperation): boolean => "removeTable" in operation || "removeColumn" in operation;

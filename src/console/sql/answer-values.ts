/** The answer to a statement, and its values as text. */

/** At most 1,000 rows, so all of them are in the page. */
export interface SqlAnswer {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  readonly total: number;
  readonly rowCount: number;
  readonly warning?: string;
}

const NUMBERS = new Set(["int2", "int4", "int8", "float4", "float8", "numeric"]);

/** @param type  PostgreSQL's name. */
export const isNumber = (type: string): boolean => NUMBERS.has(type);

export const textOf = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

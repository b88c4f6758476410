/** A filter as conditions that must all hold, as far as it is one; anything else can only be typed. */

export const OPERATORS = [
  ["$is", "is"],
  ["$isNot", "is not"],
  ["$contains", "contains"],
  ["$startsWith", "starts with"],
  ["$gt", ">"],
  ["$ge", "≥"],
  ["$lt", "<"],
  ["$le", "≤"],
  ["$exists", "is not empty"],
  ["$notExists", "is empty"],
] as const;

export type Operator = (typeof OPERATORS)[number][0];

export interface Condition {
  /** As the filter names it: of a link, `maker.id`. */
  readonly column: string;
  readonly operator: Operator;
  /** undefined for $exists and $notExists. */
  readonly operand: unknown;
}

export const needsOperand = (operator: Operator): boolean => operator !== "$exists" && operator !== "$notExists";

/** "price ≥ 300". */
export function inWords({ column, operator, operand }: Condition): string {
  const said = OPERATORS.find(([name]) => name === operator)?.[1];
  const value = typeof operand === "string" ? `“${operand}”` : JSON.stringify(operand);
  return `${column.replace(/\.id$/, "")} ${said}${needsOperand(operator) ? ` ${value}` : ""}`;
}

/** @returns the filter as JSON text; "" without conditions. */
export function filterOf(conditions: readonly Condition[]): string {
  const parts = conditions.map(({ column, operator, operand }) =>
    needsOperand(operator) ? { [column]: { [operator]: operand } } : { [operator]: column },
  );
  return parts.length === 0 ? "" : JSON.stringify(parts.length === 1 ? parts[0] : { $all: parts });
}

/** @returns undefined when the text is no JSON, or says more than conditions that must all hold. */
export function conditionsOf(filter: string): readonly Condition[] | undefined {
  if (filter.trim() === "") return [];
  try {
    return partsOf(JSON.parse(filter));
  } catch {
    return undefined;
  }
}

function partsOf(filter: unknown): readonly Condition[] | undefined {
  if (!isObject(filter)) return undefined;
  return together(
    Object.entries(filter).map(([name, value]) => {
      if (name === "$all" && Array.isArray(value)) return together(value.map(partsOf));
      if (name === "$exists" || name === "$notExists")
        return typeof value === "string" ? [{ column: value, operator: name, operand: undefined }] : undefined;
      if (name.startsWith("$")) return undefined;
      if (!isObject(value)) return isPlain(value) ? [{ column: name, operator: "$is", operand: value }] : undefined;
      return together(
        Object.entries(value).map(([operator, operand]) => {
          const known = OPERATORS.find(([other]) => other === operator)?.[0];
          return known !== undefined && needsOperand(known) && isPlain(operand) ? [{ column: name, operator: known, operand }] : undefined;
        }),
      );
    }),
  );
}

const together = (lists: readonly (readonly Condition[] | undefined)[]): readonly Condition[] | undefined =>
  lists.some((list) => list === undefined) ? undefined : lists.flatMap((list) => list ?? []);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isPlain = (value: unknown): boolean => value !== null && typeof value !== "object";

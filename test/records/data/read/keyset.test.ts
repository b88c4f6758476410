import { describe, expect, test } from "vitest";
import { behind } from "../../../../src/records/data/read/cursor.ts";
import type { SortTerm } from "../../../../src/records/data/sql-parts/sort.ts";
import { Parameters } from "../../../../src/records/data/sql-parts/statement-parts.ts";

type Value = string | null;

/** Evaluates the condition by hand in three-valued logic; the SQL written by cursor.ts has few forms. */
function evaluate(sql: string, row: Readonly<Record<string, Value>>, parameters: readonly unknown[]): boolean | null {
  const tokens = sql.match(/\(|\)|\$\d+::\w+|IS NOT NULL|IS NULL|AND|OR|FALSE|<=|>=|<|>|=|,|\w+/g)!;
  let at = 0;
  const take = (): string => tokens[at++]!;
  const value = (token: string): Value => (token.startsWith("$") ? (parameters[Number(/\d+/.exec(token)![0]) - 1] as string) : row[token]!);
  const compare = (operator: string, a: Value, b: Value): boolean | null => {
    if (a === null || b === null) return null;
    return { "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "=": a === b }[operator]!;
  };
  const disjunction = (): boolean | null => {
    let result = conjunction();
    while (tokens[at] === "OR") {
      take();
      const other = conjunction();
      result = result === true || other === true ? true : result === null || other === null ? null : false;
    }
    return result;
  };
  const conjunction = (): boolean | null => {
    let result = primary();
    while (tokens[at] === "AND") {
      take();
      const other = primary();
      result = result === false || other === false ? false : result === null || other === null ? null : true;
    }
    return result;
  };
  const primary = (): boolean | null => {
    const first = take();
    if (first === "FALSE") return false;
    if (first === "(" && tokens[at + 1] === ",") return rows();
    if (first === "(") {
      const inner = disjunction();
      take();
      return inner;
    }
    const operator = take();
    if (operator === "IS NULL") return row[first] === null;
    if (operator === "IS NOT NULL") return row[first] !== null;
    return compare(operator, value(first), value(take()));
  };
  const list = (): string[] => {
    const items = [take()];
    while (take() === ",") items.push(take());
    return items;
  };
  /** `(a, b) < ($1, $2)`, after its first bracket. */
  const rows = (): boolean | null => {
    const left = list();
    const operator = take();
    take();
    const right = list();
    for (const [i, name] of left.entries()) {
      const equal = compare("=", value(name), value(right[i]!));
      if (equal === null) return null;
      if (!equal) return compare(operator, value(name), value(right[i]!));
    }
    return false;
  };
  const result = disjunction();
  expect(at, sql).toBe(tokens.length);
  return result;
}

/** Nulls are above every value. */
const compareValues = (a: Value, b: Value): number => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1);

describe("what comes after a record", () => {
  const values: Value[] = ["a", "b", null];
  const rows = values.flatMap((x) => values.flatMap((y) => ["1", "2"].map((id) => ({ x, y, id }))));

  for (const reversed of [false, true]) {
    for (const xDescends of [false, true]) {
      for (const yDescends of [false, true]) {
        for (const nullable of [true, false]) {
          const direction = (descends: boolean): string => (descends ? "descending" : "ascending");
          test(`${nullable ? "with" : "without"} nulls, ${direction(xDescends)}, ${direction(yDescends)}${reversed ? ", backwards" : ""}`, () => {
            const terms: SortTerm[] = [
              { sql: "x", type: "text", nullable, descending: xDescends },
              { sql: "y", type: "text", nullable, descending: yDescends },
              { sql: "id", type: "text", nullable: false, descending: false },
            ];
            const present = rows.filter(({ x, y }) => nullable || (x !== null && y !== null));
            const order = (a: (typeof rows)[0], b: (typeof rows)[0]): number => {
              const inOrder =
                compareValues(a.x, b.x) * (xDescends ? -1 : 1) ||
                compareValues(a.y, b.y) * (yDescends ? -1 : 1) ||
                compareValues(a.id, b.id);
              return reversed ? -inOrder : inOrder;
            };
            for (const position of present) {
              const parameters = new Parameters();
              const condition = behind(terms, [position.x, position.y, position.id], reversed, parameters);
              const found = present.filter((row) => evaluate(condition, row, parameters.values) === true);
              expect(found, condition).toEqual(present.filter((row) => order(row, position) > 0));
            }
          });
        }
      }
    }
  }

  test("is one row comparison if all columns go one way and none can be null, so that an index can be used", () => {
    const term = (sql: string, descending: boolean, nullable = false): SortTerm => ({ sql, type: "int8", nullable, descending });
    const condition = (terms: SortTerm[], reversed = false): string =>
      behind(
        terms,
        terms.map(() => "1"),
        reversed,
        new Parameters(),
      );
    expect(condition([term("x", false), term("id", false)])).toBe("(x, id) > ($1::int8, $2::int8)");
    expect(condition([term("x", true), term("id", true)])).toBe("(x, id) < ($1::int8, $2::int8)");
    expect(condition([term("x", true), term("id", true)], true)).toBe("(x, id) > ($1::int8, $2::int8)");
  });

  test("repeats the first term where it can, for the same reason", () => {
    const terms = (descending: boolean, nullable: boolean): SortTerm[] => [
      { sql: "x", type: "int8", nullable, descending },
      { sql: "id", type: "text", nullable: false, descending: false },
    ];
    const condition = (descending: boolean, nullable: boolean, x: string | null): string =>
      behind(terms(descending, nullable), [x, "r"], false, new Parameters());
    expect(condition(true, true, "1")).toMatch(/^x <= \$1::int8 AND /);
    expect(condition(true, false, "1")).toMatch(/^x <= \$1::int8 AND /);
    // In ascending order nulls come after every value.
    expect(condition(false, true, "1")).not.toContain(">=");
    expect(condition(true, true, null)).not.toContain("<=");
  });
});

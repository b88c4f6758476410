/**
 * The analysis of a statement takes steps in proportion to the statement's length. Counted, not timed: what the
 * walk over the tree stores in sets and maps.
 */
import { loadModule, parseSync } from "libpg-query";
import { beforeAll, describe, expect, test } from "vitest";
import { analyse, MAX_STATEMENT_PARTS } from "../../../src/records/sql/analyse.ts";

beforeAll(() => loadModule());

const parsed = (statement: string): readonly unknown[] => parseSync(statement).stmts ?? [];

/** How many elements are stored in sets and maps while `work` runs; a copy of a set stores each of its elements. */
function stored(work: () => void): number {
  const [add, set] = [Set.prototype.add, Map.prototype.set];
  let count = 0;
  Set.prototype.add = function counted(value) {
    count++;
    return add.call(this, value);
  };
  Map.prototype.set = function counted(key, value) {
    count++;
    return set.call(this, key, value);
  };
  try {
    work();
  } finally {
    Set.prototype.add = add;
    Map.prototype.set = set;
  }
  return count;
}

const times = (n: number, part: (i: number) => string, separator: string): string =>
  Array.from({ length: n }, (_, i) => part(i)).join(separator);

/** Statements of n parts of a kind. */
const FAMILIES: Readonly<Record<string, (n: number) => string>> = {
  "queries of a WITH": (n) => `WITH ${times(n, (i) => `w${i} AS (SELECT 1)`, ", ")} SELECT 1`,
  "queries of a WITH, each reading the one before": (n) =>
    `WITH w0 AS (SELECT 1 AS a), ${times(n, (i) => `w${i + 1} AS (SELECT w${i}.a FROM w${i})`, ", ")} SELECT 1`,
  "queries of a recursive WITH": (n) => `WITH RECURSIVE ${times(n, (i) => `w${i} AS (SELECT 1)`, ", ")} SELECT 1`,
  "a WITH in every subquery": (n) => `SELECT ${times(n, (i) => `(WITH w AS (SELECT ${i} AS a) SELECT w.a FROM w)`, " + ")}`,
  "tables of a FROM": (n) => `SELECT 1 FROM ${times(n, (i) => `t AS t${i}`, ", ")}`,
  "columns of a wide table": (n) => `SELECT 1 FROM t WHERE ${times(n, (i) => `t.c${i % 200} = c${i % 200}`, " AND ")}`,
  subqueries: (n) => `SELECT 1 FROM t WHERE ${times(n, () => "EXISTS (SELECT 1 FROM u WHERE u.n = t.c1)", " AND ")}`,
  unions: (n) => times(n, () => "SELECT u.n FROM u", " UNION ALL "),
  values: (n) => `SELECT 1 WHERE 1 IN (${times(n, String, ", ")})`,
  rows: (n) => `VALUES ${times(n, (i) => `(${i}, 'x')`, ", ")}`,
};

describe("steps for twice as much are twice as many", () => {
  test.each(Object.entries(FAMILIES))("%s", (_name, family) => {
    const count = (n: number): number => stored(() => analyse(parsed(family(n))));
    expect(count(600)).toBeLessThanOrEqual(2 * count(300) + 100);
  });
});

describe("what is not linear by its nature ends at a count", () => {
  const star = (n: number) => `SELECT 1 WHERE ${times(n, () => "1 IN (SELECT * FROM (SELECT * FROM t) AS x)", " AND ")}`;
  const lookups = (n: number) => `SELECT 1 FROM ${times(n, (i) => `u AS u${i}`, ", ")} WHERE ${times(n, () => `u${n - 1}.n = 1`, " AND ")}`;

  test.each([
    ["columns of *", star, 12_000],
    ["names in a FROM of thousands", lookups, 3_000],
  ] as const)("%s", (_name, family, n) => {
    expect(analyse(parsed(family(Math.floor(n / 10)))).kind).toBe("SELECT");
    expect(() => analyse(parsed(family(n)))).toThrow(/too many tables and subqueries/);
  });

  test("parts of a statement", () => {
    const list = (n: number) => `SELECT 1 WHERE 1 IN (${"1,".repeat(n)}1)`;
    expect(() => analyse(parsed(list(MAX_STATEMENT_PARTS)))).toThrow(/more than 200000 parts/);
    expect(analyse(parsed(list(MAX_STATEMENT_PARTS - 100))).kind).toBe("SELECT");
  });
});

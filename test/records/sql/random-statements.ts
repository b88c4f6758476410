/**
 * Random SELECTs over the table "t" in which names collide: few aliases, columns that are called like functions, at every depth. So a name that is a column in one
 * scope is a call in another, and any mistake in following the scopes shows.
 */
import { Random } from "../../reliability/workload/random.ts";

const ALIASES = ["a", "b", "c"];
/** One-argument functions and types among them. */
const NAMES = ["pg_sleep", "ts_stat", "length", "n", "pg_column_size"];

export function* randomStatements(seed: number, count: number): Generator<string> {
  const random = new Random(seed);
  const chance = (share: number): boolean => random.next() < share;
  const name = (): string => random.of(NAMES);
  const aliasNot = (other?: string): string => random.of(ALIASES.filter((alias) => alias !== other));
  const names = (): string => [...new Set([name(), name()])].join(", ");

  const reference = (): string => `${random.of(ALIASES)}.${name()}`;
  const value = (depth: number): string => {
    const kind = random.below(depth > 0 ? 10 : 7);
    if (kind < 5) return reference();
    if (kind === 5) return random.of(["1.5::float8", "1"]);
    if (kind === 6) return `(${random.of(ALIASES)}).${name()}`;
    if (kind === 7) return `(SELECT ${value(depth - 1)} FROM ${from(depth - 1)} LIMIT 1)`;
    if (kind === 8) return `(SELECT ${random.of(ALIASES)} FROM ${from(depth - 1)} LIMIT 1).${name()}`;
    return `(SELECT count(*) FROM (${query(depth - 1)}) AS ${random.of(ALIASES)})`;
  };
  /** Most sources have most of the names. */
  const source = (depth: number, alias: string): string => {
    const kind = random.below(depth > 0 ? 10 : 6);
    if (kind < 3) return `(SELECT ${NAMES.filter(() => chance(0.7)).map((each) => `1.5::float8 AS ${each}`)}) AS ${alias}`;
    if (kind === 3) return `"t" AS ${alias}(${names()})`;
    if (kind === 4) return `unnest(ARRAY[1.5::float8]) AS ${alias}${chance(0.6) ? `(${name()})` : ""}`;
    if (kind === 5) return `(VALUES (1.5::float8)) AS ${alias}(${name()})`;
    if (kind === 6) {
      const [one, two] = pair();
      const join = chance(0.5) ? `JOIN ${source(0, two)} ON (${value(depth - 1)}) IS NULL` : `NATURAL JOIN ${source(0, two)}`;
      return `(${source(depth - 1, one)} ${join}) AS ${alias}`;
    }
    return `${chance(0.5) ? "LATERAL " : ""}(${query(depth - 1)}) AS ${alias}${chance(0.3) ? `(${name()})` : ""}`;
  };
  const pair = (): [string, string] => {
    const one = aliasNot();
    return [one, aliasNot(one)];
  };
  const from = (depth: number): string => {
    const [one, two] = pair();
    const first = source(depth, one);
    const kind = random.below(6);
    if (kind < 2) return first;
    if (kind === 2) return `${first}, ${source(depth, two)}`;
    if (kind === 3) return `${first} NATURAL JOIN ${source(depth, two)}`;
    const third = ALIASES.find((alias) => alias !== one && alias !== two)!;
    const join = `${source(depth, two)} LEFT JOIN ${source(0, third)} ON (${value(depth)}) IS NULL`;
    return kind === 4 ? `${first}, ${join}` : `${first} CROSS JOIN ${join}`;
  };
  const query = (depth: number): string => {
    const cte = chance(0.2) ? `WITH ${random.of(ALIASES)} AS (SELECT ${value(0)} AS ${name()} FROM ${source(0, aliasNot())}) ` : "";
    const target = chance(0.2) ? "*" : `${value(depth)}${chance(0.8) ? ` AS ${name()}` : ""}`;
    const lists = cte !== "" && chance(0.5) ? `${random.of(ALIASES)}` : from(depth);
    const where = chance(0.4) ? ` WHERE (${value(depth)}) IS NULL` : "";
    const union = chance(0.1) ? ` UNION ALL SELECT ${value(0)} FROM ${source(0, aliasNot())}` : "";
    return `${cte}SELECT ${target} FROM ${lists}${where}${union}`;
  };

  for (let i = 0; i < count; i++) yield query(i % 3);
}

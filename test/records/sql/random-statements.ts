/**
 * Random statements over the tables "t" and "u" (whose columns are some of NAMES) in which names collide: few
 * aliases, columns named like functions, at every depth. A name that is a column in one scope is a call in
 * another.
 */
import { Random } from "../../reliability/workload/random.ts";

/** Stands for a value until it is decided which ones are references. */
const HOLE = "§";
const ALIASES = ["a", "b", "c"];
/** Among them functions that PostgreSQL finds for a row as well as for a number. */
const NAMES = ["exp", "hashfloat8", "n", "pg_column_size"];

export function* randomStatements(seed: number, count: number): Generator<string> {
  const random = new Random(seed);
  const chance = (share: number): boolean => random.next() < share;
  const name = (): string => random.of(NAMES);
  const aliasNot = (other?: string): string => random.of(ALIASES.filter((alias) => alias !== other));
  const names = (): string => [...new Set([name(), name()])].join(", ");

  let relations: readonly string[] = ALIASES;
  const reference = (): string => (chance(0.8) ? `${random.of(relations)}.${name()}` : `(${random.of(relations)}).${name()}`);
  /** With one or two references: with many, one would nearly always be refused. */
  const filled = (statement: string): string => {
    const pieces = statement.split(HOLE);
    const places = new Set([1 + random.below(pieces.length), 1 + random.below(pieces.length)]);
    return pieces.reduce((whole, piece, at) => `${whole}${places.has(at) ? reference() : "1.5::float8"}${piece}`);
  };
  const value = (depth: number): string => {
    const kind = random.below(depth > 0 ? 6 : 1);
    if (kind < 3) return HOLE;
    if (kind === 3) return `(SELECT ${value(depth - 1)} FROM ${from(depth - 1)} LIMIT 1)`;
    if (kind === 4) return `(SELECT ${random.of(ALIASES)} FROM ${from(depth - 1)} LIMIT 1).${name()}`;
    return `(SELECT count(*) FROM (${query(depth - 1)}) AS ${random.of(ALIASES)})`;
  };
  /** Most sources have most of the names. */
  const source = (depth: number, alias: string): string => {
    const kind = random.below(depth > 0 ? 10 : 6);
    if (kind < 3) return `(SELECT ${NAMES.filter(() => chance(0.5)).map((each) => `1.5::float8 AS ${each}`)}) AS ${alias}`;
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

  const isNull = (depth: number): string => `(${value(depth)}) IS NULL`;
  const returning = (depth: number): string => (chance(0.6) ? ` RETURNING ${value(depth)}` : "");
  const change = (depth: number): string => {
    relations = [...ALIASES, "u", "excluded", "old", "new"];
    const target = chance(0.7) ? `"u" AS ${aliasNot()}` : `"u"`;
    const kind = random.below(3);
    if (kind === 0) return `UPDATE ${target} SET "n" = 1.5 FROM ${from(depth)} WHERE ${isNull(depth)}${returning(depth)}`;
    if (kind === 1) return `DELETE FROM ${target} USING ${from(depth)} WHERE ${isNull(depth)}${returning(depth)}`;
    const rows = `SELECT 'x' FROM ${from(depth)} WHERE ${isNull(depth)}`;
    return `INSERT INTO ${target} ("id") ${rows} ON CONFLICT ("id") DO UPDATE SET "n" = 1.5 WHERE ${isNull(depth)}${returning(depth)}`;
  };

  for (let i = 0; i < count; i++) {
    relations = ALIASES;
    yield filled(i % 2 === 0 ? query(i % 3) : change(i % 3));
  }
}

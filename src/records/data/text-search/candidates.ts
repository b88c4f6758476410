/**
 * The records of a table that a text search has to look at, page by page. A page is bounded in records and in
 * bytes before any text is looked at. So no statement holds the database for long and no page fills memory,
 * whatever the records are. Within a page PostgreSQL skips the records that cannot match (`piecesOf`), without
 * any index or extension, where that is cheaper than sending them.
 */
import type { Connection } from "../../engine/engine.ts";
import { quoteLiteral } from "../../identifiers.ts";
import type { BranchInfo } from "../../schema.ts";
import { columnSql } from "../sql-parts/column-reference.ts";
import { compileFilter, Parameters, quotedColumn, ROW, relation } from "../sql-parts/statement-parts.ts";
import type { Booster, TablePlan } from "./text-search-request.ts";
import { ACCENT_CLASS, piecesOf, type Term } from "./words.ts";

/** The id, the text of each target, and for each booster its value and whether it applies ("t"). */
export type Candidate = readonly (string | null)[];

const MAX_PAGE_BYTES = 1 << 20;
const FIRST_PAGE_RECORDS = 256;
const MAX_PAGE_RECORDS = 8_192;
/** With more pieces PostgreSQL would go through a text that many times, which takes longer than sending it. */
const MAX_PIECES = 16;
/** PostgreSQL takes seconds to normalize a megabyte: longer texts are sent. */
const MAX_FILTERED_BYTES = 65_536;

export class CandidateReader {
  readonly #connection: Connection;
  readonly #branch: BranchInfo;
  readonly #plan: TablePlan;
  readonly #texts: readonly string[];
  readonly #pieces: readonly string[];

  /** @throws {LodestoneError} INVALID: an error in the filter is reported whatever the words are. */
  constructor(connection: Connection, branch: BranchInfo, plan: TablePlan, terms: readonly Term[]) {
    this.#connection = connection;
    this.#branch = branch;
    this.#plan = plan;
    this.#texts = plan.targets.map(({ column }) =>
      column.type === "multiple" ? `array_to_string(${ROW}.${quotedColumn(column)}, E'\\n')` : `${ROW}.${quotedColumn(column)}`,
    );
    const pieces = [...new Set(terms.flatMap(piecesOf))];
    this.#pieces = pieces.includes("") || pieces.length > MAX_PIECES ? [] : pieces;
    this.#candidatesStatement(new Parameters(), null, "");
  }

  /** In the order of the ids. */
  async *pages(): AsyncGenerator<readonly Candidate[], void, undefined> {
    let after: string | null = null;
    let maxRecords = FIRST_PAGE_RECORDS;
    for (;;) {
      const { last, kept, seen } = await this.#nextPage(after, maxRecords);
      if (last === null) return;
      const parameters = new Parameters();
      const statement = this.#candidatesStatement(parameters, after, last);
      const giveBack = this.#connection.budget?.mark();
      yield (await this.#connection.query<(string | null)[]>(statement, parameters.values, { raw: true, rowMode: "array" })).rows;
      giveBack?.();
      if (kept === seen && seen < maxRecords) return;
      after = last;
      // Enough that hardly any record is measured in vain.
      maxRecords = Math.min(2 * kept + 16, MAX_PAGE_RECORDS);
    }
  }

  async countRecords(): Promise<number> {
    const statement = `SELECT count(*)::float8 AS n FROM ${relation(this.#branch, this.#plan.table)}`;
    return (await this.#connection.query<{ n: number }>(statement)).rows[0]!.n;
  }

  /** How far the next page goes: as many of `maxRecords` as fit in its bytes, one at least. */
  async #nextPage(after: string | null, maxRecords: number): Promise<{ last: string | null; kept: number; seen: number }> {
    const parameters = new Parameters();
    const bytes = ["64", ...this.#texts.map((text) => `coalesce(octet_length(${text}), 0)`)].join(" + ");
    const where = this.#where(parameters, after);
    const { rows } = await this.#connection.query<{ last: string | null; kept: number; seen: number }>(
      `SELECT max("id") FILTER (WHERE before < ${MAX_PAGE_BYTES}) AS last, count(*) FILTER (WHERE before < ${MAX_PAGE_BYTES})::int4 AS kept,
         count(*)::int4 AS seen
       FROM (SELECT "id", sum(bytes) OVER (ORDER BY "id" ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
         SELECT ${ROW}."id", (${bytes})::int8 AS bytes FROM ${relation(this.#branch, this.#plan.table)} AS ${ROW}
         WHERE ${where.join(" AND ")} ORDER BY ${ROW}."id" LIMIT ${maxRecords}) AS page) AS measured`,
      parameters.values,
    );
    return rows[0]!;
  }

  #candidatesStatement(parameters: Parameters, after: string | null, last: string): string {
    const { table, boosters, place } = this.#plan;
    const boosts = boosters.flatMap((booster, index) => [
      boosterSql(this.#branch, booster, parameters),
      compileFilter(this.#branch, table, booster.filter, ROW, parameters, `${place}boosters[${index}].ifMatchesFilter`),
    ]);
    const where = this.#where(parameters, after);
    where.push(`${ROW}."id" <= ${parameters.add(last)}::text`);
    if (this.#pieces.length > 0) {
      const patterns = parameters.add(this.#pieces.map((piece) => `%${piece.replace(/[\\%_]/g, "\\$&")}%`));
      const mayMatch = (text: string): string =>
        `CASE WHEN octet_length(${text}) > ${MAX_FILTERED_BYTES} THEN true ELSE ${plainSql(text)} LIKE ANY (${patterns}::text[]) END`;
      where.push(`(${this.#texts.map(mayMatch).join(" OR ")})`);
    }
    return (
      `SELECT ${[`${ROW}."id"`, ...this.#texts, ...boosts].join(", ")} FROM ${relation(this.#branch, table)} AS ${ROW} ` +
      `WHERE ${where.join(" AND ")} ORDER BY ${ROW}."id"`
    );
  }

  #where(parameters: Parameters, after: string | null): string[] {
    const { table, filter, place } = this.#plan;
    const where = [compileFilter(this.#branch, table, filter, ROW, parameters, `${place}filter`)];
    if (after !== null) where.push(`${ROW}."id" > ${parameters.add(after)}::text`);
    return where;
  }
}

/** `plain` of words.ts in SQL; text that is all ASCII, as most is, needs no more than folding. */
function plainSql(text: string): string {
  const stripped = `regexp_replace(normalize(${text}, NFKD), ${quoteLiteral(ACCENT_CLASS)}, '', 'g')`;
  return `lodestone.fold(CASE WHEN octet_length(${text}) = char_length(${text}) THEN ${text} ELSE ${stripped} END)`;
}

function boosterSql(branch: BranchInfo, booster: Booster, parameters: Parameters): string {
  const value = columnSql(branch, booster.column, ROW);
  switch (booster.kind) {
    case "value":
      return `(${value} = ${parameters.column(booster.column, booster.value)})`;
    case "numeric":
      return `${value}::float8`;
    case "date":
      return `CASE WHEN isfinite(${value}) THEN extract(epoch FROM ${value})::float8 * 1000 END`;
  }
}

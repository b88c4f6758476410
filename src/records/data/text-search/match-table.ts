/**
 * Finds the records of a table that match, with what their score is made of. PostgreSQL passes over the records that cannot match (`piecesOf`), without any
 * index or extension; the rest are read in batches, so that neither the event loop nor the embedded engine is held for long.
 *
 * The score of a record is BM25 (Robertson and Zaragoza, 2009) over its columns, each with its weight, plus its boosts. All that BM25 wants to know about the
 * whole table is known when the last batch has been read.
 */

import { COLUMN_TRAITS } from "../../column-traits.ts";
import type { Connection } from "../../engine/engine.ts";
import { quoteLiteral } from "../../identifiers.ts";
import type { BranchInfo } from "../../schema.ts";
import { columnSql } from "../sql-parts/column-reference.ts";
import { compileFilter } from "../sql-parts/filter-sql.ts";
import { Parameters, ROW } from "../sql-parts/parameters.ts";
import { quotedColumn, relation } from "../sql-parts/sql-names.ts";
import type { Booster, TablePlan } from "./text-search-request.ts";
import { ACCENT_CLASS, matchQuality, piecesOf, type Term, wordsOf } from "./words.ts";

export interface TextMatch {
  readonly id: string;
  readonly score: number;
}

const BATCH = 1_000;
const K1 = 1.2;
const B = 0.75;

/** Best first; equal scores by id. */
export async function searchTable(
  connection: Connection,
  branch: BranchInfo,
  plan: TablePlan,
  terms: readonly Term[],
): Promise<TextMatch[]> {
  // Compiled all the same: a fault in the filter is one whatever the words are.
  if (terms.length === 0 || plan.targets.length === 0) {
    batchStatement(branch, plan, terms, null);
    return [];
  }
  const found: { id: string; frequencies: Float64Array; boost: number }[] = [];
  const lengths = new Float64Array(plan.targets.length);
  let after: string | null = null;
  for (;;) {
    const { statement, parameters } = batchStatement(branch, plan, terms, after);
    const { rows } = await connection.query<(string | null)[]>(statement, parameters.values, { raw: true, rowMode: "array" });
    for (const row of rows) {
      const frequencies = frequenciesOf(row, plan, terms, lengths);
      if (frequencies !== undefined) found.push({ id: row[0]!, frequencies, boost: boostOf(row, plan) });
    }
    if (rows.length < BATCH) break;
    after = rows.at(-1)![0]!;
  }
  return scored(found, plan, terms, lengths, await countRecords(connection, branch, plan));
}

function batchStatement(branch: BranchInfo, plan: TablePlan, terms: readonly Term[], after: string | null) {
  const parameters = new Parameters();
  const texts = plan.targets.map(({ column }) =>
    column.type === "multiple" ? `array_to_string(${ROW}.${quotedColumn(column)}, E'\\n')` : `${ROW}.${quotedColumn(column)}`,
  );
  const boosts = plan.boosters.flatMap((booster, index) => [
    boosterSql(branch, booster, parameters),
    compileFilter(branch, plan.table, booster.filter, ROW, parameters, `${plan.place}boosters[${index}].ifMatchesFilter`),
  ]);
  const where = [compileFilter(branch, plan.table, plan.filter, ROW, parameters, `${plan.place}filter`)];
  const pieces = [...new Set(terms.flatMap(piecesOf))];
  if (texts.length > 0 && !pieces.includes("")) {
    const patterns = parameters.add(pieces.map((piece) => `%${piece.replace(/[\\%_]/g, "\\$&")}%`));
    where.push(`(${texts.map((text) => `${plainSql(text)} LIKE ANY (${patterns}::text[])`).join(" OR ")})`);
  }
  if (after !== null) where.push(`${ROW}."id" > ${parameters.add(after)}::text`);
  const statement =
    `SELECT ${[`${ROW}."id"`, ...texts, ...boosts].join(", ")} FROM ${relation(branch, plan.table)} AS ${ROW} ` +
    `WHERE ${where.join(" AND ")} ORDER BY ${ROW}."id" LIMIT ${BATCH}`;
  return { statement, parameters };
}

/** `plain` of search-words.ts in SQL; text that is all ASCII, as most is, needs no more than folding. */
function plainSql(text: string): string {
  const stripped = `regexp_replace(normalize(${text}, NFKD), ${quoteLiteral(ACCENT_CLASS)}, '', 'g')`;
  return `lodestone.fold(CASE WHEN octet_length(${text}) = char_length(${text}) THEN ${text} ELSE ${stripped} END)`;
}

function boosterSql(branch: BranchInfo, booster: Booster, parameters: Parameters): string {
  const value = columnSql(branch, booster.column, ROW);
  switch (booster.kind) {
    case "value":
      return `(${value} = ${parameters.add(booster.value)}::${COLUMN_TRAITS[booster.column.type].parameterType})`;
    case "numeric":
      return `${value}::float8`;
    case "date":
      return `CASE WHEN isfinite(${value}) THEN extract(epoch FROM ${value})::float8 * 1000 END`;
  }
}

/** By column and term, how often and how well; undefined when nothing matches. Adds the columns' lengths in words to `lengths`. */
function frequenciesOf(
  row: readonly (string | null)[],
  plan: TablePlan,
  terms: readonly Term[],
  lengths: Float64Array,
): Float64Array | undefined {
  const stride = terms.length + 1;
  const frequencies = new Float64Array(plan.targets.length * stride);
  let isMatch = false;
  plan.targets.forEach((_, column) => {
    const text = row[column + 1];
    if (text === null || text === undefined) return;
    const words = wordsOf(text);
    frequencies[column * stride + terms.length] = words.length;
    for (const word of words) {
      terms.forEach((term, index) => {
        const quality = matchQuality(term, word.plain);
        if (quality === 0) return;
        frequencies[column * stride + index]! += quality;
        isMatch = true;
      });
    }
  });
  if (!isMatch) return undefined;
  for (let column = 0; column < lengths.length; column++) lengths[column]! += frequencies[column * stride + terms.length]!;
  return frequencies;
}

function boostOf(row: readonly (string | null)[], plan: TablePlan): number {
  let boost = 0;
  plan.boosters.forEach((booster, index) => {
    const at = 1 + plan.targets.length + 2 * index;
    const [value, applies] = [row[at], row[at + 1]];
    if (value === null || value === undefined || applies !== "t") return;
    const added = booster.factor * boosterValue(booster, value);
    if (Number.isFinite(added)) boost += added;
  });
  return boost;
}

function boosterValue(booster: Booster, value: string): number {
  switch (booster.kind) {
    case "value":
      return value === "t" ? 1 : 0;
    case "date":
      return booster.decay ** (Math.abs(Number(value) - booster.originMs) / booster.scaleMs);
    case "numeric": {
      const x = Number(value);
      const modified = {
        none: x,
        log: Math.log10(x),
        log1p: Math.log10(1 + x),
        ln: Math.log(x),
        ln1p: Math.log1p(x),
        square: x * x,
        sqrt: Math.sqrt(x),
        reciprocal: 1 / x,
      };
      return modified[booster.modifier];
    }
  }
}

async function countRecords(connection: Connection, branch: BranchInfo, plan: TablePlan): Promise<number> {
  const { rows } = await connection.query<{ n: number }>(`SELECT count(*)::int4 AS n FROM ${relation(branch, plan.table)}`);
  return rows[0]!.n;
}

function scored(
  found: readonly { id: string; frequencies: Float64Array; boost: number }[],
  plan: TablePlan,
  terms: readonly Term[],
  lengths: Float64Array,
  total: number,
): TextMatch[] {
  const stride = terms.length + 1;
  const rarity = terms.map((_, index) => {
    const having = found.filter(({ frequencies }) =>
      plan.targets.some((_target, column) => frequencies[column * stride + index]! > 0),
    ).length;
    return Math.log(1 + (Math.max(total, having) - having + 0.5) / (having + 0.5));
  });
  const matches = found.map(({ id, frequencies, boost }) => {
    let score = boost;
    plan.targets.forEach(({ weight }, column) => {
      const average = lengths[column]! / found.length || 1;
      const norm = K1 * (1 - B + (B * frequencies[column * stride + terms.length]!) / average);
      terms.forEach((_, index) => {
        const frequency = frequencies[column * stride + index]!;
        if (frequency > 0) score += (weight * rarity[index]! * frequency * (K1 + 1)) / (frequency + norm);
      });
    });
    return { id, score };
  });
  return matches.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

/**
 * Answers searches of a branch from the search database: finds the k best rows of a table. They are identical,
 * in every bit, to those of a search in memory.
 *
 * pgvector orders the rows by its float32 distance. Rows are fetched in that order, at first a few more than
 * k, then more and more, and scored again in float64 by the core's own sums. Once the k-th best score is
 * above what any remaining row can have (error-bounds.ts), the rest is ruled out. An equal score does not
 * rule it out: a remaining row may have the same score and a lower id. Rows about which distances prove
 * nothing are always fetched.
 *
 * Held in memory: the candidates' ids and distances, PAGE_BYTES of vectors, and the best rows so far.
 */

import pg from "pg";
import { tooLarge } from "../../budget/memory-budget.ts";
import { scorer, squares } from "../../core/exact.ts";
import type { Similarity } from "../../core/similarity.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { compareText } from "../../text/code-point-order.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import { type BranchKey, RESULT_BYTES, type SearchAnswer, type SearchJob, type SearchOutcome } from "../search-messages.ts";
import { alwaysFetched, bestScoreBeyond, distanceSql, isOrdinaryQuery, ROW_KIND } from "./error-bounds.ts";
import { type Condition, EVERY_ROW, filterCondition, ROW } from "./filter-condition.ts";
import { SCHEMA, type SearchDatabase, type Statements } from "./search-database.ts";
import { type BranchRow, countsFromJson, kindColumn, lockOf, schemaFromJson, tableName, valueColumn } from "./table-layout.ts";
import { readVector, vectorText } from "./vector-array.ts";

const PAGE_BYTES = 8 * 2 ** 20;
const MAX_PAGE_ROWS = 1_000;
/** How many candidates one statement fetches. */
const MAX_CANDIDATES = 32_000;

export interface SearchedColumn {
  /** Schema-qualified. */
  readonly table: string;
  /** The vector's column, and the column of its kind. */
  readonly column: string;
  readonly kindColumn: string;
  readonly dimension: number;
  /** The schema of pgvector, quoted. */
  readonly vectorSchema: string;
  readonly condition: Condition;
}

export interface ScoredRow {
  readonly id: string;
  readonly score: number;
}

/** How many rows have a vector and pass the condition. */
async function countRows(statements: Statements, { table, column, condition }: SearchedColumn): Promise<number> {
  const [row] = await statements.query<{ count: string }>(
    `SELECT count(*)::text AS count FROM ${table} AS ${ROW} WHERE ${ROW}.${column} IS NOT NULL AND ${condition.text}`,
    condition.values,
  );
  return Number(row!.count);
}

/**
 * @param query  finite, and for the cosine not zero.
 * @returns best first; equal scores: lower id first.
 */
async function searchExactly(
  statements: Statements,
  searched: SearchedColumn,
  query: Float32Array,
  similarity: Similarity,
  k: number,
): Promise<ScoredRow[]> {
  const search = new ExactSearch(statements, searched, query, similarity, k);
  if (!isOrdinaryQuery(similarity, search.querySquares)) await search.scoreAll("TRUE");
  else {
    await search.scoreAll(`${ROW}.${searched.kindColumn} IN (${alwaysFetched(similarity).join(", ")})`);
    if (similarity === "cosineSimilarity") await search.addZeroVectors();
    await search.scoreNearest();
  }
  return search.best.sorted();
}

class ExactSearch {
  readonly best: BestRows;
  /** Σ q². */
  readonly querySquares: number;
  readonly #statements: Statements;
  readonly #searched: SearchedColumn;
  readonly #query: Float32Array;
  readonly #similarity: Similarity;
  readonly #k: number;
  readonly #vector: Float32Array;
  readonly #score: ReturnType<typeof scorer>;
  readonly #pageRows: number;

  constructor(statements: Statements, searched: SearchedColumn, query: Float32Array, similarity: Similarity, k: number) {
    this.best = new BestRows(k);
    this.#statements = statements;
    this.#searched = searched;
    this.#query = query;
    this.#similarity = similarity;
    this.#k = k;
    this.querySquares = squares(query, 0, query.length);
    this.#vector = new Float32Array(searched.dimension);
    this.#score = scorer(similarity, query);
    this.#pageRows = Math.max(1, Math.min(MAX_PAGE_ROWS, Math.floor(PAGE_BYTES / (6 * searched.dimension))));
  }

  /** All rows of those kinds, in id order. */
  async scoreAll(which: string): Promise<void> {
    const { table, column, condition } = this.#searched;
    const after = `$${condition.values.length + 1}::text`;
    for (let last: string | null = null; ; ) {
      const rows: { id: string; vector: string }[] = await this.#statements.query(
        `SELECT ${ROW}.id, ${this.#vectorSql} AS vector FROM ${table} AS ${ROW}
         WHERE ${which} AND ${ROW}.${column} IS NOT NULL AND (${after} IS NULL OR ${ROW}.id > ${after}) AND ${condition.text}
         ORDER BY ${ROW}.id LIMIT ${this.#pageRows}`,
        [...condition.values, last],
      );
      for (const { id, vector } of rows) this.#add(id, vector);
      if (rows.length < this.#pageRows) return;
      last = rows.at(-1)!.id;
    }
  }

  /** Zero vectors, whose score is 1: only the first k by id can be among the best. */
  async addZeroVectors(): Promise<void> {
    const { table, kindColumn, condition } = this.#searched;
    const rows = await this.#statements.query<{ id: string }>(
      `SELECT ${ROW}.id FROM ${table} AS ${ROW} WHERE ${ROW}.${kindColumn} = ${ROW_KIND.zero} AND ${condition.text} ORDER BY ${ROW}.id LIMIT ${this.#k}`,
      condition.values,
    );
    for (const { id } of rows) this.best.add(id, 1);
  }

  /** Rows by distance, until the rest is ruled out. */
  async scoreNearest(): Promise<void> {
    let last: Candidate | undefined;
    for (let limit = Math.ceil(1.25 * this.#k) + 16; ; limit = Math.min(2 * limit, MAX_CANDIDATES)) {
      const candidates = await this.#candidates(limit, last);
      for (let start = 0; start < candidates.length; start += this.#pageRows) {
        if (this.#isRuledOut(candidates[start]!)) return;
        await this.#scorePage(candidates.slice(start, start + this.#pageRows));
      }
      last = candidates.at(-1);
      if (candidates.length < limit || last === undefined || this.#isRuledOut(last)) return;
    }
  }

  /**
   * Whether neither this candidate nor any with a larger distance can be among the best. False if the
   * distance is NaN.
   */
  #isRuledOut({ distance }: Candidate): boolean {
    return this.best.worst > bestScoreBeyond(this.#similarity, this.#searched.dimension, distance);
  }

  async #candidates(limit: number, last: Candidate | undefined): Promise<Candidate[]> {
    const { table, column, kindColumn, dimension, vectorSchema, condition } = this.#searched;
    const given = condition.values.length;
    const query = `$${given + 1}::${vectorSchema}.vector`;
    const distance = distanceSql(this.#similarity, vectorSchema, `${ROW}.${column}`, query, dimension, this.querySquares);
    const kinds = this.#similarity === "cosineSimilarity" ? "IS NULL" : `IS DISTINCT FROM ${ROW_KIND.huge}`;
    const rows = `SELECT ${ROW}.id, ${distance} AS distance FROM ${table} AS ${ROW}
      WHERE ${ROW}.${column} IS NOT NULL AND ${ROW}.${kindColumn} ${kinds} AND ${condition.text}`;
    const values = [...condition.values, vectorText(this.#query)];
    const text =
      last === undefined
        ? `${rows} ORDER BY distance, id LIMIT ${limit}`
        : `SELECT id, distance FROM (${rows}) AS candidates WHERE (distance, id) > ($${given + 2}::float8, $${given + 3}::text)
           ORDER BY distance, id LIMIT ${limit}`;
    if (last !== undefined) values.push(String(last.distance), last.id);
    return this.#statements.query<Candidate & { id: string }>(text, values);
  }

  async #scorePage(candidates: readonly Candidate[]): Promise<void> {
    const rows = await this.#statements.query<{ id: string; vector: string }>(
      `SELECT ${ROW}.id, ${this.#vectorSql} AS vector FROM ${this.#searched.table} AS ${ROW} WHERE ${ROW}.id = ANY ($1::text[])`,
      [candidates.map(({ id }) => id)],
    );
    for (const { id, vector } of rows) this.#add(id, vector);
  }

  get #vectorSql(): string {
    return `encode(${this.#searched.vectorSchema}.vector_send(${ROW}.${this.#searched.column}), 'base64')`;
  }

  #add(id: string, vector: string): void {
    readVector(vector, this.#vector);
    this.best.add(id, this.#score(this.#vector, 0, squares(this.#vector, 0, this.#vector.length)));
  }
}

interface Candidate {
  readonly id: string;
  readonly distance: number;
}

function compareRows(a: ScoredRow, b: ScoredRow): number {
  return b.score - a.score || compareText(a.id, b.id);
}

/** Keeps the k best of what is added. */
class BestRows {
  readonly #k: number;
  #rows: ScoredRow[] = [];

  constructor(k: number) {
    this.#k = k;
  }

  add(id: string, score: number): void {
    this.#rows.push({ id, score });
    if (this.#rows.length >= 2 * this.#k + 64) this.#cut();
  }

  /** The k-th best score; −∞ while there are fewer. */
  get worst(): number {
    this.#cut();
    return this.#rows.length < this.#k ? Number.NEGATIVE_INFINITY : this.#rows.at(-1)!.score;
  }

  sorted(): ScoredRow[] {
    this.#cut();
    return this.#rows;
  }

  #cut(): void {
    this.#rows.sort(compareRows);
    this.#rows.length = Math.min(this.#rows.length, this.#k);
  }
}

const UNDEFINED_TABLE = "42P01";
const UNDEFINED_COLUMN = "42703";

export class BranchSearcher {
  readonly #database: SearchDatabase;
  /** Parsed schemas of the branches that were searched, one per version. */
  readonly #schemas = new Map<BranchKey, { readonly generation: string; readonly version: string; readonly schema: FollowedSchema }>();

  constructor(database: SearchDatabase) {
    this.#database = database;
  }

  /** The branch was dropped. */
  forget(key: BranchKey): void {
    this.#schemas.delete(key);
  }

  /** The whole answer comes from one state of the branch. */
  async search(job: SearchJob): Promise<SearchOutcome> {
    let version = Number.POSITIVE_INFINITY;
    try {
      return await this.#database.read(lockOf(job.key), async (statements) => {
        const branch = await this.#searchedBranch(statements, job.key);
        if (branch === undefined || branch.incarnation !== job.incarnation) return { kind: "behind" };
        version = branch.version;
        const { generation, schema } = branch;
        const table = [...schema.values()].find(({ id }) => id === job.tableId);
        const dimension = [...(table?.columns.values() ?? [])].find(({ id }) => id === job.columnId)?.vector?.dimension;
        if (table === undefined || dimension === undefined || job.queries.length !== job.count * dimension) return { kind: "behind" };
        const searched = {
          table: tableName(generation, table.id),
          column: valueColumn(job.columnId),
          kindColumn: kindColumn(job.columnId),
          dimension,
          vectorSchema: this.#database.vectorSchema,
          condition: await filterCondition(statements, generation, schema, table, job.filter),
        };
        const { condition } = searched;
        const totalCount = condition === EVERY_ROW ? (branch.counts.get(job.columnId) ?? 0) : await countRows(statements, searched);
        const answers: SearchAnswer[] = [];
        let bytes = 0;
        for (let i = 0; i < job.count; i++) {
          const query = job.queries.subarray(i * dimension, (i + 1) * dimension);
          const best = totalCount === 0 ? [] : await searchExactly(statements, searched, query, job.similarity, job.offset + job.size);
          const page = best.slice(job.offset).filter(({ score }) => job.minScore === undefined || score >= job.minScore);
          for (const { id } of page) bytes += id.length + RESULT_BYTES;
          if (bytes > job.maxBytes) throw tooLarge(job.maxBytes);
          answers.push({ totalCount, ids: page.map(({ id }) => id), scores: Float64Array.from(page, ({ score }) => score) });
        }
        return { kind: "answers", answers, bytes, schemaVersion: branch.version, part: undefined };
      });
    } catch (error) {
      if (error instanceof LodestoneError && error.code === "INVALID")
        return { kind: "invalid", message: error.message, schemaVersion: version };
      // What was searched was dropped between reading the branch's row and the search.
      if (error instanceof pg.DatabaseError && (error.code === UNDEFINED_TABLE || error.code === UNDEFINED_COLUMN))
        return { kind: "behind" };
      throw error;
    }
  }

  async #searchedBranch(statements: Statements, key: BranchKey) {
    const cached = this.#schemas.get(key);
    const [row] = await statements.query<Omit<BranchRow, "tables"> & { tables: string | null }>(
      `SELECT generation::text, incarnation, version::text, counts::text AS counts,
         CASE WHEN generation = $2::int8 AND version = $3::int8 THEN NULL ELSE tables::text END AS tables FROM ${SCHEMA}.branches WHERE key = $1`,
      [key, cached?.generation ?? null, cached?.version ?? null],
    );
    if (row === undefined) return undefined;
    const { generation, version, incarnation } = row;
    const schema = row.tables === null ? cached!.schema : schemaFromJson(row.tables);
    if (row.tables !== null) this.#schemas.set(key, { generation, version, schema });
    return { generation, incarnation, version: Number(version), schema, counts: countsFromJson(row.counts) };
  }
}

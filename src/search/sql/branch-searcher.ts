/** Answers searches of a branch from the search database. */
import pg from "pg";
import { tooLarge } from "../../budget/memory-budget.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { FollowedSchema } from "../followed-schema.ts";
import { type BranchKey, RESULT_BYTES, type SearchAnswer, type SearchJob, type SearchOutcome } from "../search-messages.ts";
import { type BranchRow, countsFromJson, lockOf } from "./branch-row.ts";
import { countRows, searchExactly } from "./exact-search.ts";
import { EVERY_ROW, filterCondition } from "./filter-condition.ts";
import { SCHEMA, type SearchDatabase, type Statements } from "./search-database.ts";
import { kindColumn, schemaFromJson, tableName, valueColumn } from "./table-layout.ts";

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

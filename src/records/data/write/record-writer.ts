/**
 * Runs a write of one record and answers the record after it. If only its own row is asked for, RETURNING of
 * the same statement gives it. What is behind links is read afterwards in the same transaction (a statement
 * does not see its own changes in other rows).
 *
 * Whether the answer can be given must be known before the commit. So a statement that commits by itself
 * answers at most MAX_COMMITTED_BYTES, or does nothing. In that case it is done again in a transaction of its
 * own, where the answer is read, and charged, before the commit.
 */
import type { VectorForm } from "../../binary-arrays.ts";
import { ANSWER_TOO_LARGE } from "../../catalog/functions.ts";
import type { Connection, Engine } from "../../engine/engine.ts";
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { compileProjection, type Projection } from "../sql-parts/projection.ts";
import { isFlat, isOfFixedSize, type RecordSelection, readSelection } from "../sql-parts/selection.ts";
import { type Parameters, quotedColumn, REPEATED, ROW, relation, type WriteParameters } from "../sql-parts/statement-parts.ts";
import type { EncodedRecord } from "../values/sent-record.ts";
import { explained } from "./constraint-errors.ts";

/** So little that it is never refused. */
export const MAX_COMMITTED_BYTES = 2 ** 20;

/** Where a single write runs: on its own, or as part of a transaction that is open already. */
export type Session = Engine | Connection;

export class RecordWriter {
  readonly branch: BranchInfo;
  readonly table: TableInfo;
  readonly #connection: Connection;
  readonly #selection: RecordSelection;
  readonly #projection: Projection;
  /** Of RETURNING. */
  readonly #answer: string;

  /** @param isSingle  the write commits by itself. */
  constructor(
    connection: Connection,
    branch: BranchInfo,
    table: TableInfo,
    selection: RecordSelection,
    options: ReadOptions,
    isSingle = false,
  ) {
    this.branch = branch;
    this.table = table;
    this.#connection = connection;
    this.#selection = selection;
    this.#projection = compileProjection(branch, selection, ROW, options);
    const { sql } = this.#projection;
    this.#answer = !isFlat(selection) ? `${ROW}."id"` : isSingle ? committedAnswer(selection, sql, MAX_COMMITTED_BYTES) : sql;
  }

  get vectors(): VectorForm {
    return this.#connection.vectors;
  }

  /** Whether the statement of a write can answer it, since nothing is behind links. */
  get isFlat(): boolean {
    return isFlat(this.#selection);
  }

  /**
   * `statement` changes at most one row, named `t`; undefined when it changed none. `before`: the answer for a
   * row that is deleted.
   */
  async write(statement: string, parameters: Parameters, before?: JsonObject): Promise<JsonObject | undefined> {
    const { rows } = await explained(this.table, () =>
      this.#connection.query<{ record: string }>(`${statement} RETURNING ${this.#answer} AS record`, parameters.values, REPEATED),
    );
    const record = rows[0]?.record;
    if (record === undefined) return undefined;
    return this.isFlat ? this.#projection.decode(record) : (before ?? (await this.read(record)));
  }

  async read(id: string, lock: "" | "FOR UPDATE" = ""): Promise<JsonObject | undefined> {
    const { rows } = await this.#connection.query<{ record: string }>(
      `SELECT ${this.#projection.sql} AS record FROM ${relation(this.branch, this.table)} AS ${ROW} WHERE ${ROW}."id" = $1 ${lock}`,
      [id],
      REPEATED,
    );
    return rows[0] === undefined ? undefined : this.#projection.decode(rows[0].record);
  }

  /** The version of the record; undefined when there is none. */
  async version(id: string): Promise<number | undefined> {
    const { rows } = await this.#connection.query<{ version: number }>(
      `SELECT "xata.version" AS version FROM ${relation(this.branch, this.table)} WHERE "id" = $1`,
      [id],
      REPEATED,
    );
    return rows[0]?.version;
  }
}

/** The answer of one record in a statement that commits by itself; ANSWER_TOO_LARGE, and nothing is done, if it is longer. */
export const committedAnswer = (selection: RecordSelection, sql: string, mostBytes: number): string =>
  isOfFixedSize(selection) ? sql : `lodestone.bounded_answer((${sql}), ${mostBytes})`;

/**
 * One statement needs no transaction of its own. A write whose answer follows links takes two, which must see
 * one state. `work` may run twice.
 */
export async function withWriter<Result>(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  options: ReadOptions,
  work: (writer: RecordWriter) => Promise<Result>,
): Promise<Result> {
  const selection = readSelection(branch, table, options.columns);
  if (!("transaction" in session)) return work(new RecordWriter(session, branch, table, selection, options));
  if (isFlat(selection)) {
    try {
      return await work(new RecordWriter(session, branch, table, selection, options, true));
    } catch (error) {
      if ((error as { code?: unknown }).code !== ANSWER_TOO_LARGE) throw error;
    }
  }
  return session.transaction((connection) => work(new RecordWriter(connection, branch, table, selection, options)));
}

/** `INSERT INTO "s"."table" AS t ("id", "name") VALUES ($1, $2::text)` */
export function insertStatement(branch: BranchInfo, table: TableInfo, record: EncodedRecord, parameters: WriteParameters): string {
  const names = ['"id"'];
  const values = [parameters.add(record.id)];
  for (const [column, value] of record.values) {
    names.push(quotedColumn(column));
    values.push(parameters.column(column, value));
  }
  return `INSERT INTO ${relation(branch, table)} AS ${ROW} (${names.join(", ")}) VALUES (${values.join(", ")})`;
}

/** A replace sets every column: to what was given, or back to its default. */
export function replaceAssignments(table: TableInfo, record: EncodedRecord, parameters: WriteParameters): string {
  const assignments = [...table.columns.values()].map((column) => {
    const value = record.values.get(column);
    return `${quotedColumn(column)} = ${value === undefined ? "DEFAULT" : parameters.column(column, value)}`;
  });
  return assignments.length === 0 ? UNCHANGED : assignments.join(", ");
}

/** ON CONFLICT DO UPDATE: every column becomes what the INSERT gave it, or its default. */
export function excludedAssignments(table: TableInfo): string {
  const assignments = [...table.columns.values()].map((column) => `${quotedColumn(column)} = EXCLUDED.${quotedColumn(column)}`);
  return assignments.length === 0 ? UNCHANGED : assignments.join(", ");
}

/** An update without columns is an update too: the trigger makes a new version of the row. */
export const UNCHANGED = '"xata.version" = DEFAULT';

export function updateStatement(
  branch: BranchInfo,
  table: TableInfo,
  assignments: string,
  id: string,
  ifVersion: number | undefined,
  parameters: Parameters,
): string {
  const version = ifVersion === undefined ? "" : ` AND ${ROW}."xata.version" = ${parameters.add(ifVersion)}::int4`;
  return `UPDATE ${relation(branch, table)} AS ${ROW} SET ${assignments} WHERE ${ROW}."id" = ${parameters.add(id)}${version}`;
}

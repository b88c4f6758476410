/**
 * SQL over HTTP: a user's statement, vetted (the first wall) and run in the branch's jail (the second), each as if the other were not there.
 */
import { LodestoneError } from "../../errors.ts";
import { VERSION_COLUMNS } from "../../filter/system-columns.ts";
import type { BoundedResult, Engine, TransactionConnection } from "../engine/engine.ts";
import type { JsonValue, SqlBatchRequest, SqlRequest, SqlResponse, SqlStatement, SqlValue } from "../requests.ts";
import type { BranchInfo } from "../schema.ts";
import { MAX_PARAMS } from "./analyse.ts";
import { type CatalogNames, catalogNames, typeNames } from "./catalog-names.ts";
import { needsType, paramText } from "./params.ts";
import { analyseStatement, resolveStatement } from "./parser.ts";
import { readerOf } from "./result-values.ts";
import { translateError } from "./sql-errors.ts";
import { columnsKeyOf, tableColumns } from "./table-columns.ts";
import { vet } from "./vet.ts";

type SqlRow = { [column: string]: SqlValue };

const MAX_RESULT_ROWS = 1_000;
const MAX_RESULT_BYTES = 32 * 1024 * 1024;

const MAX_BATCH_STATEMENTS = 1_000;

/** @throws {LodestoneError} INVALID (the statement or its params: nothing was changed), TIMEOUT, UNAVAILABLE. */
export async function runSql(engine: Engine, branch: BranchInfo, request: SqlRequest): Promise<SqlResponse> {
  const names = await catalogNames(engine);
  const statement = await prepare(engine, branch, request, names, request.readOnly);
  const options = { readOnly: request.readOnly, abandonable: !statement.changes };
  const result = await inJail(engine, branch, options, (connection) => statement.run(connection)).catch((error: unknown) => {
    throw translateError(error);
  });
  return toResponse(engine, names, result, request.responseType);
}

/**
 * Several statements in their order, as one transaction: later ones see what earlier ones did, and one that fails undoes all. Each is vetted as if it were alone.
 *
 * @throws {LodestoneError} INVALID, its message beginning with the statement that failed: `statements[3]: …`.
 */
export async function runSqlBatch(engine: Engine, branch: BranchInfo, request: SqlBatchRequest): Promise<SqlResponse[]> {
  const { statements, responseType, readOnly } = request;
  if (statements.length > MAX_BATCH_STATEMENTS) {
    throw new LodestoneError("INVALID", `statements has ${statements.length} elements; at most ${MAX_BATCH_STATEMENTS} are allowed.`);
  }
  const names = await catalogNames(engine);
  const prepared: Prepared[] = [];
  for (const [index, statement] of statements.entries()) {
    prepared.push(await prepare(engine, branch, statement, names, readOnly).catch((error: unknown) => failAt(index, error)));
  }
  const options = { readOnly, abandonable: !prepared.some(({ changes }) => changes) };
  const results = await inJail(engine, branch, options, async (connection) => {
    const all: BoundedResult[] = [];
    for (const [index, { run }] of prepared.entries()) all.push(await run(connection).catch((error: unknown) => failAt(index, error)));
    return all;
  });
  const answers: SqlResponse[] = [];
  for (const result of results) answers.push(await toResponse(engine, names, result, responseType));
  return answers;
}

interface Prepared {
  readonly changes: boolean;
  run(connection: TransactionConnection): Promise<BoundedResult>;
}

async function prepare(
  engine: Engine,
  branch: BranchInfo,
  request: SqlStatement,
  names: CatalogNames,
  readOnly = false,
): Promise<Prepared> {
  const params = request.params ?? [];
  if (params.length > MAX_PARAMS)
    throw new LodestoneError("INVALID", `params has ${params.length} values; at most ${MAX_PARAMS} are allowed.`);
  const analysis = await analyseStatement(request.statement);
  vet(analysis, branch, params.length);
  if (analysis.hasQualifiedNames) {
    const resolve = async (isFresh: boolean): Promise<void> =>
      resolveStatement(request.statement, await tableColumns(engine, branch, analysis.tables, isFresh), columnsKeyOf(branch));
    // Another server may have added the column just now.
    await resolve(false).catch(() => resolve(true));
  }
  if (readOnly && analysis.changes) {
    throw new LodestoneError("FORBIDDEN", 'This needs a key with the scope "write": a key with "read" may only SELECT.');
  }
  return {
    changes: analysis.changes,
    run: (connection) =>
      connection.queryBounded({
        text: request.statement,
        values: (types) => paramTexts(params, types, names),
        maxRows: MAX_RESULT_ROWS,
        maxBytes: MAX_RESULT_BYTES,
        countsAll: analysis.kind !== "SELECT",
      }),
  };
}

const inJail = <Result>(
  engine: Engine,
  branch: BranchInfo,
  { readOnly = false, abandonable }: { readonly readOnly: boolean | undefined; readonly abandonable: boolean },
  work: (connection: TransactionConnection) => Promise<Result>,
): Promise<Result> =>
  engine.transaction(work, { jail: { roleName: branch.roleName, schemaName: branch.sqlSchemaName }, readOnly, abandonable });

function failAt(index: number, error: unknown): never {
  const translated = translateError(error);
  if (!(translated instanceof LodestoneError) || translated.code !== "INVALID") throw translated;
  throw new LodestoneError("INVALID", `statements[${index}]: ${translated.message}`, { cause: translated });
}

async function toResponse(
  engine: Engine,
  names: CatalogNames,
  result: BoundedResult,
  responseType: SqlRequest["responseType"],
): Promise<SqlResponse> {
  const types = await typeNames(
    engine,
    names,
    result.fields.map((field) => field.dataTypeID),
  );
  const columns = result.fields.map((field, index) => ({ name: field.name, type: types[index]! }));
  const readers = columns.map((column) => readerOf(column.type));
  const rows = result.rows.map((row) => row.map((text, index) => (text === null ? null : readers[index]!(text))));
  return {
    ...(responseType === "array" ? { rows } : { records: rows.map((row) => asRecord(columns, row)) }),
    columns,
    total: rows.length,
    rowCount: result.rowCount ?? rows.length,
    ...(result.isCut ? { warning: warningFor(rows.length) } : {}),
  };
}

const paramTexts = (params: readonly JsonValue[], types: readonly number[], names: CatalogNames): (string | null)[] =>
  params.map((value, index) => paramText(value, needsType(value) ? names.types.get(types[index] ?? 0) : undefined, index));

function warningFor(rowCount: number): string {
  return rowCount === MAX_RESULT_ROWS
    ? `Only the first ${MAX_RESULT_ROWS} rows are returned; use LIMIT and OFFSET, or a WHERE on the last id, to read on.`
    : `Only the first ${rowCount} rows are returned, because the result is longer than ${MAX_RESULT_BYTES / 2 ** 20} MiB.`;
}

/**
 * Of columns with the same name the last wins, as in other clients. No prototype: a column may be called "__proto__".
 * Metadata goes together under `xata`, as the retired service had it in objects (`columns` and lists stay flat), unless the statement has a column of that name.
 */
function asRecord(columns: readonly { name: string }[], row: readonly SqlValue[]): SqlRow {
  const record = Object.create(null) as SqlRow;
  const nests = !columns.some(({ name }) => name === "xata");
  columns.forEach(({ name }, index) => {
    const member = nests ? METADATA.get(name) : undefined;
    if (member === undefined) record[name] = row[index]!;
    else {
      record.xata ??= {};
      (record.xata as unknown as SqlRow)[member] = row[index]!;
    }
  });
  return record;
}

/** `xata.version` and its like, by name: what they are called within `xata`. */
const METADATA: ReadonlyMap<string, string> = new Map(VERSION_COLUMNS.map((name) => [name, name.slice("xata.".length)]));

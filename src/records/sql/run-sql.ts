/**
 * SQL over HTTP. A user's statement is vetted (the first wall) and run in the branch's jail (the second);
 * each wall is built as if the other did not exist.
 */

import { DatabaseError } from "pg";
import type { FaultListeners } from "../../errors/fault-state.ts";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { MAX_JSON_DEPTH } from "../catalog/json-limits.ts";
import { type BoundedResult, type Connection, type Engine, slicesOf, type TransactionConnection } from "../engine/engine.ts";
import { escapedItem } from "../postgres-text.ts";
import { checkReadOnly } from "../read-only.ts";
import type { JsonValue, SqlBatchRequest, SqlRequest, SqlResponse, SqlStatement } from "../requests.ts";
import type { BranchInfo } from "../schema.ts";
import { MAX_PARAMS } from "./analyse.ts";
import { type CatalogNames, catalogNames, typeNames } from "./catalog-names.ts";
import { analyseStatement } from "./parser.ts";
import { MAX_RESULT_BYTES, MAX_RESULT_ROWS, sqlAnswer } from "./sql-answer.ts";
import { vet } from "./vet.ts";

type OnFault = FaultListeners["onFault"];

export const MAX_BATCH_STATEMENTS = 1_000;

/**
 * @param onFault  is told when the statement broke the parser.
 * @throws {LodestoneError} INVALID (the statement or its params; nothing was changed), TIMEOUT, UNAVAILABLE.
 */
export async function runSql(engine: Engine, branch: BranchInfo, request: SqlRequest, onFault?: OnFault): Promise<SqlResponse> {
  const names = await catalogNames(engine);
  const statement = await prepare(engine, branch, request, names, request.readOnly, onFault);
  const options = { readOnly: request.readOnly, abandonable: !statement.changes };
  const answer = async (connection: Connection, result: BoundedResult) =>
    (await toResponses(connection, names, [result], request.responseType))[0]!;
  try {
    // If the statement changes something, the answer is completed before the commit: a failure to make it
    // changes nothing.
    if (statement.changes)
      return await inJail(engine, branch, options, async (connection) => answer(connection, await statement.run(connection)));
    return await answer(engine, await inJail(engine, branch, options, (connection) => statement.run(connection)));
  } catch (error) {
    throw translateError(error);
  }
}

/**
 * Runs several statements in order as one transaction. Later ones see what earlier ones did, and one that
 * fails undoes all. Each is vetted as if it were alone.
 *
 * @throws {LodestoneError} INVALID; the message begins with the statement that failed: `statements[3]: …`.
 */
export async function runSqlBatch(engine: Engine, branch: BranchInfo, request: SqlBatchRequest, onFault?: OnFault): Promise<SqlResponse[]> {
  const { statements, responseType, readOnly } = request;
  if (statements.length > MAX_BATCH_STATEMENTS) {
    throw new LodestoneError("INVALID", `statements has ${statements.length} elements; at most ${MAX_BATCH_STATEMENTS} are allowed.`);
  }
  const names = await catalogNames(engine);
  const prepared: Prepared[] = [];
  for (const [index, statement] of statements.entries()) {
    prepared.push(await prepare(engine, branch, statement, names, readOnly, onFault).catch((error: unknown) => failAt(index, error)));
  }
  const options = { readOnly, abandonable: !prepared.some(({ changes }) => changes) };
  const answersOf = (connection: Connection, results: readonly BoundedResult[]) => toResponses(connection, names, results, responseType);
  const runAll = async (connection: TransactionConnection): Promise<BoundedResult[]> => {
    const results: BoundedResult[] = [];
    for (const [index, { run }] of prepared.entries()) results.push(await run(connection).catch((error: unknown) => failAt(index, error)));
    return results;
  };
  if (options.abandonable) return answersOf(engine, await inJail(engine, branch, options, runAll));
  return inJail(engine, branch, options, async (connection) => answersOf(connection, await runAll(connection)));
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
  onFault?: OnFault,
): Promise<Prepared> {
  const caller = { caller: engine.budget?.caller ?? "", signal: engine.signal, onFault };
  const params = request.params ?? [];
  if (params.length > MAX_PARAMS)
    throw new LodestoneError("INVALID", `params has ${params.length} values; at most ${MAX_PARAMS} are allowed.`);
  const analysis = await analyseStatement(request.statement, caller);
  vet(analysis, branch, params.length, names);
  checkReadOnly({ readOnly }, analysis.changes, "SELECT");
  return {
    changes: analysis.changes,
    run: (connection) =>
      connection.queryBounded({
        text: request.statement,
        values: (types) => paramTexts(params, types, names),
        maxRows: MAX_RESULT_ROWS,
        maxBytes: MAX_RESULT_BYTES,
        countsAll: analysis.kind !== "SELECT" && analysis.kind !== "EXPLAIN",
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

export async function toResponses(
  connection: Connection,
  names: CatalogNames,
  results: readonly BoundedResult[],
  responseType: SqlRequest["responseType"],
): Promise<SqlResponse[]> {
  // The same for all: a thousand short answers are as much work as a long one.
  const slices = slicesOf(connection);
  const responses: SqlResponse[] = [];
  for (const result of results) {
    const types = await typeNames(
      connection,
      names,
      result.fields.map((field) => field.dataTypeID),
    );
    // Each record of the answer repeats the column names, which are not counted in what was read.
    if (responseType !== "array") {
      const recordBytes = result.fields.reduce((sum, { name }) => sum + name.length, 0);
      connection.budget?.charge(recordBytes * result.rows.length);
    }
    responses.push(await sqlAnswer(result, types, responseType, slices));
  }
  return responses;
}

const paramTexts = (params: readonly JsonValue[], types: readonly number[], names: CatalogNames): (string | null)[] =>
  params.map((value, index) => paramText(value, needsType(value) ? names.types.get(types[index] ?? 0) : undefined, index));

// Converts JSON values to PostgreSQL's text for the parameter types that PostgreSQL inferred. SDK clients
// send every value as a string; others send JSON as it is.

/** Only for these does the parameter's type matter; the others need not be described first. */
const needsType = (value: JsonValue): boolean => Array.isArray(value) || (typeof value === "string" && value.trimStart().startsWith("["));

/**
 * @param type  PostgreSQL's type name of the parameter (`_float4`, `jsonb`, …); undefined when it was not
 *   asked for.
 */
function paramText(value: JsonValue, type: string | undefined, index: number): string | null {
  if (value === null) return null;
  if (typeof value === "string") {
    if (value.includes("\0"))
      throw new LodestoneError("INVALID", `params[${index}] contains a NUL character, which PostgreSQL cannot hold.`);
    if (!value.isWellFormed()) throw new LodestoneError("INVALID", `params[${index}] contains a lone surrogate; it is not valid Unicode.`);
    return type?.startsWith("_") === true ? arrayFromText(value, index) : value;
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return type?.startsWith("_") === true ? arrayLiteral(value, index) : JSON.stringify(value);
  return JSON.stringify(value);
}

/**
 * For an array parameter `[1, 2]` is taken as JSON; PostgreSQL's own `{1,2}` and `[0:1]={1,2}` are passed on.
 */
function arrayFromText(text: string, index: number): string {
  if (!text.trimStart().startsWith("[")) return text;
  try {
    const parsed = JSON.parse(text) as JsonValue;
    return Array.isArray(parsed) ? arrayLiteral(parsed, index) : text;
  } catch {
    return text;
  }
}

function arrayLiteral(elements: readonly JsonValue[], index: number): string {
  const parts = elements.map((element) => {
    if (element === null) return "NULL";
    if (Array.isArray(element)) return arrayLiteral(element, index);
    const text = typeof element === "object" ? JSON.stringify(element) : String(element);
    if (text.includes("\0"))
      throw new LodestoneError("INVALID", `params[${index}] contains a NUL character, which PostgreSQL cannot hold.`);
    return typeof element === "number" || typeof element === "boolean" ? text : `"${escapedItem(text)}"`;
  });
  return `{${parts.join(",")}}`;
}

/**
 * Translates PostgreSQL's errors about a user's statement: nearly always INVALID with PostgreSQL's own words.
 */
function translateError(error: unknown): unknown {
  if (error instanceof LodestoneError || !(error instanceof DatabaseError)) return error;
  const code = error.code ?? "";
  // Class 53: out of disk, too many connections (the engine has already translated out of memory).
  if (code === "53400" || code === "54000")
    return new LodestoneError("INVALID", `The statement needs too much: ${error.message}.`, { cause: error });
  if (code.startsWith("53") || code.startsWith("58") || code === "XX001" || code === "XX002") {
    return new LodestoneError("UNAVAILABLE", "The database cannot run the statement at the moment.", { cause: error });
  }
  if (code === "23514" && /\.json$/.test(error.constraint ?? "")) {
    return new LodestoneError("INVALID", `json columns hold JSON of at most ${MAX_JSON_DEPTH} levels; a value is nested deeper.`, {
      cause: error,
    });
  }
  const detail = error.detail === undefined || error.detail === "" ? "" : ` ${error.detail}`;
  const hint = error.hint === undefined || error.hint === "" ? "" : ` Hint: ${error.hint}`;
  const position = error.position === undefined ? "" : ` (at character ${error.position})`;
  return new LodestoneError("INVALID", `${error.message}${position}.${detail}${hint}`, { cause: error });
}

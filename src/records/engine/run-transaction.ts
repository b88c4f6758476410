/** BEGIN … COMMIT around a piece of work, the same for both engines. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { crashPoint } from "../../files/fault-points.ts";
import { quoteIdentifier } from "../identifiers.ts";
import type { BoundedQuery, QueryOptions, TransactionConnection, TransactionOptions } from "./engine.ts";

/**
 * The engine's time limit for each part. A commit must not be cut short by the limit of the work: its outcome
 * would be unknown.
 */
export interface TransactionLimits {
  body<Result>(run: () => Promise<Result>): Promise<Result>;
  commit<Result>(run: () => Promise<Result>): Promise<Result>;
}

export async function runTransaction<Result>(
  session: TransactionConnection,
  work: (connection: TransactionConnection) => Promise<Result>,
  options: TransactionOptions,
  limits: TransactionLimits,
  settings: readonly string[] = [],
): Promise<Result> {
  const { budget } = options;
  let ended = false;
  const whileOpen = <Answer>(run: () => Promise<Answer>): Promise<Answer> =>
    ended
      ? Promise.reject(new Error("A query was sent on a transaction that has ended; a promise inside its work was not awaited."))
      : run();
  const connection: TransactionConnection = {
    vectors: session.vectors,
    query: <Row extends object>(text: string, values?: readonly unknown[], queryOptions?: QueryOptions) =>
      whileOpen(() => session.query<Row>(text, values, { budget, ...queryOptions })),
    queryBounded: (query: BoundedQuery) => whileOpen(() => session.queryBounded({ ...query, budget })),
    ...(session.copyOut && { copyOut: (select: string) => whileOpen(() => session.copyOut!(select)) }),
    budget,
    slices: session.slices,
  };
  let result: Result;
  try {
    result = await limits.body(async () => {
      await session.query(beginStatements(options, settings));
      return await work(connection);
    });
  } catch (error) {
    ended = true;
    // The first error is the one that matters. A session that cannot roll back has failed, and the engine knows
    // that.
    await limits.commit(() => session.query("ROLLBACK")).catch(() => {});
    throw error;
  }
  ended = true;
  crashPoint("before-commit");
  const { command } = await limits.commit(() => session.query("COMMIT"));
  // PostgreSQL answers COMMIT of a failed transaction with ROLLBACK. Work that swallowed a statement's error
  // must not believe that it was applied.
  if (command !== "COMMIT")
    throw new LodestoneError("INVALID", "The transaction was rolled back because one of its statements had failed.");
  return result;
}

/**
 * One message, because several statements without parameters may share it.
 * @param settings  `name = value`, for this transaction only.
 */
function beginStatements(options: TransactionOptions, settings: readonly string[]): string {
  const isolation = { "read committed": "READ COMMITTED", "repeatable read": "REPEATABLE READ", serializable: "SERIALIZABLE" }[
    options.isolation ?? "read committed"
  ];
  const searchPath = options.jail === undefined ? [] : [`search_path = ${quoteIdentifier(options.jail.schemaName)}`];
  return [
    `BEGIN ISOLATION LEVEL ${isolation} ${options.readOnly === true ? "READ ONLY" : "READ WRITE"}`,
    ...[...settings, ...searchPath].map((setting) => `SET LOCAL ${setting}`),
  ].join("; ");
}

/** The first wall of SQL over HTTP on its own: a statement that passes goes no further. */
import type { Engine } from "../../../src/records/engine/engine.ts";
import type { BranchInfo } from "../../../src/records/schema.ts";
import { runSql } from "../../../src/records/sql/run-sql.ts";

class Passed extends Error {}

/** "passed", or the error of the refusal. */
export async function firstWall(engine: Engine, branch: BranchInfo, statement: string): Promise<unknown> {
  const withoutJail: Engine = {
    isExclusive: engine.isExclusive,
    timelineSql: engine.timelineSql,
    callers: engine.callers,
    vectors: engine.vectors,
    shared: engine,
    query: (text, values, options) => engine.query(text, values, options),
    transaction: () => Promise.reject(new Passed()),
    listen: (channel, listener) => engine.listen(channel, listener),
    guardConnections: (guard) => engine.guardConnections(guard),
    backup: (directory) => engine.backup(directory),
    health: () => engine.health(),
    close: () => Promise.resolve(),
  };
  try {
    await runSql(withoutJail, branch, { statement, params: /\$1\b/.test(statement) ? ["1"] : [] });
  } catch (error) {
    return error instanceof Passed ? "passed" : error;
  }
  throw new Error("It came through without a database.");
}

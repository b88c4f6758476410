/** DELETE …/data/{id}. The foreign keys set links to the record to null. */
import type { JsonObject, ReadOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { Parameters, ROW } from "../sql-parts/bound-parameters.ts";
import { isFlat, readSelection } from "../sql-parts/selection.ts";
import { relation } from "../sql-parts/sql-names.ts";
import { recordNotFound } from "../values/version-check.ts";
import { explained } from "./constraint-errors.ts";
import { type Session, withWriter } from "./record-writer.ts";

/** @returns the removed record when `columns` is given. @throws {LodestoneError} NOT_FOUND. */
export async function deleteRecord(
  session: Session,
  branch: BranchInfo,
  table: TableInfo,
  id: string,
  options: ReadOptions = {},
): Promise<JsonObject | undefined> {
  if (id.includes("\u0000")) throw recordNotFound(table, id);
  const selection = readSelection(branch, table, options.columns);
  const parameters = new Parameters();
  const statement = `DELETE FROM ${relation(branch, table)} AS ${ROW} WHERE ${ROW}."id" = ${parameters.add(id)}`;
  if (options.columns === undefined) {
    const { rowCount } = await explained(table, () => session.query(statement, parameters.values));
    if (rowCount === 0) throw recordNotFound(table, id);
    return undefined;
  }
  return withWriter(session, branch, table, options, async (writer) => {
    // What is behind links is read before the record is deleted; the record is locked, so that it is the same
    // one.
    const before = isFlat(selection) ? undefined : await writer.read(id, "FOR UPDATE");
    const removed = await writer.write(statement, parameters, before);
    if (removed === undefined) throw recordNotFound(table, id);
    return removed;
  });
}

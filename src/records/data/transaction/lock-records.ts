/**
 * Before a transaction of several statements changes records, it locks those that it names: table by table in
 * the order of their names, and within a table in the order of the ids. So two transactions over the same
 * records wait for each other instead of running into a deadlock.
 */
import type { Connection } from "../../engine/engine.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { relation } from "../sql-parts/sql-names.ts";
import type { Batch } from "./transaction-batches.ts";

interface Named {
  readonly ids: Set<string>;
  removes: boolean;
}

export async function lockRecords(connection: Connection, branch: BranchInfo, batches: readonly Batch[]): Promise<void> {
  const named = recordsNamed(batches);
  let total = 0;
  for (const { ids } of named.values()) total += ids.size;
  // A single record, or a single statement (which visits records in index order), needs no locks in advance.
  if (total < 2 || batches.length < 2) return;
  for (const [table, { ids, removes }] of [...named].sort(([a], [b]) => (a.name < b.name ? -1 : 1))) {
    await connection.query(
      `SELECT FROM ${relation(branch, table)} WHERE "id" = ANY ($1::text[]) ORDER BY "id" ${removes ? "FOR UPDATE" : "FOR NO KEY UPDATE"}`,
      [[...ids]],
    );
  }
}

function recordsNamed(batches: readonly Batch[]): Map<TableInfo, Named> {
  const named = new Map<TableInfo, Named>();
  for (const { operations } of batches) {
    for (const operation of operations) {
      // Records that are only read are not locked, and records that must be new do not exist.
      if (operation.kind === "get" || (operation.kind === "insert" && operation.createOnly)) continue;
      const entry = named.get(operation.table) ?? { ids: new Set(), removes: false };
      named.set(operation.table, entry);
      entry.ids.add(operation.kind === "insert" ? operation.record.id : operation.id);
      entry.removes ||= operation.kind === "delete";
    }
  }
  return named;
}

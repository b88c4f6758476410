/**
 * Finds operations of a transaction that can run as one statement and still mean the same as one after the
 * other. One statement for 1,000 deletes takes a fraction of 1,000 statements (bench/records.mjs), so batches
 * are what makes transactions of deletes and inserts fast. Several statements need locks in advance.
 */

import type { Connection } from "../../engine/engine.ts";
import type { BranchInfo, ColumnInfo, TableInfo } from "../../schema.ts";
import { isFlat } from "../sql-parts/selection.ts";
import { relation } from "../sql-parts/statement-parts.ts";
import type { InsertOperation, Operation } from "./transaction-operations.ts";

/** One or more operations of one kind and one table, in their order. */
export interface Batch {
  readonly kind: Operation["kind"];
  readonly operations: [Operation, ...Operation[]];
}

export function batchesOf(operations: readonly Operation[]): Batch[] {
  const batches: Batch[] = [];
  let rule: BatchRule | undefined;
  for (const operation of operations) {
    const last = batches.at(-1);
    if (last !== undefined && rule?.admits(operation) === true) last.operations.push(operation);
    else {
      rule = new BatchRule(operation);
      batches.push({ kind: operation.kind, operations: [operation] });
    }
    rule.add(operation);
  }
  return batches;
}

/** What the operations of the batch so far require of the next one. */
class BatchRule {
  readonly #first: Operation;
  readonly #key: string;
  readonly #ids = new Set<string>();
  /** Ids in the batch's own table that its records link to. */
  readonly #linked = new Set<string>();
  readonly #selfLinks: readonly ColumnInfo[];

  constructor(first: Operation) {
    this.#first = first;
    this.#key = keyOf(first);
    this.#selfLinks = [...first.table.columns.values()].filter((column) => column.link?.table === first.table.name);
  }

  admits(next: Operation): boolean {
    const first = this.#first;
    if (next.kind !== first.kind || next.table !== first.table || keyOf(next) !== this.#key) return false;
    if (next.kind === "get") return true;
    // The removed record that a later delete answers must not link to one that is removed before it.
    if (next.kind === "delete") return next.columns === undefined || next.columns.length === 0;
    if (next.kind !== "insert" || !isBatchable(next)) return false;
    // The same id again: the second operation replaces the record. Or an earlier record links to this one: its
    // link had nothing to point to.
    return !this.#ids.has(next.record.id) && !this.#linked.has(next.record.id);
  }

  add(operation: Operation): void {
    if (operation.kind !== "insert") return;
    this.#ids.add(operation.record.id);
    for (const column of this.#selfLinks) {
      const target = operation.record.values.get(column);
      if (typeof target === "string") this.#linked.add(target);
    }
  }
}

/** ifVersion is about one record; what is behind links is read after each. */
export function isBatchable(operation: InsertOperation): boolean {
  return operation.ifVersion === undefined && isFlat(operation.selection);
}

/** What must be equal for two operations to be one statement. */
function keyOf(operation: Operation): string {
  const columns = JSON.stringify(operation.columns ?? null);
  if (operation.kind !== "insert") return columns;
  const defaults = [...operation.table.columns.values()].map(
    (column) => column.defaultValue === undefined || operation.record.values.has(column),
  );
  return JSON.stringify([columns, operation.createOnly, defaults]);
}

interface Named {
  readonly ids: Set<string>;
  removes: boolean;
}

/**
 * Before a transaction of several statements changes records, it locks those that it names: table by table in
 * the order of their names, and within a table in the order of the ids. So two transactions over the same
 * records wait for each other instead of running into a deadlock.
 */
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

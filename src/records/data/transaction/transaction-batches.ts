/**
 * Finds operations of a transaction that can run as one statement and still mean the same as one after the
 * other. One statement for 1,000 deletes takes a fraction of 1,000 statements (bench/records.mjs), so batches
 * are what makes transactions of deletes and inserts fast.
 */
import type { ColumnInfo } from "../../schema.ts";
import { isFlat } from "../sql-parts/selection.ts";
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

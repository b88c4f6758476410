/**
 * A minimal follower of the change feed. It keeps every record as an object, and checks the feed's promises
 * on the way.
 */
import type { ChangeFeed, FeedBatch, FeedColumn } from "../../../src/records/feed/feed-types.ts";
import type { BranchRef } from "../../../src/records/schema.ts";

export type Rows = Map<string, Map<string, Record<string, unknown>>>;

function valueAt(column: FeedColumn, row: number): unknown {
  if (column.kind !== "vector") return column.values[row];
  const at = column.rows.indexOf(row);
  return at < 0 ? null : [...column.elements.subarray(at * column.dimension, (at + 1) * column.dimension)];
}

export class Follower {
  readonly rows: Rows = new Map();
  position = "";
  incarnation = "";
  schemaVersion = 0;
  /** How often `readSince` was called, and how many of the calls were incomplete. */
  reads = 0;
  partialReads = 0;
  readonly #feed: ChangeFeed;
  readonly #ref: BranchRef;

  constructor(feed: ChangeFeed, ref: BranchRef) {
    this.#feed = feed;
    this.#ref = ref;
  }

  apply(batch: FeedBatch): void {
    const table = this.rows.get(batch.table) ?? new Map<string, Record<string, unknown>>();
    this.rows.set(batch.table, table);
    for (const id of batch.deleted) table.delete(id);
    batch.ids.forEach((id, row) => {
      const record: Record<string, unknown> = {};
      for (const [name, column] of batch.columns) record[name] = valueAt(column, row);
      table.set(id, record);
    });
  }

  async start(tables: readonly string[]): Promise<void> {
    const read = await this.#feed.readAll(
      this.#ref,
      tables.map((table) => ({ table })),
      async (batch) => this.apply(batch),
    );
    this.position = read.position;
    this.incarnation = read.incarnation;
    this.schemaVersion = read.schemaVersion;
  }

  /** Reads until a read is complete and returns nothing new. false: the position is too old. */
  async catchUp(): Promise<boolean> {
    for (let call = 0; call < 10_000; call++) {
      const changes = await this.#feed.readSince(this.#ref, this.position, this.incarnation);
      if (changes === null) return false;
      this.reads++;
      if (!changes.complete) this.partialReads++;
      for (const batch of changes.batches) this.apply(batch);
      this.position = changes.position;
      this.schemaVersion = changes.schemaVersion;
      if (changes.complete && changes.batches.length === 0) return true;
    }
    throw new Error("The feed does not come to an end.");
  }
}

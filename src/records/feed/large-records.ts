/**
 * Records that are too large to be read with others: first their sizes are read, then as much of them as can be
 * held. SQL can store what no request could send: a text of 600 MB, or JSON that is small in storage and large
 * when printed. Such a value is omitted, and the feed continues.
 */
import type { Connection } from "../engine/engine.ts";
import { qualified } from "../identifiers.ts";
import type { TableInfo } from "../schema.ts";

/** Of one value, in bytes of its text; more than a request can send. */
const MAX_VALUE_BYTES = 32 * 2 ** 20;
/** Of the values of one record together. */
const MAX_RECORD_BYTES = 48 * 2 ** 20;

export interface LargeColumn {
  /** Its value as SQL that gives text. */
  readonly value: string;
  /**
   * The size of a text is known from storage. Anything else has to be printed to know its size, and that may
   * fail.
   */
  readonly isText: boolean;
}

export interface LargeRecord {
  /** In the order of the columns; null for nulls and for omitted values. */
  readonly texts: readonly (string | null)[];
  /** Indexes of columns. */
  readonly omitted: ReadonlySet<number>;
  readonly bytes: number;
}

/** Inside a transaction, which continues whatever the sizes are. */
export async function readLargeRecord(
  connection: Connection,
  schemaName: string,
  table: TableInfo,
  columns: readonly LargeColumn[],
  id: string,
): Promise<LargeRecord> {
  const from = `FROM ${qualified(schemaName, table.physicalName)} WHERE "id" = $1`;
  const sizes = await readSizes(connection, columns, from, id);
  const taken: number[] = [];
  const omitted = new Set<number>();
  let bytes = 0;
  for (const [index, size] of [...sizes.entries()].sort(([, a], [, b]) => a - b)) {
    if (size > MAX_VALUE_BYTES || bytes + size > MAX_RECORD_BYTES) omitted.add(index);
    else {
      taken.push(index);
      bytes += size;
    }
  }
  const texts: (string | null)[] = columns.map(() => null);
  if (taken.length > 0) {
    const { rows } = await connection.query<(string | null)[]>(
      `SELECT ${taken.map((index) => columns[index]!.value).join(", ")} ${from}`,
      [id],
      {
        raw: true,
        rowMode: "array",
      },
    );
    taken.forEach((index, at) => {
      texts[index] = rows[0]?.[at] ?? null;
    });
  }
  return { texts, omitted, bytes };
}

/** In bytes of text; 0 for null, infinite for what cannot be printed. */
async function readSizes(connection: Connection, columns: readonly LargeColumn[], from: string, id: string): Promise<number[]> {
  const sizesOf = async (indexes: readonly number[]): Promise<number[]> => {
    if (indexes.length === 0) return [];
    const list = indexes.map((index) => `coalesce(octet_length(${columns[index]!.value}), 0)`).join(", ");
    const { rows } = await connection.query<number[]>(`SELECT ${list} ${from}`, [id], { rowMode: "array" });
    return rows[0] ?? indexes.map(() => 0);
  };
  const all = columns.map((_, index) => index);
  const sizes = columns.map(() => 0);
  const texts = all.filter((index) => columns[index]!.isText);
  (await sizesOf(texts)).forEach((size, at) => {
    sizes[texts[at]!] = size;
  });
  for (const index of all) {
    if (columns[index]!.isText) continue;
    await connection.query("SAVEPOINT size");
    try {
      sizes[index] = (await sizesOf([index]))[0]!;
    } catch {
      // Beyond what PostgreSQL can print, or has memory for. A session that is gone fails here again.
      await connection.query("ROLLBACK TO SAVEPOINT size");
      sizes[index] = Number.POSITIVE_INFINITY;
    }
    await connection.query("RELEASE SAVEPOINT size");
  }
  return sizes;
}

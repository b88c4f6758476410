/**
 * A page of a table in the order of the ids, bounded in records and in bytes, as SQL. So a table of large
 * records is read a few at a time, one of small records thousands at a time, and each page is one statement.
 */
import { COLUMN_TRAITS } from "./column-traits.ts";
import { qualified, quoteIdentifier } from "./identifiers.ts";
import type { ColumnInfo, TableInfo } from "./schema.ts";

/**
 * The bytes up to and including a row, which the page gives beside the table's columns. Users' columns cannot
 * have this name.
 */
export const PAGE_BYTES = '"xata.pageBytes"';
/** The bytes of the row alone. */
export const RECORD_BYTES = '"xata.bytes"';

/** What a row costs in any case, with its columns whose size has a bound of its own. */
function fixedBytes(columns: readonly ColumnInfo[]): number {
  return columns.reduce((sum, column) => sum + (column.type === "vector" ? 4 * column.vector!.dimension : 8), 64);
}

export interface PageBounds {
  readonly maxRecords: number;
  readonly maxBytes: number;
}

/** Whether there may be more after a page that ended with `rows` rows and `bytes` by PAGE_BYTES of the last. */
export function mayHaveMore(bounds: PageBounds, rows: number, bytes: number): boolean {
  return rows >= bounds.maxRecords || bytes >= bounds.maxBytes;
}

/**
 * A SELECT of the table's columns and PAGE_BYTES, to stand in FROM; `where` holds no more than conditions on
 * "id". Rows come until the bytes of `columns` reach the bound; a record that is larger than that alone still
 * comes, as the first.
 */
export function boundedPage(
  schemaName: string,
  table: TableInfo,
  columns: readonly ColumnInfo[],
  where: string,
  bounds: PageBounds,
): string {
  // Not integers: the sizes of two values together may be beyond what they hold.
  const sizes = [`${fixedBytes(columns)}::float8`, 'octet_length("id")'];
  for (const column of columns) {
    const size = COLUMN_TRAITS[column.type].storedBytes?.(quoteIdentifier(column.physicalName));
    if (size !== undefined) sizes.push(size);
  }
  return `SELECT * FROM (
    SELECT *, sum(${RECORD_BYTES}) OVER (ORDER BY "id" ROWS UNBOUNDED PRECEDING) AS ${PAGE_BYTES} FROM (
      SELECT *, ${sizes.join(" + ")} AS ${RECORD_BYTES} FROM (
        SELECT * FROM ${qualified(schemaName, table.physicalName)} ${where} ORDER BY "id" LIMIT ${bounds.maxRecords}
      ) AS page
    ) AS sized
  ) AS bounded WHERE ${PAGE_BYTES} - ${RECORD_BYTES} < ${bounds.maxBytes}`;
}

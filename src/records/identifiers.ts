/** Names on their way into SQL text. Every identifier that the record store splices goes through here; values are always bound. */
import pg from "pg";
import type { BranchInfo, ColumnInfo, TableInfo } from "./schema.ts";

/** PostgreSQL's own limit, NAMEDATALEN - 1. Names are ASCII, so bytes are characters. */
export const MAX_IDENTIFIER_BYTES = 63;

export const quoteIdentifier = (name: string): string => pg.escapeIdentifier(name);

/** The name by which PostgreSQL knows `name`: it cuts identifiers, and so do we, so that SQL over HTTP with the long name finds the same table. */
export const physicalName = (name: string): string => name.slice(0, MAX_IDENTIFIER_BYTES);

/** `"db:branch"."table"`. The record store never relies on search_path. */
export const qualifiedTable = (branch: BranchInfo, table: TableInfo): string =>
  `${quoteIdentifier(branch.schemaName)}.${quoteIdentifier(table.physicalName)}`;

export const quotedColumn = (column: ColumnInfo): string => quoteIdentifier(column.physicalName);

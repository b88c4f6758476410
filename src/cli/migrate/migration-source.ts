/**
 * What a migration reads: the tables with their columns as they will be here, the records of each, and what is
 * left out and why.
 */
import type { ColumnSchema } from "../../records/schema.ts";
import type { Source } from "../import/source.ts";
import type { Encoding } from "../import/text-encoding.ts";

export interface MigrationTable {
  readonly name: string;
  readonly columns: readonly ColumnSchema[];
  /**
   * The file with its records, for messages and for noticing that it has changed; undefined: the schema has the
   * table, but no file has its records.
   */
  readonly file: string | undefined;
  /** Columns of the file that are not migrated. */
  readonly skipColumns: readonly string[];
  readonly open: () => Promise<Source>;
}

export interface MigrationSource {
  readonly tables: readonly MigrationTable[];
  /** Sentences. */
  readonly leftOut: readonly string[];
  /** As it was asked for. */
  readonly encoding: Encoding | undefined;
  /** Whether the source calls its metadata xata_id and so on. */
  readonly isUnderscored: boolean;
}

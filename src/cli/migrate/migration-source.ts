/**
 * What a migration takes from: tables with their columns as they will be here, the records of each, and what is
 * left out and why.
 */
import type { ColumnSchema } from "../../records/schema.ts";
import type { Source } from "../import/source.ts";

export interface MigrationTable {
  readonly name: string;
  readonly columns: readonly ColumnSchema[];
  /**
   * The file that its records are in, for messages and for telling that it has changed; undefined: the schema
   * has the table, no file its records.
   */
  readonly file: string | undefined;
  /** Columns of the file that do not come along. */
  readonly skipColumns: readonly string[];
  readonly open: () => Promise<Source>;
}

export interface MigrationSource {
  readonly tables: readonly MigrationTable[];
  /** Sentences. */
  readonly leftOut: readonly string[];
  /** Whether its code calls the metadata xata_id and so on. */
  readonly isUnderscored: boolean;
}

/**
 * What each column type is in PostgreSQL. The one table of types: definitions, casts, sizes, checks and the
 * HTTP schema read it.
 */
import type { ColumnType } from "./schema.ts";

export interface ColumnTraits {
  /**
   * In CREATE TABLE. Text is ordered by code point everywhere: the same in JavaScript, in the embedded engine
   * and on any server.
   */
  readonly definition: string;
  /** What a bound value is cast to. */
  readonly parameterType: string;
  /** `pg_type.typname` of the column as the database has it. */
  readonly typeName: string;
  /**
   * Whether a unique index over it is possible: a text array, a json document and a vector can be larger than
   * an index entry.
   */
  readonly canBeUnique: boolean;
  /**
   * The bytes that a value takes, as SQL over a quoted column. They are read from where the value is stored,
   * not from the value (`pg_column_size` is the size after compression). None where the size has a bound of its
   * own.
   */
  readonly storedBytes?: (column: string) => string;
}

const TEXT: ColumnTraits = {
  definition: 'text COLLATE "C"',
  parameterType: "text",
  typeName: "text",
  canBeUnique: true,
  storedBytes: (column) => `coalesce(octet_length(${column}), 0)`,
};

const COMPRESSED = (column: string): string => `coalesce(pg_column_size(${column}), 0)`;

/** A type of fixed size, whose name is the same everywhere. */
const scalar = (name: string): ColumnTraits => ({ definition: name, parameterType: name, typeName: name, canBeUnique: true });

export const COLUMN_TRAITS: Readonly<Record<ColumnType, ColumnTraits>> = {
  string: TEXT,
  text: TEXT,
  email: TEXT,
  int: scalar("int8"),
  float: scalar("float8"),
  bool: scalar("bool"),
  datetime: scalar("timestamptz"),
  multiple: {
    definition: 'text[] COLLATE "C"',
    parameterType: "text[]",
    typeName: "_text",
    canBeUnique: false,
    storedBytes: COMPRESSED,
  },
  json: { definition: "jsonb", parameterType: "jsonb", typeName: "jsonb", canBeUnique: false, storedBytes: COMPRESSED },
  link: TEXT,
  vector: { definition: "real[]", parameterType: "real[]", typeName: "_float4", canBeUnique: false },
};

/** Types by what their values can do, in the order in which messages name them. */
export const TEXT_TYPES: readonly ColumnType[] = ["string", "text", "email"];
export const NUMBER_TYPES: readonly ColumnType[] = ["int", "float"];
/** One plain value, which can be compared for equality. */
export const PLAIN_TYPES: readonly ColumnType[] = [...TEXT_TYPES, ...NUMBER_TYPES, "bool", "link"];
export const ORDERED_TYPES: readonly ColumnType[] = [...TEXT_TYPES, ...NUMBER_TYPES, "datetime", "multiple"];

export const COLUMN_TYPES = Object.keys(COLUMN_TRAITS) as readonly ColumnType[];

/**
 * Reads records as columns of a FeedBatch, in statements of bounded size. Vectors travel as the bytes of PostgreSQL's own binary form, since its text form
 * costs ten times as much on both sides.
 */
import type { Connection } from "../engine/engine.ts";
import type { FeedBatch, FeedColumn } from "../feed.ts";
import { qualified, quoteIdentifier } from "../identifiers.ts";
import type { ColumnType, TableInfo } from "../schema.ts";

/** Of values in PostgreSQL, per statement; so that neither session nor event loop is held for long. */
const BATCH_BYTES = 1_500_000;
const MAX_BATCH_RECORDS = 2_000;
const FIXED_BYTES = 64;

type Kind = FeedColumn["kind"];

const KINDS: Readonly<Record<ColumnType, Kind>> = {
  string: "text",
  text: "text",
  email: "text",
  link: "text",
  int: "int",
  float: "float",
  bool: "bool",
  datetime: "datetime",
  multiple: "multiple",
  json: "json",
  vector: "vector",
};

interface ReadColumn {
  readonly name: string;
  readonly kind: Kind;
  readonly dimension: number;
  /** Its value as SQL that gives text. */
  readonly value: string;
  /** Its size in bytes as SQL, where that is not bounded; neither form reads the value itself. */
  readonly size: string | undefined;
}

const SYSTEM = [
  ["xata.version", "int"],
  ["xata.createdAt", "datetime"],
  ["xata.updatedAt", "datetime"],
] as const;

export class RecordReader {
  readonly #schemaName: string;
  readonly table: TableInfo;
  readonly #columns: readonly ReadColumn[];
  readonly #limit: number;

  /** `names`: the columns to read, system columns among them; undefined for all. Names that the table does not have are an error of the caller's. */
  constructor(schemaName: string, table: TableInfo, names?: readonly string[]) {
    this.#schemaName = schemaName;
    this.table = table;
    const wanted = names === undefined ? undefined : new Set(names);
    const all = [
      ...SYSTEM.map(([name, kind]) => readColumn(name, name, kind, 0)),
      ...[...table.columns.values()].map((c) => readColumn(c.name, c.physicalName, KINDS[c.type], c.vector?.dimension ?? 0)),
    ];
    this.#columns = wanted === undefined ? all : all.filter((column) => wanted.has(column.name));
    const bytes = this.#columns.reduce((sum, column) => sum + 4 * column.dimension, FIXED_BYTES);
    this.#limit = Math.max(1, Math.min(MAX_BATCH_RECORDS, Math.floor(BATCH_BYTES / bytes)));
  }

  /**
   * The next records in the order of their ids, after `after`, of `ids` only if given; `last` is undefined when there are no more. `bytes` is about what
   * the values take.
   */
  async read(
    connection: Connection,
    after: string | undefined,
    ids?: readonly string[],
  ): Promise<{ batch: FeedBatch; last: string | undefined; bytes: number }> {
    const conditions: string[] = [];
    const values: unknown[] = [];
    if (after !== undefined) conditions.push(`"id" > $${values.push(after)}`);
    if (ids !== undefined) conditions.push(`"id" = ANY ($${values.push(ids)}::text[])`);
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const page = `SELECT * FROM ${qualified(this.#schemaName, this.table.physicalName)} ${where} ORDER BY "id" LIMIT ${this.#limit}`;
    const sizes = this.#columns.flatMap((column) => (column.size === undefined ? [] : [column.size]));
    const select = ['"id"', ...this.#columns.map((column) => column.value)].join(", ");
    // A record that alone passes the bound still comes, as the first of its batch.
    const text =
      sizes.length === 0
        ? `SELECT ${select}, '0' FROM (${page}) AS page ORDER BY "id"`
        : `SELECT ${select}, "xata.read"::text FROM (
             SELECT *, sum("xata.bytes") OVER (ORDER BY "id" ROWS UNBOUNDED PRECEDING) AS "xata.read" FROM (
               SELECT *, ${sizes.join(" + ")} AS "xata.bytes" FROM (${page}) AS page
             ) AS sized
           ) AS bounded WHERE "xata.read" - "xata.bytes" < ${BATCH_BYTES} ORDER BY "id"`;
    const { rows } = await connection.query<(string | null)[]>(text, values, { raw: true, rowMode: "array" });
    const last = rows.at(-1);
    const unboundedBytes = Number(last?.at(-1) ?? 0);
    const cut = rows.length === this.#limit || unboundedBytes >= BATCH_BYTES;
    return {
      batch: toBatch(this.table.name, this.#columns, rows),
      last: cut ? last![0]! : undefined,
      bytes: unboundedBytes + rows.length * this.#columns.reduce((sum, column) => sum + 4 * column.dimension, FIXED_BYTES),
    };
  }
}

function readColumn(name: string, physicalName: string, kind: Kind, dimension: number): ReadColumn {
  const quoted = quoteIdentifier(physicalName);
  const column = { name, kind, dimension };
  switch (kind) {
    case "text":
      return { ...column, value: quoted, size: `coalesce(octet_length(${quoted}), 0)` };
    case "json":
      return { ...column, value: `${quoted}::text`, size: `coalesce(pg_column_size(${quoted}), 0)` };
    case "multiple":
      return { ...column, value: `array_to_json(${quoted})::text`, size: `coalesce(pg_column_size(${quoted}), 0)` };
    case "datetime":
      // The infinities are what PostgreSQL itself uses for them.
      return {
        ...column,
        value: `CASE WHEN isfinite(${quoted}) THEN (extract(epoch FROM ${quoted}) * 1000000)::int8
          WHEN ${quoted} > now() THEN 9223372036854775807 WHEN ${quoted} < now() THEN (-9223372036854775808) END`,
        size: undefined,
      };
    case "vector":
      return { ...column, value: `array_send(${quoted})`, size: undefined };
    default:
      return { ...column, value: quoted, size: undefined };
  }
}

function toBatch(table: string, columns: readonly ReadColumn[], rows: readonly (readonly (string | null)[])[]): FeedBatch {
  const read = new Map<string, FeedColumn>();
  columns.forEach((column, index) => {
    const texts = rows.map((row) => row[index + 1]!);
    read.set(column.name, toColumn(column, texts));
  });
  return { table, ids: rows.map((row) => row[0]!), columns: read, deleted: [] };
}

function toColumn(column: ReadColumn, texts: readonly (string | null)[]): FeedColumn {
  const mapped = <Value>(parse: (text: string) => Value): (Value | null)[] => texts.map((text) => (text === null ? null : parse(text)));
  switch (column.kind) {
    case "text":
    case "json":
      return { kind: column.kind, values: [...texts] };
    case "int":
    case "datetime":
      return { kind: column.kind, values: mapped(BigInt) };
    case "float":
      return { kind: "float", values: mapped(Number) };
    case "bool":
      return { kind: "bool", values: mapped((text) => text === "t") };
    case "multiple":
      // SQL can nest arrays; to the API `multiple` is one flat list.
      return { kind: "multiple", values: mapped((text) => (JSON.parse(text) as (string | null)[]).flat(6)) };
    case "vector":
      return toVectors(column.dimension, texts);
  }
}

/** `\x` and 2 hexadecimal digits a byte: a header of 20 bytes, then 4 bytes of length and 4 of big-endian float32 for each element. */
const HEADER_BYTES = 20;

function toVectors(dimension: number, texts: readonly (string | null)[]): FeedColumn {
  const present = texts.flatMap((text, row) => (text === null ? [] : [row]));
  const elements = new Float32Array(present.length * dimension);
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + 8 * dimension);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  for (const row of present) {
    const written = bytes.write(texts[row]!.slice(2), "hex");
    if (written !== bytes.length)
      throw new Error(`A vector has ${written} bytes where its column's dimension ${dimension} takes ${bytes.length}.`);
    for (let offset = HEADER_BYTES + 4; offset < written; offset += 8) elements[at++] = view.getFloat32(offset);
  }
  return { kind: "vector", dimension, rows: Uint32Array.from(present), elements };
}

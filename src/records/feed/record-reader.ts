/**
 * Reads records as columns of a FeedBatch, in statements of bounded size. Large records are read one by one
 * (large-records.ts).
 */
import { VALUE_KINDS } from "../../filter/column-path.ts";
import { SYSTEM_COLUMN_TYPES, VERSION_COLUMNS } from "../../filter/system-columns.ts";
import { boundedPage, mayHaveMore, PAGE_BYTES, RECORD_BYTES } from "../bounded-page.ts";
import type { Connection, Engine } from "../engine/engine.ts";
import { quoteIdentifier } from "../identifiers.ts";
import type { ColumnInfo, TableInfo } from "../schema.ts";
import { decodeVectors, vectorTextSql } from "../vector-text.ts";
import type { FeedBatch, FeedColumn } from "./feed-types.ts";
import { readLargeRecord } from "./large-records.ts";
import { type Part, partCondition } from "./part.ts";

/** Bounded, so that neither session nor event loop is held for long. */
export const BATCH = { maxRecords: 2_000, maxBytes: 1_000_000 };
/** For records that are small in storage and large when printed: each is looked at by itself. */
const CAREFUL_BATCH = { maxRecords: 64, maxBytes: 1_000_000 };
/** By stored size: from here on a record is read by itself. */
const LARGE_RECORD_BYTES = 8 * 2 ** 20;

type Kind = FeedColumn["kind"];

interface ReadColumn {
  readonly name: string;
  readonly kind: Kind;
  readonly dimension: number;
  /** Of the engine that it is read from. */
  readonly engine: Engine["kind"];
  /** Its value as SQL that gives text. */
  readonly value: string;
  /** Its values can have any size. */
  readonly isUnbounded: boolean;
}

export interface RecordPiece {
  readonly batch: FeedBatch;
  /** The id to read on from; undefined when there are no more. */
  readonly last: string | undefined;
  /** About what the values take. */
  readonly bytes: number;
}

export class RecordReader {
  readonly #schemaName: string;
  readonly table: TableInfo;
  /** Only its records are read; undefined for all. */
  readonly part: Part | undefined;
  readonly #columns: readonly ReadColumn[];
  /** Those of them that are the user's. */
  readonly #sized: readonly ColumnInfo[];

  /**
   * `names`: the columns to read, system columns among them; undefined for all. Names that the table does not
   * have are an error of the caller's.
   */
  constructor(
    engine: Engine["kind"],
    schemaName: string,
    table: TableInfo,
    { names, part }: { names?: readonly string[] | undefined; part?: Part | undefined } = {},
  ) {
    this.#schemaName = schemaName;
    this.table = table;
    this.part = part;
    const wanted = (name: string): boolean => names === undefined || names.includes(name);
    this.#sized = [...table.columns.values()].filter((column) => wanted(column.name));
    this.#columns = [
      ...VERSION_COLUMNS.filter(wanted).map((name) => readColumn(engine, name, name, VALUE_KINDS[SYSTEM_COLUMN_TYPES[name]], 0)),
      ...this.#sized.map((c) => readColumn(engine, c.name, c.physicalName, VALUE_KINDS[c.type], c.vector?.dimension ?? 0)),
    ];
  }

  /**
   * The next records in the order of their ids, after `after`, of `ids` only if given. Inside a transaction.
   *
   * @param isCareful  takes no record for small: for when it was too much (TOO_LARGE, or the database's own limits).
   */
  async read(
    connection: Connection,
    after: string | undefined,
    { ids, isCareful = false }: { ids?: readonly string[] | undefined; isCareful?: boolean | undefined } = {},
  ): Promise<RecordPiece> {
    const bounds = isCareful ? CAREFUL_BATCH : BATCH;
    const conditions: string[] = [];
    const values: unknown[] = [];
    if (after !== undefined) conditions.push(`"id" > $${values.push(after)}`);
    if (this.part !== undefined) conditions.push(partCondition(this.part));
    if (ids !== undefined) conditions.push(`"id" = ANY ($${values.push(ids)}::text[])`);
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const isLarge = isCareful ? "true" : `${RECORD_BYTES} > ${LARGE_RECORD_BYTES}`;
    const columns = this.#columns.map(({ value, isUnbounded }) => (isUnbounded ? `CASE WHEN NOT ${isLarge} THEN ${value} END` : value));
    const select = ['"id"', ...columns, isLarge, PAGE_BYTES].join(", ");
    const { rows } = await connection.query<(string | null)[]>(
      `SELECT ${select} FROM (${boundedPage(this.#schemaName, this.table, this.#sized, where, bounds)}) AS page ORDER BY "id"`,
      values,
      { raw: true, rowMode: "array" },
    );
    const last = rows.at(-1);
    let bytes = Number(last?.at(-1) ?? 0);
    const hasMore = mayHaveMore(bounds, rows.length, bytes);
    const omitted = new Map<number, Set<number>>();
    for (const [index, row] of rows.entries()) {
      if (row.at(-2) !== "t") continue;
      bytes += await this.#complete(connection, row, index, omitted);
      // Enough is held: the rest is read from here on.
      if (bytes > LARGE_RECORD_BYTES && index < rows.length - 1) {
        const read = rows.slice(0, index + 1);
        return { batch: toBatch(this.table.name, this.#columns, read, omitted), last: row[0]!, bytes };
      }
    }
    return { batch: toBatch(this.table.name, this.#columns, rows, omitted), last: hasMore ? last![0]! : undefined, bytes };
  }

  /**
   * Puts those unbounded values into the row that can be held.
   * @returns their bytes.
   */
  async #complete(connection: Connection, row: (string | null)[], index: number, omitted: Map<number, Set<number>>): Promise<number> {
    const unbounded = this.#columns.flatMap((column, at) =>
      column.isUnbounded ? [{ ...column, at, isText: column.kind === "text" }] : [],
    );
    if (unbounded.length === 0) return 0;
    const large = await readLargeRecord(connection, this.#schemaName, this.table, unbounded, row[0]!);
    unbounded.forEach(({ at }, n) => {
      row[at + 1] = large.texts[n]!;
      if (!large.omitted.has(n)) return;
      const rows = omitted.get(at) ?? new Set();
      omitted.set(at, rows.add(index));
    });
    return large.bytes;
  }
}

function readColumn(engine: Engine["kind"], name: string, physicalName: string, kind: Kind, dimension: number): ReadColumn {
  const quoted = quoteIdentifier(physicalName);
  const column = { name, kind, dimension, engine, isUnbounded: kind === "text" || kind === "json" || kind === "multiple" };
  switch (kind) {
    case "text":
      return { ...column, value: quoted };
    case "json":
      return { ...column, value: `${quoted}::text` };
    case "multiple":
      return { ...column, value: `array_to_json(${quoted})::text` };
    case "datetime":
      // As PostgreSQL stores it. Arithmetic on numbers of any size, which `extract` gives, takes four times as long.
      return { ...column, value: `encode(timestamptz_send(${quoted}), 'hex')` };
    case "vector":
      return { ...column, value: vectorTextSql(engine, quoted) };
    default:
      return { ...column, value: quoted };
  }
}

/** @param omitted  by the index of the column, the rows whose value is left out. */
function toBatch(
  table: string,
  columns: readonly ReadColumn[],
  rows: readonly (readonly (string | null)[])[],
  omitted: ReadonlyMap<number, ReadonlySet<number>>,
): FeedBatch {
  const read = new Map<string, FeedColumn>();
  columns.forEach((column, index) => {
    const texts = rows.map((row) => row[index + 1]!);
    const left = omitted.get(index);
    read.set(column.name, left === undefined ? toColumn(column, texts) : ({ ...toColumn(column, texts), omitted: left } as FeedColumn));
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
      return { kind: "int", values: mapped(BigInt) };
    case "datetime":
      return { kind: "datetime", values: mapped(toMicroseconds) };
    case "float":
      return { kind: "float", values: mapped(Number) };
    case "bool":
      return { kind: "bool", values: mapped((text) => text === "t") };
    case "multiple":
      // SQL can nest arrays; to the API `multiple` is one flat list.
      return { kind: "multiple", values: mapped((text) => (JSON.parse(text) as (string | null)[]).flat(6)) };
    case "vector":
      return vectorsOf(column.engine, column.dimension, texts);
  }
}

/** PostgreSQL counts from 2000-01-01, we count from 1970. */
const EPOCH_MICROSECONDS = 946_684_800_000_000n;
/** The infinities are what PostgreSQL itself uses for them. */
const LATEST = 2n ** 63n - 1n;
const EARLIEST = -(2n ** 63n);

/** Of eight bytes in hexadecimal. */
function toMicroseconds(hex: string): bigint {
  const stored = BigInt.asIntN(64, BigInt(`0x${hex}`));
  return stored === LATEST || stored === EARLIEST ? stored : stored + EPOCH_MICROSECONDS;
}

/** @param texts  of one column; null where a record has no vector. */
function vectorsOf(kind: Engine["kind"], dimension: number, texts: readonly (string | null)[]): FeedColumn {
  const rows = texts.flatMap((text, row) => (text === null ? [] : [row]));
  const present = texts.filter((text) => text !== null);
  return { kind: "vector", dimension, rows: Uint32Array.from(rows), elements: decodeVectors(kind, dimension, present) };
}

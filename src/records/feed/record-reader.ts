/**
 * Reads records as columns of a FeedBatch, in statements of bounded size: as text, or whole tables of a server
 * from a binary COPY (engine/copy-out.ts). Large records are read one by one (large-records.ts).
 */
import { VALUE_KINDS } from "../../filter/column-path.ts";
import { SYSTEM_COLUMN_TYPES, VERSION_COLUMNS } from "../../filter/system-columns.ts";
import { readProtocolVector, type VectorForm } from "../binary-arrays.ts";
import { boundedPage, mayHaveMore, PAGE_BYTES, type PageBounds, RECORD_BYTES } from "../bounded-page.ts";
import { CopiedRows } from "../engine/copy-out.ts";
import type { Connection, TransactionConnection } from "../engine/engine.ts";
import { quoteIdentifier, quoteLiteral } from "../identifiers.ts";
import type { ColumnInfo, TableInfo } from "../schema.ts";
import type { FeedBatch, FeedColumn, Part } from "./feed-types.ts";
import { readLargeRecord } from "./large-records.ts";
import { partCondition } from "./part.ts";

/** Bounded, so that neither session nor event loop is held for long. */
export const BATCH = { maxRecords: 2_000, maxBytes: 1_000_000 };
/** For records that are small in storage and large when printed: each is looked at by itself. */
const CAREFUL_BATCH = { maxRecords: 64, maxBytes: 1_000_000 };
/** By stored size: from here on a record is read by itself. */
const LARGE_RECORD_BYTES = 8 * 2 ** 20;
/** Longer records are not copied: their texts have to be decoded in slices. */
const COPIED_RECORD_BYTES = 2 ** 20;

type Kind = FeedColumn["kind"];

interface ReadColumn {
  readonly name: string;
  readonly kind: Kind;
  readonly dimension: number;
  /** Of the engine that it is read from. */
  readonly vectors: VectorForm;
  /** Its value as SQL that gives text. */
  readonly value: string;
  /** Its value as SQL for a binary COPY. */
  readonly copied: string;
  /** Its values can have any size. */
  readonly isUnbounded: boolean;
}

export interface ReadOptions {
  readonly names?: readonly string[] | undefined;
  readonly part?: Part | undefined;
  readonly vectorsPresentOnly?: boolean | undefined;
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
   * have are an error of the caller's. `vectorsPresentOnly`: of vectors it is read whether they are there; they come
   * with dimension 0.
   */
  constructor(vectors: VectorForm, schemaName: string, table: TableInfo, { names, part, vectorsPresentOnly = false }: ReadOptions = {}) {
    this.#schemaName = schemaName;
    this.table = table;
    this.part = part;
    const wanted = (name: string): boolean => names === undefined || names.includes(name);
    this.#sized = [...table.columns.values()].filter((column) => wanted(column.name));
    this.#columns = [
      ...VERSION_COLUMNS.filter(wanted).map((name) => readColumn(vectors, name, name, VALUE_KINDS[SYSTEM_COLUMN_TYPES[name]], 0)),
      ...this.#sized.map((c) =>
        readColumn(vectors, c.name, c.physicalName, VALUE_KINDS[c.type], vectorsPresentOnly ? 0 : (c.vector?.dimension ?? 0)),
      ),
    ];
  }

  /**
   * The next records in the order of their ids, after `after`, of `ids` only if given. Inside a transaction. Whole
   * tables of a server are copied.
   *
   * @param isCareful  takes no record for small: for when it was too much (TOO_LARGE, or the database's own limits).
   */
  async read(
    connection: TransactionConnection,
    after: string | undefined,
    { ids, isCareful = false }: { ids?: readonly string[] | undefined; isCareful?: boolean | undefined } = {},
  ): Promise<RecordPiece> {
    const copied = ids === undefined && !isCareful ? await this.#copy(connection, after) : undefined;
    if (copied !== undefined) return copied;
    const bounds = isCareful ? CAREFUL_BATCH : BATCH;
    const conditions: string[] = [];
    const values: unknown[] = [];
    if (after !== undefined) conditions.push(`"id" > $${values.push(after)}`);
    if (this.part !== undefined) conditions.push(partCondition(this.part));
    if (ids !== undefined) conditions.push(`"id" = ANY ($${values.push(ids)}::text[])`);
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const isLarge = isCareful ? "true" : `${RECORD_BYTES} > ${LARGE_RECORD_BYTES}`;
    const select = this.#select(where, bounds, isLarge, ({ value }) => value);
    const { rows } = await connection.query<(string | null)[]>(select, values, { raw: true, rowMode: "array" });
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

  /** `id`, the columns, whether the record is large and has no unbounded values here, and PAGE_BYTES. */
  #select(where: string, bounds: PageBounds, isLarge: string, valueSql: (column: ReadColumn) => string): string {
    const values = this.#columns.map((column) =>
      column.isUnbounded ? `CASE WHEN NOT ${isLarge} THEN ${valueSql(column)} END` : valueSql(column),
    );
    const page = boundedPage(this.#schemaName, this.table, this.#sized, where, bounds);
    return `SELECT ${['"id"', ...values, isLarge, PAGE_BYTES].join(", ")} FROM (${page}) AS page ORDER BY "id"`;
  }

  /** undefined: the engine copies nothing, or a long record is among them. */
  async #copy(connection: TransactionConnection, after: string | undefined): Promise<RecordPiece | undefined> {
    if (connection.copyOut === undefined) return undefined;
    const conditions = [
      ...(after === undefined ? [] : [`"id" > ${quoteLiteral(after)}`]),
      ...(this.part === undefined ? [] : [partCondition(this.part)]),
    ];
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const select = this.#select(where, BATCH, `${RECORD_BYTES} > ${COPIED_RECORD_BYTES}`, ({ copied }) => copied);
    const rows = new CopiedRows(await connection.copyOut(select), this.#columns.length + 3);
    const [isLarge, pageBytes] = [rows.column(this.#columns.length + 1), rows.column(this.#columns.length + 2)];
    if (isLarge.some((place) => rows.bytes[place] === 1)) return undefined;
    const ids = copiedTexts(rows, 0);
    const columns = this.#columns.map(({ name, kind, dimension }, n) => [name, toCopiedColumn(rows, n + 1, kind, dimension)] as const);
    const bytes = rows.count === 0 ? 0 : rows.view.getFloat64(pageBytes.at(-1)!);
    return {
      batch: { table: this.table.name, ids, columns: new Map(columns), deleted: [] },
      last: mayHaveMore(BATCH, rows.count, bytes) ? ids.at(-1) : undefined,
      bytes,
    };
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

function readColumn(vectors: VectorForm, name: string, physicalName: string, kind: Kind, dimension: number): ReadColumn {
  const quoted = quoteIdentifier(physicalName);
  const isUnbounded = kind === "text" || kind === "json" || kind === "multiple";
  const column = { name, kind, dimension, vectors, isUnbounded, copied: copiedValueSql(kind, quoted) };
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
    case "vector": {
      if (dimension > 0) return { ...column, value: vectors.textSql(quoted) };
      const isThere = `CASE WHEN ${quoted} IS NOT NULL THEN '' END`;
      return { ...column, value: isThere, copied: isThere };
    }
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
      return { kind: "multiple", values: mapped(toList) };
    case "vector":
      return vectorsOf(column.vectors, column.dimension, texts);
  }
}

/** Of eight bytes in hexadecimal. */
function toMicroseconds(hex: string): bigint {
  return microsecondsOf(BigInt.asIntN(64, BigInt(`0x${hex}`)));
}

/** @param texts  of one column; null where a record has no vector. */
function vectorsOf(vectors: VectorForm, dimension: number, texts: readonly (string | null)[]): FeedColumn {
  const rows = texts.flatMap((text, row) => (text === null ? [] : [row]));
  const present = texts.filter((text) => text !== null);
  const elements = dimension === 0 ? new Float32Array(0) : vectors.decode(dimension, present);
  return { kind: "vector", dimension, rows: Uint32Array.from(rows), elements };
}

/** A column's value as SQL, in the type that `toCopiedColumn` decodes. */
function copiedValueSql(kind: Kind, quoted: string): string {
  switch (kind) {
    case "text":
    case "json":
      return `${quoted}::text`;
    case "multiple":
      return `array_to_json(${quoted})::text`;
    case "int":
      return `${quoted}::int8`;
    case "float":
      return `${quoted}::float8`;
    default:
      return quoted;
  }
}

/** A column that is never null, as text. */
function copiedTexts(rows: CopiedRows, column: number): string[] {
  return rows.column(column).map((place) => textAt(rows, place));
}

/** @param dimension  of a vector; otherwise not used. */
function toCopiedColumn(rows: CopiedRows, column: number, kind: Kind, dimension: number): FeedColumn {
  const { bytes, view } = rows;
  const places = rows.column(column);
  const mapped = <Value>(read: (place: number) => Value): (Value | null)[] =>
    places.map((place) => (rows.lengthAt(place) < 0 ? null : read(place)));
  switch (kind) {
    case "text":
    case "json":
      return { kind, values: mapped((place) => textAt(rows, place)) };
    case "int":
      return { kind, values: mapped((place) => view.getBigInt64(place)) };
    case "datetime":
      return { kind, values: mapped((place) => microsecondsOf(view.getBigInt64(place))) };
    case "float":
      return { kind, values: mapped((place) => view.getFloat64(place)) };
    case "bool":
      return { kind, values: mapped((place) => bytes[place] === 1) };
    case "multiple":
      return { kind, values: mapped((place) => toList(textAt(rows, place))) };
    case "vector":
      return toVectors(rows, places, dimension);
  }
}

/** Of an array of texts as JSON. SQL can nest arrays; to the API `multiple` is one flat list. */
function toList(json: string): (string | null)[] {
  return (JSON.parse(json) as (string | null)[]).flat(6);
}

function textAt(rows: CopiedRows, place: number): string {
  return rows.bytes.toString("utf8", place, place + rows.lengthAt(place));
}

function toVectors(rows: CopiedRows, places: readonly number[], dimension: number): FeedColumn {
  const present = Uint32Array.from(places.keys()).filter((row) => rows.lengthAt(places[row]!) >= 0);
  const elements = new Float32Array(present.length * dimension);
  if (dimension > 0)
    present.forEach((row, n) => {
      const place = places[row]!;
      readProtocolVector(rows.view, place, rows.lengthAt(place), elements.subarray(n * dimension, (n + 1) * dimension));
    });
  return { kind: "vector", dimension, rows: present, elements };
}

/** PostgreSQL counts from 2000-01-01, we count from 1970. */
const EPOCH_MICROSECONDS = 946_684_800_000_000n;
/** The infinities are what PostgreSQL itself uses for them. */
const LATEST = 2n ** 63n - 1n;
const EARLIEST = -(2n ** 63n);

/** @param stored  a timestamptz as PostgreSQL stores and sends it. @returns microseconds since 1970. */
function microsecondsOf(stored: bigint): bigint {
  return stored === LATEST || stored === EARLIEST ? stored : stored + EPOCH_MICROSECONDS;
}

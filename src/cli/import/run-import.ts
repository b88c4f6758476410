/**
 * Streams a file into a table of a running server. Rows become batches, batches become transactions of inserts, at most four in
 * flight: while the database writes one, the server reads the next and this process makes another. An insert with an id replaces the
 * record, so sending a batch twice is harmless: after a lost answer, and when an import continues from its journal. Memory: five
 * batches and one chunk of the file.
 */
import { createHash, randomBytes } from "node:crypto";
import { extname } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { inWords } from "../../errors/value-in-words.ts";
import { isUnderscored } from "../../filter/system-columns.ts";
import type { JsonObject, JsonValue } from "../../records/requests.ts";
import type { BranchRef, ColumnSchema } from "../../records/schema.ts";
import { type ApiClient, ApiError, branchPath } from "../api-client.ts";
import { openCsv } from "./csv-source.ts";
import { isBinaryDump } from "./dump/dump-file.ts";
import { openDump } from "./dump-source.ts";
import { ImportJournal } from "./import-state.ts";
import { inferColumns } from "./infer-columns.ts";
import { openJsonl } from "./jsonl-source.ts";
import type { Source, SourcePosition, SourceRow } from "./source.ts";
import { SourceError } from "./source.ts";
import type { SourceFiles } from "./source-files.ts";
import { openVectorFile } from "./vector-file-source.ts";

export const FORMATS = ["jsonl", "csv", "npy", "fvecs", "bvecs", "sql"] as const;
export type Format = (typeof FORMATS)[number];

export interface ImportOptions {
  readonly file: string;
  readonly ref: BranchRef;
  readonly table: string;
  readonly format?: Format;
  /** Creates the branch, the table and the columns that are missing. */
  readonly create: boolean;
  /** Where the vectors of npy, fvecs and bvecs go. */
  readonly vectorColumn: string;
  /** The column of the file whose values become ids. Default: `id`, if there. */
  readonly idColumn?: string;
  readonly idPrefix: string;
  /** Columns of the file that are left out. */
  readonly skipColumns: readonly string[];
  /** Sets only these columns, in records that exist; a row without values for them is skipped. */
  readonly updateOnly?: readonly string[];
  readonly batchSize: number;
  /** An empty source is a success: a table of a folder or of a dump that is imported whole. */
  readonly mayBeEmpty?: boolean;
  /** Seed for the ids of records that have none; default: a new one. The same seed makes the same ids. */
  readonly idSeed?: string;
  /** Used instead of opening the file. */
  readonly source?: Source;
  readonly statePath?: string;
  /** Start from the beginning, whatever the journal says. */
  readonly restart: boolean;
  /** What is read. Its signal stops the import after the batches in flight. */
  readonly files: SourceFiles;
  /** Called once the start position is known, and after each acknowledged batch. */
  readonly onProgress: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  readonly byteLength: number;
  readonly position: SourcePosition;
  /** Of this run. */
  readonly records: number;
  /** True when this run continues an interrupted one. */
  readonly resumed: boolean;
}

export interface ImportOutcome {
  readonly records: number;
  readonly finished: boolean;
  readonly journalPath: string;
}

const BATCH_BYTES = 4 << 20;
const MAX_BATCHES_UNDER_WAY = 4;

interface Batch {
  readonly operations: string[];
  readonly places: string[];
  byteLength: number;
  next: SourcePosition;
}

/** @throws the signal's reason, when it stops before the first batch. */
export async function runImport(client: ApiClient, options: ImportOptions): Promise<ImportOutcome> {
  const { signal } = options.files;
  const source = options.source ?? (await openSource(options));
  const columns = await prepareTable(client, source, options);
  const targetName = `${client.url}${branchPath(options.ref)}/${options.table}`;
  const journal = await ImportJournal.open(options, source.byteLength, targetName);
  const state = options.restart ? undefined : await journal.load();
  const idSeed = state?.idSeed ?? options.idSeed ?? newIdSeed();
  const makeId = idMaker(idSeed);
  const vectorColumns = columns.filter(({ type }) => type === "vector").map(({ name }) => name);

  let acknowledged = state?.position ?? source.start;
  let records = 0;
  const report = () => options.onProgress({ byteLength: source.byteLength, position: acknowledged, records, resumed: state !== undefined });
  report();

  const underWay: { batch: Batch; sent: Promise<unknown> }[] = [];
  const settleOldest = async () => {
    const { batch, sent } = underWay.shift() as (typeof underWay)[number];
    try {
      await sent;
    } catch (error) {
      throw atPlace(error, batch);
    }
    acknowledged = batch.next;
    records += batch.operations.length;
    await journal.save(idSeed, acknowledged);
    report();
  };
  const send = async (batch: Batch) => {
    if (underWay.length === MAX_BATCHES_UNDER_WAY) await settleOldest();
    const sent = client.request("POST", `${branchPath(options.ref)}/transaction`, `{"operations":[${batch.operations.join(",")}]}`);
    // Its failure is reported when its turn comes.
    sent.catch(() => {});
    underWay.push({ batch, sent });
  };

  try {
    let batch = emptyBatch(acknowledged);
    for await (const row of source.rows(acknowledged, columns)) {
      if (signal.aborted) break;
      add(batch, row, toOperation(row, vectorColumns, options, makeId));
      if (batch.operations.length < options.batchSize && batch.byteLength < BATCH_BYTES) continue;
      await send(batch);
      batch = emptyBatch(batch.next);
    }
    if (batch.operations.length > 0 && !signal.aborted) await send(batch);
  } finally {
    // Wait for what was sent even if the file turned out to be faulty, so that the journal says how far it got.
    while (underWay.length > 0) await settleOldest();
  }
  const finished = !signal.aborted || acknowledged.offset >= source.byteLength;
  if (finished) await journal.remove();
  if (finished && records === 0 && state === undefined && options.mayBeEmpty !== true) throw nothingImported(options);
  return { records, finished, journalPath: journal.path };
}

/** No records is an error: whoever named the file expected some. */
function nothingImported({ file, table }: ImportOptions): LodestoneError {
  return new LodestoneError(
    "INVALID",
    `${file} has no records for the table "${table}": nothing was imported, although the file was read to its end.`,
  );
}

async function openSource(options: ImportOptions): Promise<Source> {
  try {
    const format = options.format ?? (await formatOf(options.file));
    switch (format) {
      case "jsonl":
        return await openJsonl(options.file, options.files);
      case "csv":
        return await openCsv(options.file, options.files);
      case "sql":
        if (options.create) {
          throw new LodestoneError(
            "INVALID",
            "--create cannot be used with dumps: create the table and its columns first, so that every value gets the right type.",
          );
        }
        return await openDump(options.file, options.table, options.files);
      default:
        return await openVectorFile(options.file, format, options.vectorColumn);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw new LodestoneError("NOT_FOUND", `There is no file ${options.file}.`);
    throw error;
  }
}

async function formatOf(file: string): Promise<Format> {
  const extension = extname(file).slice(1).toLowerCase();
  const format = extension === "ndjson" ? "jsonl" : FORMATS.find((candidate) => candidate === extension);
  if (format !== undefined) return format;
  if (DUMP_EXTENSIONS.has(extension) || (await isBinaryDump(file))) return "sql";
  throw new LodestoneError(
    "INVALID",
    `The format of ${file} cannot be inferred from its name; add --format with one of ${FORMATS.join(", ")}.`,
  );
}

/** Of dumps of pg_dump in all its formats. */
const DUMP_EXTENSIONS: ReadonlySet<string> = new Set(["tar", "dump", "backup", "pgdump"]);

/** The table's columns, once it exists and the file's columns fit. */
async function prepareTable(client: ApiClient, source: Source, options: ImportOptions): Promise<ColumnSchema[]> {
  const { ref, table } = options;
  if (options.create) await client.createBranch(ref);
  const existing = await client.tableColumns(ref, table);
  if (existing === undefined && !options.create) {
    throw new LodestoneError("NOT_FOUND", `${ref.database}:${ref.branch} has no table "${table}"; use --create to create it.`);
  }
  if (!options.create) return checkDimensions(existing as ColumnSchema[], source, table);
  const except = ["id", "xata", options.idColumn ?? "id", ...options.skipColumns];
  const wanted = source.columns ?? (await inferColumns(source, except, options.files.signal));
  if (existing === undefined) {
    await client.createTable(ref, table, wanted);
    return [...wanted];
  }
  const missing = wanted.filter(({ name }) => !existing.some((column) => column.name === name));
  for (const column of missing) await client.request("POST", `${branchPath(ref)}/tables/${encodeURIComponent(table)}/columns`, column);
  return checkDimensions([...existing, ...missing], source, table);
}

function checkDimensions(columns: ColumnSchema[], source: Source, table: string): ColumnSchema[] {
  for (const { name, vector } of source.columns ?? []) {
    // Every table has these, whatever their names are.
    if (isUnderscored(name)) continue;
    const column = columns.find((candidate) => candidate.name === name);
    if (column === undefined) {
      throw new LodestoneError(
        "NOT_FOUND",
        `The table "${table}" has no column "${name}"; use --create to create it, or name one with --vector-column.`,
      );
    }
    if (vector !== undefined && column.vector?.dimension !== vector.dimension) {
      const is = column.vector === undefined ? `has the type ${column.type}` : `has dimension ${column.vector.dimension}`;
      throw new LodestoneError("INVALID", `The file's vectors have dimension ${vector.dimension}; the column "${name}" ${is}.`);
    }
  }
  return columns;
}

/** undefined: nothing to do for this row. */
function toOperation(
  row: SourceRow,
  vectorColumns: readonly string[],
  options: ImportOptions,
  makeId: (row: number) => string,
): string | undefined {
  const { table, updateOnly } = options;
  const record = toRecord(row, options, makeId);
  for (const name of vectorColumns) {
    const value = record[name];
    if (Array.isArray(value)) record[name] = toBase64(value);
  }
  if (updateOnly === undefined) return JSON.stringify({ insert: { table, record } });
  const fields = new Map(Object.entries(record).filter(([name, value]) => updateOnly.includes(name) && value !== null));
  if (fields.size === 0) return undefined;
  return JSON.stringify({ update: { table, id: record.id, fields: Object.fromEntries(fields) } });
}

/**
 * A third of the bytes, and the server has no numbers to parse, of which there would be thousands in each record. What is not a
 * vector stays as it is: the server says what is wrong with it.
 */
function toBase64(value: JsonValue[]): JsonValue {
  const elements = new Float32Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const element = value[i];
    if (typeof element !== "number" || !Number.isFinite(Math.fround(element))) return value;
    elements[i] = element;
  }
  return Buffer.from(elements.buffer).toString("base64");
}

function toRecord(row: SourceRow, options: ImportOptions, makeId: (row: number) => string): JsonObject {
  const { xata: _metadata, ...record } = row.record;
  const idColumn = options.idColumn ?? "id";
  const id = record[idColumn];
  if (options.idColumn !== undefined) delete record[options.idColumn];
  for (const name of options.skipColumns) delete record[name];
  if (id !== undefined && id !== null && typeof id !== "string" && typeof id !== "number") {
    throw new SourceError(row.place, `${idColumn}: expected a text or a number for the id, got ${inWords(id)}`);
  }
  record.id = id === undefined || id === null ? makeId(row.next.row) : `${options.idPrefix}${id}`;
  return record;
}

function emptyBatch(next: SourcePosition): Batch {
  return { operations: [], places: [], byteLength: 0, next };
}

function add(batch: Batch, row: SourceRow, operation: string | undefined): void {
  batch.next = row.next;
  if (operation === undefined) return;
  batch.operations.push(operation);
  batch.places.push(row.place);
  // Counted in characters, which are bytes except in texts beyond ASCII; BATCH_BYTES is far enough below the
  // server's limit.
  batch.byteLength += operation.length;
}

function atPlace(error: unknown, batch: Batch): unknown {
  if (!(error instanceof ApiError)) return error;
  const [first] = error.errors;
  const place = first === undefined ? undefined : batch.places[first.index];
  if (first !== undefined && place !== undefined) return new SourceError(place, first.message);
  return new SourceError(`${batch.places[0]} to ${batch.places.at(-1)}`, error.message);
}

export const newIdSeed = (): string => `${Date.now()}-${randomBytes(8).toString("hex")}`;

const ID_DIGITS = "0123456789abcdefghijklmnopqrstuv";

/**
 * Ids in the service's own form (`rec_` and 20 characters of [0-9a-v]), in the order of the rows. The same import
 * always generates the same ids.
 */
function idMaker(seed: string): (row: number) => string {
  const startedMs = Number(seed.split("-")[0]);
  const token = createHash("sha256").update(seed).digest().readUIntBE(0, 3) >> 4;
  const encode = (value: number, digits: number): string => {
    let text = "";
    for (let rest = value, i = 0; i < digits; i++, rest = Math.floor(rest / 32)) text = ID_DIGITS[rest % 32] + text;
    return text;
  };
  // 10 digits of time, 6 of the row number, 4 at random.
  return (row) => `rec_${encode(startedMs, 10)}${encode(row, 6)}${encode(token, 4)}`;
}

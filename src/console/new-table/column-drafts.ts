/** What the columns of a new table may become, as the first rows of a file show it. */
import { inferColumn } from "../../cli/import/infer-columns.ts";
import type { JsonValue } from "../../records/requests.ts";
import { call, type Place, tablePath } from "../api/client.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { encodingOf, type FileRow, type FileSource, openFile } from "../table/transfer/file-source.ts";

export interface ColumnDraft {
  /** Of the file; undefined: it has no such column. */
  readonly source: string | undefined;
  readonly name: string;
  /** "id": the record's id. */
  readonly type: ColumnSchema["type"] | "id";
  /** Of a vector. */
  readonly dimension: string;
  /** Of a link: the table. */
  readonly target: string;
  readonly isUsed: boolean;
  /** Its first values, to be looked at. */
  readonly examples: readonly string[];
}

export interface ReadFile {
  readonly source: FileSource;
  readonly encoding: string;
  readonly rows: number;
  /** There are no others. */
  readonly isWhole: boolean;
  readonly drafts: readonly ColumnDraft[];
}

const SAMPLE_ROWS = 1_000;
const EXAMPLES = 3;
const EXAMPLE_CHARACTERS = 40;
/** Distinct values of a column that are looked up in the table that its name names. */
const MOST_LOOKED_UP = 100;

export const NEW_COLUMN: ColumnDraft = {
  source: undefined,
  name: "",
  type: "string",
  dimension: "384",
  target: "",
  isUsed: true,
  examples: [],
};

/** A name as columns and tables may have it: "Price (EUR)" becomes Price_EUR. */
export const allowedName = (text: string): string =>
  text
    .replace(/[^\w~-]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .slice(0, 100);

/**
 * Reads the first rows of a file.
 * @param tables  of the branch; a column may hold links to their records.
 * @throws what is wrong with the file, in words.
 */
export async function readBeginning(file: File, place: Place | undefined, tables: readonly TableSchema[]): Promise<ReadFile> {
  const source = await openFile(file);
  const rows: FileRow[] = [];
  let isWhole = true;
  for await (const some of source.rows()) {
    const room = SAMPLE_ROWS - rows.length;
    rows.push(...some.slice(0, room));
    if (some.length <= room) continue;
    isWhole = false;
    break;
  }
  const names = new Set<string>();
  const drafts = await Promise.all(
    source.header.map(async (header): Promise<ColumnDraft> => {
      const values = rows
        .map((row) => row.values.get(header) as JsonValue | undefined)
        .filter((value) => value !== undefined && value !== null);
      const draft = draftOf(source, header, values as JsonValue[], names);
      const target = place === undefined ? undefined : await linkedTable(draft, values as JsonValue[], place, tables);
      return target === undefined ? draft : { ...draft, type: "link", target };
    }),
  );
  return { source, encoding: source.isText ? await encodingOf(file) : "", rows: rows.length, isWhole, drafts };
}

/** @param names  that are taken; its own is added. */
function draftOf(source: FileSource, header: string, values: readonly JsonValue[], names: Set<string>): ColumnDraft {
  const isId = /^(id|xata_id|_id)$/i.test(header) || (source.format === "npy" && header === "row");
  const listed = source.isText ? listedDimension(values as readonly string[]) : undefined;
  const inferred: ColumnSchema =
    listed === undefined
      ? inferColumn(header, values, { dateAlone: true })
      : { name: header, type: "vector", vector: { dimension: listed } };
  const plain = source.format === "npy" && !isId ? "embedding" : allowedName(header) || "column";
  let name = isId && !names.has("id") ? "id" : plain;
  for (let i = 2; names.has(name); i++) name = `${plain}_${i}`;
  names.add(name);
  return {
    ...NEW_COLUMN,
    source: header,
    name,
    type: name === "id" ? "id" : inferred.type,
    dimension: String(inferred.vector?.dimension ?? source.dimension ?? NEW_COLUMN.dimension),
    // Of an export: the server writes its own.
    isUsed: !/^xata(\.|$|_(version|createdat|updatedat)$)/.test(header),
    examples: values.slice(0, EXAMPLES).map(shown),
  };
}

/** A cell with fewer numbers may be anything: a version, a place, a telephone number. */
const LEAST_LISTED = 8;

/** The dimension, if each cell is a list of as many numbers between spaces, commas or semicolons, as an import takes them. */
function listedDimension(cells: readonly string[]): number | undefined {
  let dimension: number | undefined;
  for (const cell of cells) {
    const numbers = cell.trim().split(/[\s,;]+/);
    if (numbers.length < LEAST_LISTED || numbers.length !== (dimension ?? numbers.length)) return undefined;
    if (!numbers.every((number) => number !== "" && Number.isFinite(Number(number)))) return undefined;
    dimension = numbers.length;
  }
  return dimension;
}

/** The table that the column's name names (maker, maker_id, makers), if it has a record for each of the values. */
async function linkedTable(
  { name, type }: ColumnDraft,
  values: readonly JsonValue[],
  place: Place,
  tables: readonly TableSchema[],
): Promise<string | undefined> {
  if ((type !== "string" && type !== "int") || values.length === 0) return undefined;
  const stem = name.toLowerCase().replace(/_?ids?$/, "");
  const table = tables.find((other) => [stem, `${stem}s`, `${stem}es`, stem.replace(/y$/, "ies")].includes(other.name.toLowerCase()));
  if (table === undefined) return undefined;
  const ids = [...new Set(values.map(String))].slice(0, MOST_LOOKED_UP);
  const question = { columns: ["id"], filter: { id: { $any: ids } }, page: { size: MOST_LOOKED_UP } };
  const { records } = await call<{ records: readonly unknown[] }>("POST", `${tablePath(place, table.name)}/query`, question);
  return records.length === ids.length ? table.name : undefined;
}

function shown(value: JsonValue): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > EXAMPLE_CHARACTERS ? `${text.slice(0, EXAMPLE_CHARACTERS)}…` : text;
}

/** The column to be made of a draft; undefined: none, because it is the id, or left out. */
export function columnOf({ name, type, dimension, target, isUsed }: ColumnDraft): ColumnSchema | undefined {
  if (!isUsed || type === "id") return undefined;
  return {
    name,
    type,
    ...(type === "vector" ? { vector: { dimension: Number(dimension) } } : {}),
    ...(type === "link" ? { link: { table: target } } : {}),
  };
}

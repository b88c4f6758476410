/** What a replica is of: columns of a table, and the records that pass a filter. */
import { createColumn, type StoredColumn } from "../columns/stored-column.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";
import { hasBit, maskWords } from "../filter/bit-mask.ts";
import { compileToMask } from "../filter/mask.ts";
import { parseFilter } from "../filter/parse.ts";
import { systemColumnType, VERSION_COLUMNS } from "../filter/system-columns.ts";
import type { FilterColumnType, FilterNode, FilterTable } from "../filter/tree.ts";
import type { FrameColumn } from "../frames/frames.ts";
import { requireTable } from "../records/catalog/branch-rows.ts";
import type { FeedBatch } from "../records/feed/feed-types.ts";
import type { BranchInfo, TableInfo } from "../records/schema.ts";

export interface ReplicaRequest {
  readonly columns: readonly string[];
  readonly filter?: object | undefined;
}

interface ReplicaColumn extends FrameColumn {
  /** The catalog's id: a column of another id is another one, whatever its name. */
  readonly id: number;
}

export class Definition {
  /** Equal for equal requests. */
  readonly key: string;
  readonly table: string;
  readonly tableId: number;
  readonly columns: readonly ReplicaColumn[];
  /** What has to be read of the table: the columns, and those that the filter looks at. */
  readonly names: ReadonlySet<string>;
  readonly #request: ReplicaRequest;
  readonly #filter: FilterNode | undefined;
  readonly #filterColumns: ReadonlyMap<string, FilterColumnType>;

  /**
   * @throws {LodestoneError} NOT_FOUND for the table; INVALID for a column that is not there or named twice, and for a filter that is
   *   none, or that reaches through links: of the linked records a replica knows nothing.
   */
  constructor(branch: BranchInfo, tableName: string, request: ReplicaRequest) {
    const table = requireTable(branch, tableName);
    this.table = table.name;
    this.tableId = table.id;
    this.#request = request;
    this.columns = request.columns.map((name, i) => {
      const column = table.columns.get(name);
      const place = `columns[${i}]`;
      if (column === undefined) throw new LodestoneError("INVALID", `${place}: table ${quoted(table.name)} has no column ${quoted(name)}.`);
      if (request.columns.indexOf(name) < i) throw new LodestoneError("INVALID", `${place}: ${quoted(name)} is named twice.`);
      const { id, type, vector } = column;
      return { id, name, type, ...(vector && { dimension: vector.dimension }) };
    });
    const types = columnTypes(table);
    const filterTable: FilterTable = { name: table.name, columns: new Map([...types].map(([name, type]) => [name, { name, type }])) };
    const filter =
      request.filter === undefined ? undefined : parseFilter(request.filter, filterTable, new Map([[table.name, filterTable]]));
    this.#filter = filter;
    const names = filter === undefined ? [] : [...columnsOf(filter)];
    this.#filterColumns = new Map(names.filter((name) => name !== "id").map((name) => [name, types.get(name)!]));
    this.names = new Set([...request.columns, ...this.#filterColumns.keys()]);
    this.key = JSON.stringify([table.id, this.columns.map(({ id }) => id), request.filter ?? null]);
  }

  /** Whether a branch of this schema has the same table and columns under the same names. */
  isOf(branch: BranchInfo): boolean {
    try {
      return new Definition(branch, this.table, this.#request).key === this.key;
    } catch (error) {
      if (error instanceof LodestoneError) return false;
      throw error;
    }
  }

  /** For each record of the batch, whether it is in the replica. */
  select(batch: FeedBatch): (place: number) => boolean {
    const filter = this.#filter;
    if (filter === undefined) return () => true;
    const capacity = Math.max(1, batch.ids.length);
    const live = new Uint32Array(maskWords(capacity)).fill(0xffffffff);
    const columns = new Map<string, StoredColumn>();
    for (const [name, type] of this.#filterColumns) {
      const column = createColumn(type);
      column.reserve(live.length * 32);
      const values = batch.columns.get(name)!;
      batch.ids.forEach((_, place) => {
        column.set(place, values, place);
      });
      columns.set(name, column);
    }
    const rows = new Map(batch.ids.map((id, place) => [id, place]));
    const table = {
      capacity,
      live,
      rowOf: (id: string) => rows.get(id),
      idOf: (row: number) => batch.ids[row],
      column: (name: string) => columns.get(name)!,
    };
    const mask = compileToMask(filter, this.table, { table: () => table });
    return (place) => hasBit(mask, place);
  }
}

/** Without links: to a filter they are the ids that they hold. */
function columnTypes(table: TableInfo): Map<string, FilterColumnType> {
  const types = new Map<string, FilterColumnType>();
  for (const { name, type } of table.columns.values()) types.set(name, type === "link" ? "string" : type);
  for (const name of ["id", ...VERSION_COLUMNS]) types.set(name, systemColumnType(name)!);
  return types;
}

function* columnsOf(node: FilterNode): Generator<string> {
  if (node.kind === "and" || node.kind === "or") for (const own of node.nodes) yield* columnsOf(own);
  else if (node.kind === "not") yield* columnsOf(node.node);
  else if (!node.column.item) yield node.column.column;
}

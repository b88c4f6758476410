/** A branch in the list of databases: how far searches see it, and what its tables hold. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, branchPath, call, messageOf, type Place } from "../api/client.ts";
import { useAnswer, useAttempt } from "../parts/form.tsx";
import { Fault } from "../parts/notice.tsx";
import { counted, sizeInWords } from "../parts/numbers.ts";
import { useInView } from "../state/in-view.ts";
import { hrefOf } from "../state/route.ts";
import { type ColumnSchema, fetchTables, type TableSchema } from "../state/server-content.ts";

/** The state of the server and of its branches is read so often, while somebody can see it. */
export const READ_EVERY_MS = 5_000;

interface TableStatistics {
  readonly name: string;
  readonly sizeBytes: number;
  readonly estimatedRows: number;
}

interface BranchStatistics {
  readonly tables: readonly TableStatistics[];
  readonly search: {
    readonly ready: boolean;
    readonly lagMs: number;
    readonly vectors: number;
    readonly memoryBytes: number;
    readonly fileBytes: number;
  };
}

export interface BranchContent {
  readonly tables: readonly TableSchema[];
  readonly statistics: BranchStatistics | undefined;
  readonly fault: string;
}

export async function readBranch(place: Place): Promise<BranchContent> {
  try {
    const [tables, statistics] = await Promise.all([fetchTables(place), readStatistics(place)]);
    return { tables, statistics, fault: "" };
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) throw error;
    return { tables: [], statistics: undefined, fault: messageOf(error) };
  }
}

const readStatistics = (place: Place): Promise<BranchStatistics> => call("GET", `${branchPath(place)}/statistics`);

/** Larger tables are not counted just to be shown; the database's estimate has to do. So it has for what is beyond the number of tables. */
const MOST_COUNTED_ROWS = 1_000_000;
const MOST_COUNTED_TABLES = 50;

/** The numbers of records, by table, in one request. */
async function countTables(place: Place, { tables = [] }: Partial<BranchStatistics>): Promise<ReadonlyMap<string, number>> {
  const names = tables.filter(({ estimatedRows }) => estimatedRows <= MOST_COUNTED_ROWS).map(({ name }) => name);
  const counts = names.slice(0, MOST_COUNTED_TABLES).map((name) => `(SELECT count(*) FROM "${name.replaceAll('"', '""')}")`);
  if (counts.length === 0) return new Map();
  const body = { statement: `SELECT ${counts.join(", ")}`, responseType: "array" };
  const { rows } = await call<{ rows: readonly (readonly unknown[])[] }>("POST", `${branchPath(place)}/sql`, body);
  return new Map(counts.map((_, i) => [names[i] as string, Number(rows[0]?.[i])]));
}

/** @param first  undefined: closed. */
export function Branch({ place, first }: { place: Place; first: BranchContent | undefined }): JSX.Element {
  const [opened, setOpened] = useState<BranchContent | undefined>(undefined);
  const content = opened ?? first;
  const { fault, isBusy, attempt } = useAttempt();
  if (content !== undefined) return <BranchSummary place={place} content={content} />;
  return (
    <div class="branch closed">
      <h3>
        <span class="tag">{place.branch}</span>
      </h3>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void attempt(async () => setOpened(await readBranch(place)))}>
        Show tables
      </button>
      {fault !== "" && <Fault>{fault}</Fault>}
    </div>
  );
}

function BranchSummary({
  place,
  content: { tables: found, statistics: first, fault },
}: {
  place: Place;
  content: BranchContent;
}): JSX.Element {
  const [statistics, setStatistics] = useState(first);
  useInView(READ_EVERY_MS, () => void readStatistics(place).then(setStatistics, () => {}), true);
  const { answer: counts } = useAnswer(() => countTables(place, first ?? {}), [first]);
  return (
    <div class="branch">
      <h3>
        <span class="tag">{place.branch}</span>
        {statistics !== undefined && <SearchState search={statistics.search} />}
      </h3>
      {fault !== "" && <Fault>{fault}</Fault>}
      {found.length === 0 && fault === "" && <p class="muted">No tables.</p>}
      {found.length > 0 && (
        <div class="table-scroll">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Table</th>
                <th scope="col" class="number">
                  Rows
                </th>
                <th scope="col" class="number">
                  Columns
                </th>
                <th scope="col">Vectors</th>
                <th scope="col" class="number">
                  In memory
                </th>
                <th scope="col" class="number">
                  On disk
                </th>
              </tr>
            </thead>
            <tbody>
              {found.map((table) => (
                <TableRow
                  key={table.name}
                  place={place}
                  table={table}
                  statistics={statistics?.tables.find(({ name }) => name === table.name)}
                  count={counts?.get(table.name)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function SearchState({ search: { ready, lagMs, vectors, memoryBytes, fileBytes } }: Pick<BranchStatistics, "search">): JSX.Element {
  const lag = !ready ? "building the search index" : lagMs === 0 ? "no lag" : `searches are ${(lagMs / 1000).toFixed(2)} s behind`;
  const onDisk = fileBytes === 0 ? "" : `, ${sizeInWords(fileBytes)} on disk`;
  const held = vectors === 0 ? "" : `${counted(vectors, "vector")}, ${sizeInWords(memoryBytes)} in memory${onDisk} · `;
  return (
    <span class="search-state">
      {held}
      {lag}
    </span>
  );
}

interface TableRowProps {
  place: Place;
  table: TableSchema;
  statistics: TableStatistics | undefined;
  /** undefined until it is counted, or if it is not. */
  count: number | undefined;
}

function TableRow({ place, table, statistics, count }: TableRowProps): JSX.Element {
  const rows = count ?? statistics?.estimatedRows;
  const vectors = table.columns.filter(({ type }) => type === "vector");
  const target = vectors.length === 0 ? "table" : "search";
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf(target, place, table.name)} title={table.name}>
          {table.name}
        </a>
      </th>
      <td class="number" title={count === undefined ? "An estimate by the database." : undefined}>
        {count === undefined ? "≈ " : ""}
        {rows?.toLocaleString("en") ?? "…"}
      </td>
      <td class="number">{table.columns.length}</td>
      <td>
        {vectors.length === 0 ? (
          <span class="muted">none</span>
        ) : (
          vectors.map(({ name, vector }) => (
            <span key={name} class="tag">
              {name} · {vector?.dimension}
            </span>
          ))
        )}
      </td>
      <td class="number" title="Memory for the vectors, at most: five bytes for each number.">
        {vectors.length === 0 || rows === undefined || rows === 0 ? (
          <span class="muted">–</span>
        ) : (
          `≤ ${sizeInWords(vectorBytes(rows, vectors))}`
        )}
      </td>
      <td class="number" title="Including indexes, and space left by deleted records that is not yet reused.">
        {statistics === undefined ? "…" : sizeInWords(statistics.sizeBytes)}
      </td>
    </tr>
  );
}

/** As docs/limits.md has it. */
const BYTES_PER_NUMBER = 5;

const vectorBytes = (rows: number, columns: readonly ColumnSchema[]): number =>
  columns.reduce((sum, { vector }) => sum + rows * (vector?.dimension ?? 0) * BYTES_PER_NUMBER, 0);

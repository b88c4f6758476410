/** A branch in the list of databases: how far searches see it, and what its tables hold. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, messageOf } from "../api/client.ts";
import { branchPath, type Place, tablePath } from "../api/paths.ts";
import { sizeInWords } from "../parts/bytes.ts";
import { Fault } from "../parts/notice.tsx";
import { connection } from "../state/page-session.ts";
import { hrefOf } from "../state/route.ts";
import { type ColumnSchema, databases, fetchTables, type TableSchema } from "../state/server-content.ts";

interface TableStatistics {
  readonly name: string;
  readonly sizeBytes: number;
  readonly estimatedRows: number;
}

interface BranchStatistics {
  readonly tables: readonly TableStatistics[];
  readonly search: { readonly ready: boolean; readonly lagMs: number; readonly vectors: number; readonly memoryBytes: number };
}

const READ_EVERY_MS = 5_000;
/** With more branches than this, statistics are read only once: each branch is a request. */
const MOST_FOLLOWED = 20;
/** Larger tables are not counted just to be shown; the database's estimate has to do. */
const MOST_COUNTED = 1_000_000;

export function BranchSummary({ place }: { place: Place }): JSX.Element {
  const [found, setFound] = useState<readonly TableSchema[] | undefined>(undefined);
  const [fault, setFault] = useState("");
  const statistics = useStatistics(place);
  useEffect(() => {
    fetchTables(place).then(setFound, (error: unknown) => setFault(messageOf(error)));
  }, [place.database, place.branch]);
  return (
    <div class="branch">
      <h3>
        <span class="tag">{place.branch}</span>
        {statistics !== undefined && <SearchState search={statistics.search} />}
      </h3>
      {fault !== "" && <Fault>{fault}</Fault>}
      {found?.length === 0 && <p class="muted">No tables.</p>}
      {found !== undefined && found.length > 0 && (
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
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

/** undefined until they have been read; the last ones while the server is away. */
function useStatistics(place: Place): BranchStatistics | undefined {
  const [statistics, setStatistics] = useState<BranchStatistics | undefined>(undefined);
  useEffect(() => {
    const read = (): void => {
      call<BranchStatistics>("GET", `${branchPath(place)}/statistics`).then(setStatistics, () => {});
    };
    read();
    const branches = (databases.peek() ?? []).reduce((sum, database) => sum + database.branches.length, 0);
    if (branches > MOST_FOLLOWED) return;
    const timer = setInterval(read, READ_EVERY_MS);
    return () => clearInterval(timer);
  }, [place.database, place.branch, connection.value]);
  return statistics;
}

function SearchState({ search: { ready, lagMs, vectors, memoryBytes } }: Pick<BranchStatistics, "search">): JSX.Element {
  const lag = !ready ? "being read for searches" : lagMs === 0 ? "no lag" : `searches are ${(lagMs / 1000).toFixed(2)} s behind`;
  const held = vectors === 0 ? "" : `${vectors.toLocaleString("en")} vectors in ${sizeInWords(memoryBytes)} of memory · `;
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
}

function TableRow({ place, table, statistics }: TableRowProps): JSX.Element {
  const [counted, setCounted] = useState<number | undefined>(undefined);
  const estimated = statistics?.estimatedRows;
  const isLarge = estimated !== undefined && estimated > MOST_COUNTED;
  const mayCount = estimated !== undefined && !isLarge;
  useEffect(() => {
    if (!mayCount) return;
    call<{ aggs: { rows: number } }>("POST", `${tablePath(place, table.name)}/aggregate`, { aggs: { rows: { count: "*" } } }).then(
      ({ aggs }) => setCounted(aggs.rows),
      () => setCounted(undefined),
    );
  }, [place.database, place.branch, table.name, mayCount]);
  const vectors = table.columns.filter(({ type }) => type === "vector");
  const target = vectors.length === 0 ? "table" : "search";
  const rows = isLarge ? estimated : counted;
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf(target, place, table.name)}>{table.name}</a>
      </th>
      <td class="number" title={isLarge ? "Approximate: the database's estimate." : undefined}>
        {isLarge ? "≈ " : ""}
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
      <td class="number" title="Memory for the vectors if every record has one: five bytes for each number.">
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

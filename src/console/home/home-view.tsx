/** What is on this server, a button that loads the demo if there is nothing, and snippets to paste for the current place. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, branchPath, call, type Place, tablePath } from "../api/client.ts";
import { useAnswer, useAttempt } from "../parts/form.tsx";
import { Fault, Waiting } from "../parts/notice.tsx";
import { sizeInWords } from "../parts/numbers.ts";
import { Snippets } from "../parts/snippets.tsx";
import { connection, mayAdminister } from "../state/page-session.ts";
import { hrefOf, route } from "../state/route.ts";
import {
  type ColumnSchema,
  countOf,
  type DatabaseEntry,
  databases,
  fetchTables,
  firstPlace,
  loadDatabases,
  type TableSchema,
} from "../state/server-content.ts";
import { snippetsFor } from "./what-to-paste.ts";

interface Readiness {
  readonly status: string;
  readonly lagMs?: number;
  readonly rows?: number;
}

const READINESS_MS = 5_000;

export function HomeView(): JSX.Element {
  const [readiness, setReadiness] = useState<Readiness | undefined>(undefined);
  useEffect(() => {
    const read = (): void => {
      call<Readiness>("GET", "/readyz").then(setReadiness, () => setReadiness(undefined));
    };
    read();
    const timer = setInterval(read, READINESS_MS);
    return () => clearInterval(timer);
  }, [connection.value]);
  const found = databases.value;
  if (found === undefined) return <Waiting what="Reading what is there …" />;
  const place = route.value.place ?? firstPlace();
  return (
    <div class="stack">
      <div class="heading">
        <h1>{found.length === 0 ? "Nothing here yet" : "Databases"}</h1>
        {readiness !== undefined && <Health readiness={readiness} />}
      </div>
      {found.length === 0 ? <Empty /> : found.map((database) => <Database key={database.name} database={database} />)}
      {place !== undefined && <WhatToPaste place={place} />}
    </div>
  );
}

function Health({ readiness: { status, lagMs = 0, rows = 0 } }: { readiness: Readiness }): JSX.Element {
  return (
    <p class="health">
      <span class={`dot ${status === "ready" ? "good" : "warn"}`} aria-hidden="true" />
      {status} · {rows.toLocaleString("en")} vectors in memory · {lagMs === 0 ? "no lag" : `${(lagMs / 1000).toFixed(2)} s behind`}
    </p>
  );
}

function Empty(): JSX.Element {
  const { fault, isBusy, attempt } = useAttempt();
  const start = (): Promise<void> =>
    attempt(async () => {
      await loadDemo();
      await loadDatabases();
      location.hash = hrefOf("search", DEMO_PLACE);
    });
  if (!mayAdminister.value) return <p class="muted">There are no databases that this key may see.</p>;
  return (
    <section class="card empty">
      <p>
        The demo is a table of the 148 named colours of CSS, each with its place in CIE L*a*b*, where distance is what the eye sees as
        difference. It makes for a map that you can check by looking.
      </p>
      <button type="button" class="primary" disabled={isBusy} onClick={() => void start()}>
        {isBusy ? "Loading …" : "Load the demo"}
      </button>
      {fault !== "" && <Fault>{fault}</Fault>}
    </section>
  );
}

function Database({ database: { name, branches } }: { database: DatabaseEntry }): JSX.Element {
  return (
    <section class="card database" aria-label={`Database ${name}`}>
      <h2>{name}</h2>
      {branches.map((branch) => (
        <BranchSummary key={branch} place={{ database: name, branch }} />
      ))}
    </section>
  );
}

function WhatToPaste({ place }: { place: Place }): JSX.Element | null {
  const { answer: found } = useAnswer(() => fetchTables(place), [place.database, place.branch]);
  const table =
    found?.find(({ name }) => name === route.value.table) ?? found?.find(({ columns }) => columns.some(({ type }) => type === "vector"));
  if (table === undefined) return null;
  return (
    <section class="stack">
      <h2>
        From your code, in <code>{`${place.database}:${place.branch}`}</code>, table <code>{table.name}</code>
      </h2>
      <Snippets label="What to paste" snippets={snippetsFor(place, table)} />
    </section>
  );
}

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

/** A branch in the list of databases: how far searches see it, and what its tables hold. */
function BranchSummary({ place }: { place: Place }): JSX.Element {
  const { answer: found, fault } = useAnswer(() => fetchTables(place), [place.database, place.branch]);
  const statistics = useStatistics(place);
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
  const estimated = statistics?.estimatedRows;
  const isLarge = estimated !== undefined && estimated > MOST_COUNTED;
  const mayCount = estimated !== undefined && !isLarge;
  const { answer: counted } = useAnswer(
    async () => (mayCount ? countOf(tablePath(place, table.name)) : undefined),
    [place.database, place.branch, table.name, mayCount],
  );
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

const DEMO_PLACE: Place = { database: "demo", branch: "main" };

/**
 * Loads the demo data through the public API, as `lodestone demo` does; the colours are fetched on demand.
 * Can be repeated: existing tables are left, and a record whose id exists is replaced.
 */
async function loadDemo(): Promise<void> {
  const { DEMO_COLUMNS, DEMO_TABLE, demoColors } = await import("../../cli/demo-colors.ts");
  await unlessThere(call("PUT", branchPath(DEMO_PLACE), {}));
  await unlessThere(call("PUT", tablePath(DEMO_PLACE, DEMO_TABLE), { columns: DEMO_COLUMNS }));
  const operations = demoColors().map((record) => ({ insert: { table: DEMO_TABLE, record } }));
  await call("POST", `${branchPath(DEMO_PLACE)}/transaction`, { operations });
}

async function unlessThere(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 422)) throw error;
  }
}

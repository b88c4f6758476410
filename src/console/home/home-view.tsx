/** What is on this server, a button that loads the demo if there is nothing, and snippets to paste for the current place. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, branchPath, call, messageOf, type Place, tablePath } from "../api/client.ts";
import { useAnswer, useAttempt } from "../parts/form.tsx";
import { Fault, Waiting } from "../parts/notice.tsx";
import { counted, sizeInWords } from "../parts/numbers.ts";
import { Snippets } from "../parts/snippets.tsx";
import { useInView } from "../state/in-view.ts";
import { mayAdminister } from "../state/page-session.ts";
import { hrefOf, route } from "../state/route.ts";
import { type ColumnSchema, databases, fetchTables, firstPlace, loadDatabases, type TableSchema } from "../state/server-content.ts";
import { snippetsFor } from "./what-to-paste.ts";

interface Readiness {
  readonly status: string;
  readonly lagMs?: number;
  readonly rows?: number;
}

/** The state of the server and of its branches is read so often, while somebody can see it. */
const READ_EVERY_MS = 5_000;
/** Each costs two requests, and the others wait until somebody opens them. */
const MOST_OPEN = 6;

export function HomeView(): JSX.Element {
  const [readiness, setReadiness] = useState<Readiness | undefined>(undefined);
  useInView(READ_EVERY_MS, () => void call<Readiness>("GET", "/readyz").then(setReadiness, () => setReadiness(undefined)));
  const found = databases.value;
  const open = (found ?? []).flatMap(({ name, branches }) => branches.map((branch) => ({ database: name, branch }))).slice(0, MOST_OPEN);
  const { answer: contents, fault } = useAnswer(() => Promise.all(open.map(readBranch)), [open.map(branchPath).join()]);
  // All at once, so that nothing moves under the hand.
  if (fault !== "") return <Fault>{fault}</Fault>;
  if (found === undefined || contents === undefined || contents.length !== open.length) return <Waiting what="Reading what is there …" />;
  const contentOf = new Map(open.map((place, i) => [branchPath(place), contents[i]]));
  const place = route.value.place ?? firstPlace();
  return (
    <div class="stack">
      <div class="heading">
        <h1>{found.length === 0 ? "Nothing here yet" : "Databases"}</h1>
        <Health readiness={readiness} />
      </div>
      {found.length === 0 ? (
        <Empty />
      ) : (
        found.map(({ name, branches }) => (
          <section key={name} class="card database" aria-label={`Database ${name}`}>
            <h2>{name}</h2>
            {branches.map((branch) => {
              const own = { database: name, branch };
              return <Branch key={branch} place={own} first={contentOf.get(branchPath(own))} />;
            })}
          </section>
        ))
      )}
      {place !== undefined && <WhatToPaste place={place} />}
    </div>
  );
}

/** @param readiness  undefined until it has been read: its line is there already. */
function Health({ readiness }: { readiness: Readiness | undefined }): JSX.Element {
  const { status = "", rows = 0, lagMs = 0 } = readiness ?? {};
  const lag = lagMs === 0 ? "no lag" : `${(lagMs / 1000).toFixed(2)} s behind`;
  return (
    <p class="health">
      <span class={`dot ${status === "ready" ? "good" : "warn"}`} aria-hidden="true" />
      {status === "" ? "…" : `${status} · ${counted(rows, "vector")} in memory · ${lag}`}
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

interface BranchContent {
  readonly tables: readonly TableSchema[];
  readonly statistics: BranchStatistics | undefined;
  readonly fault: string;
}

async function readBranch(place: Place): Promise<BranchContent> {
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

/** A branch in the list of databases: how far searches see it, and what its tables hold. @param first  undefined: closed. */
function Branch({ place, first }: { place: Place; first: BranchContent | undefined }): JSX.Element {
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
        Show its tables
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

function SearchState({ search: { ready, lagMs, vectors, memoryBytes } }: Pick<BranchStatistics, "search">): JSX.Element {
  const lag = !ready ? "being read for searches" : lagMs === 0 ? "no lag" : `searches are ${(lagMs / 1000).toFixed(2)} s behind`;
  const held = vectors === 0 ? "" : `${counted(vectors, "vector")} in ${sizeInWords(memoryBytes)} of memory · `;
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
        <a href={hrefOf(target, place, table.name)}>{table.name}</a>
      </th>
      <td class="number" title={count === undefined ? "Approximate: the database's estimate." : undefined}>
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

/** What is on this server, a button that loads the demo if there is nothing, and snippets to paste for the current place. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, branchPath, call, type Place, tablePath } from "../api/client.ts";
import { FileButton } from "../parts/file-button.tsx";
import { useAnswer, useAttempt } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Waiting } from "../parts/notice.tsx";
import { counted } from "../parts/numbers.ts";
import { Snippets } from "../parts/snippets.tsx";
import { makeTableOf } from "../state/dropped-file.ts";
import { useInView } from "../state/in-view.ts";
import { mayAdminister } from "../state/page-session.ts";
import { hrefOf, route } from "../state/route.ts";
import { databases, fetchTables, firstPlace, loadDatabases } from "../state/server-content.ts";
import { Branch, READ_EVERY_MS, readBranch } from "./branch-summary.tsx";
import { firstSnippets, snippetsFor } from "./what-to-paste.ts";

interface Readiness {
  readonly status: string;
  readonly lagMs?: number;
  readonly rows?: number;
}

/** Each costs two requests, and the others wait until somebody opens them. */
const MOST_OPEN = 6;

export function HomeView(): JSX.Element {
  const [readiness, setReadiness] = useState<Readiness | undefined>(undefined);
  useInView(READ_EVERY_MS, () => void call<Readiness>("GET", "/readyz").then(setReadiness, () => setReadiness(undefined)));
  const found = databases.value;
  // Of each database the first branch, then the others.
  const open = (found ?? [])
    .flatMap(({ name, branches }) => branches.map((branch, at) => ({ at, place: { database: name, branch } })))
    .toSorted((a, b) => a.at - b.at)
    .map(({ place }) => place)
    .slice(0, MOST_OPEN);
  const { answer: contents, fault } = useAnswer(() => Promise.all(open.map(readBranch)), [open.map(branchPath).join()]);
  // All at once, so that nothing moves under the hand.
  if (fault !== "") return <Fault>{fault}</Fault>;
  if (found === undefined || contents === undefined || contents.length !== open.length) return <Waiting what="Loading …" />;
  const contentOf = new Map(open.map((place, i) => [branchPath(place), contents[i]]));
  const place = route.value.place ?? firstPlace();
  return (
    <div class="stack">
      <div class="heading">
        <h1>{found.length === 0 ? "Nothing here yet" : "Databases"}</h1>
        <Health readiness={readiness} />
        {found.length > 0 && mayAdminister.value && (
          <p class="actions">
            <a class="button" href={hrefOf("new", place)}>
              <Icon name="plus" /> New table
            </a>
            <span class="muted small">or drop a file anywhere</span>
          </p>
        )}
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
  if (!mayAdminister.value) return <p class="muted">This key cannot see any database.</p>;
  return (
    <>
      <div class="beginnings">
        <section class="card empty drop-zone" aria-label="From a file">
          <h2>Drop a file here</h2>
          <p>CSV, JSON Lines, npy or Parquet. It becomes a table that you can search, with a map of its vectors.</p>
          <div class="actions">
            <FileButton label="Choose a file" isPrimary onFile={makeTableOf} />
            <a class="button" href={hrefOf("new")}>
              New table
            </a>
          </div>
        </section>
        <section class="card empty" aria-label="Demo">
          <h2>Or look around first</h2>
          <p>
            The demo has the 148 named colours of CSS as points in the CIE L*a*b* colour space, where colours that look alike are near each
            other. So you can check a search, and the map, just by looking.
          </p>
          <button type="button" disabled={isBusy} onClick={() => void start()}>
            {isBusy ? "Loading …" : "Load the demo"}
          </button>
          {fault !== "" && <Fault>{fault}</Fault>}
        </section>
      </div>
      <h2>Or from your code</h2>
      <Snippets label="What to paste" snippets={firstSnippets()} />
    </>
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

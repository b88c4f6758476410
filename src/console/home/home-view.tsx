/** What is on this server, a button that loads the demo if there is nothing, and snippets to paste for the current place. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, messageOf } from "../api/client.ts";
import type { Place } from "../api/paths.ts";
import { Fault, Waiting } from "../parts/notice.tsx";
import { Snippets } from "../parts/snippets.tsx";
import { connection, mayAdminister } from "../state/page-session.ts";
import { hrefOf, route } from "../state/route.ts";
import { type DatabaseEntry, databases, fetchTables, firstPlace, loadDatabases, type TableSchema } from "../state/server-content.ts";
import { BranchSummary } from "./branch-summary.tsx";
import { DEMO_PLACE, loadDemo } from "./demo.ts";
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
  const [isLoading, setLoading] = useState(false);
  const [fault, setFault] = useState("");
  async function start(): Promise<void> {
    setLoading(true);
    setFault("");
    try {
      await loadDemo();
      await loadDatabases();
      location.hash = hrefOf("search", DEMO_PLACE);
    } catch (error) {
      setFault(messageOf(error));
    }
    setLoading(false);
  }
  if (!mayAdminister.value) return <p class="muted">There are no databases that this key may see.</p>;
  return (
    <section class="card empty">
      <p>
        The demo is a table of the 148 named colours of CSS, each with its place in CIE L*a*b*, where distance is what the eye sees as
        difference. It makes for a map that you can check by looking.
      </p>
      <button type="button" class="primary" disabled={isLoading} onClick={() => void start()}>
        {isLoading ? "Loading …" : "Load the demo"}
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
  const [found, setFound] = useState<readonly TableSchema[] | undefined>(undefined);
  useEffect(() => {
    fetchTables(place).then(setFound, () => setFound(undefined));
  }, [place.database, place.branch]);
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

/** The branches of all databases: when each was created, and what it contains. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, messageOf } from "../api/client.ts";
import { branchPath, type Place } from "../api/paths.ts";
import { Fault } from "../parts/notice.tsx";
import { hrefOf } from "../state/route.ts";
import { databases, type TableSchema } from "../state/server-content.ts";

/** Each is a request. */
const MOST_SHOWN = 50;

interface BranchState {
  readonly createdAt: string;
  /** Of the schema. */
  readonly version: number;
  readonly schema: { readonly tables: readonly TableSchema[] };
}

export function BranchList(): JSX.Element {
  const places = (databases.value ?? []).flatMap(({ name, branches }) => branches.map((branch) => ({ database: name, branch })));
  return (
    <section class="card schema-panel" aria-label="Branches">
      <h2>Branches</h2>
      {places.length === 0 && <p class="muted">None yet.</p>}
      <ul class="column-list branch-list" aria-label="Branches of all databases">
        {places.slice(0, MOST_SHOWN).map((place) => (
          <Branch key={branchPath(place)} place={place} />
        ))}
      </ul>
      {places.length > MOST_SHOWN && <p class="muted small">And {(places.length - MOST_SHOWN).toLocaleString("en")} more.</p>}
    </section>
  );
}

function Branch({ place }: { place: Place }): JSX.Element {
  const [state, setState] = useState<BranchState | undefined>(undefined);
  const [fault, setFault] = useState("");
  useEffect(() => {
    call<BranchState>("GET", branchPath(place)).then(setState, (error: unknown) => setFault(messageOf(error)));
  }, [place.database, place.branch]);
  return (
    <li class="column-line">
      <a class="column-name" href={hrefOf("schema", place)}>
        <bdi>
          {place.database}:{place.branch}
        </bdi>
      </a>
      {state !== undefined && <span class="type">{inWords(state)}</span>}
      {fault !== "" && <Fault>{fault}</Fault>}
    </li>
  );
}

function inWords({ createdAt, version, schema: { tables } }: BranchState): string {
  const vectors = tables.flatMap(({ columns }) => columns.filter(({ type }) => type === "vector")).length;
  const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? "" : "s"}`;
  return `${count(tables.length, "table")}, ${count(vectors, "column")} of vectors · schema ${version} · ${new Date(createdAt).toLocaleDateString()}`;
}

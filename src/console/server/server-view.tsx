/** The state of the server: readiness, load, lag and memory as live plots; keys and backups for administrators. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { branchPath, call, type Place } from "../api/client.ts";
import { useAnswer, useAttempt } from "../parts/form.tsx";
import { Fault, Waiting } from "../parts/notice.tsx";
import { counted, dayInWords, sizeInWords, timeInWords } from "../parts/numbers.ts";
import { type ApiDescription, bodySchema, type JsonSchema, operationsOf, resolve } from "../reference/api-description.ts";
import { access, mayAdminister } from "../state/page-session.ts";
import { hrefOf } from "../state/route.ts";
import { databases, type TableSchema } from "../state/server-content.ts";
import { KeyPanel } from "./key-panel.tsx";
import { type Metrics, type Reading, total } from "./metrics.ts";
import { type Readiness, serverHistory } from "./server-history.ts";
import { ServerPlots } from "./server-plots.tsx";

export function ServerView(): JSX.Element {
  const history = serverHistory();
  useEffect(() => history.watch(), [history]);
  const readings = history.readings.value;
  const readiness = history.readiness.value;
  const fault = history.fault.value;
  const last = readings.at(-1);
  if (last === undefined) return fault === "" ? <Waiting what="Loading …" /> : <Fault>{fault}</Fault>;
  return (
    <div class="stack">
      {fault !== "" && <Fault>{fault}</Fault>}
      <Facts reading={last} readiness={readiness} />
      <ServerPlots readings={readings} />
      <div class="server-panels">
        {mayAdminister.value && access.value?.databases === null && (
          <>
            <KeyPanel />
            <BackupPanel />
          </>
        )}
        <BranchList />
        <LimitPanel metrics={last.metrics} />
      </div>
    </div>
  );
}

function Facts({ reading: { metrics }, readiness }: { reading: Reading; readiness: Readiness | undefined }): JSX.Element {
  const value = (name: string): number => total(metrics, name) ?? 0;
  const node = metrics.get("nodejs_version_info")?.[0]?.labels.version ?? "";
  const walBytes = total(metrics, "lodestone_wal_bytes");
  const isReady = readiness?.status === "ready";
  return (
    <>
      <dl class="facts">
        <Fact name="Status">
          <span class={`dot ${isReady ? "good" : "warn"}`} aria-hidden="true" /> {readiness?.status ?? "…"}
        </Fact>
        <Fact name="Uptime">{duration(Date.now() / 1000 - value("process_start_time_seconds"))}</Fact>
        <Fact name="Vectors in memory">{value("lodestone_search_rows").toLocaleString("en")}</Fact>
        <Fact name="Requests in progress">
          {value("lodestone_http_requests_in_progress")} of {value("lodestone_http_requests_limit").toLocaleString("en")}
        </Fact>
        <Fact name="Answers in memory">
          {sizeInWords(value("lodestone_answer_memory_bytes"))} of {sizeInWords(value("lodestone_answer_memory_limit_bytes"))}
        </Fact>
        {walBytes !== undefined && <Fact name="WAL on disk">{sizeInWords(walBytes)}</Fact>}
        <Fact name="Statement timeouts">{value("lodestone_statement_timeouts_total").toLocaleString("en")}</Fact>
        <Fact name="Version">
          {access.value?.version} <span class="muted small">Node {node.replace("v", "")}</span>
        </Fact>
      </dl>
      {readiness?.message !== undefined && <Fault>{readiness.message}</Fault>}
      {readiness?.part !== undefined && (
        <p class="muted small">
          Holds part {readiness.part.index} of {readiness.part.of} of the vectors
          {readiness.part.missing.length === 0 ? "." : `; no server answers for ${readiness.part.missing.join(", ")}.`}
        </p>
      )}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function duration(seconds: number): string {
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${Math.max(0, Math.floor(seconds))} s`;
}

interface BackupList {
  readonly backups: readonly { readonly name: string; readonly createdAt: string }[];
  readonly isRunning: boolean;
}

/** Backups of the embedded database: makes them while the server runs, and lists them. */
function BackupPanel(): JSX.Element {
  const [list, setList] = useState<BackupList | undefined>(undefined);
  const [said, setSaid] = useState("");
  const [isMaking, setMaking] = useState(false);
  const { fault, attempt } = useAttempt();

  const read = (): Promise<void> => attempt(async () => setList(await call<BackupList>("GET", "/backups")));
  useEffect(() => void read(), []);

  async function make(): Promise<void> {
    setMaking(true);
    setSaid("");
    await attempt(async () => {
      const { path, seconds } = await call<{ path: string; seconds: number }>("POST", "/backups");
      setSaid(`Done in ${seconds.toFixed(1)} s: ${path}`);
      setList(await call<BackupList>("GET", "/backups"));
    });
    setMaking(false);
  }

  return (
    <section class="card schema-panel" aria-label="Backups">
      <div class="heading">
        <h2>Backups</h2>
        <button type="button" disabled={isMaking || list?.isRunning === true} onClick={() => void make()}>
          {isMaking || list?.isRunning === true ? "In progress …" : "Back up now"}
        </button>
      </div>
      {fault !== "" && <Fault>{fault}</Fault>}
      <p class="small" role="status">
        {said}
      </p>
      {list?.backups.length === 0 && <p class="muted">None yet.</p>}
      <ul class="column-list backup-list" aria-label="Backups, newest first">
        {list?.backups.map(({ name, createdAt }) => (
          <li key={name} class="column-line">
            <span class="column-name">{name}</span>
            <span class="type">{timeInWords(createdAt)}</span>
          </li>
        ))}
      </ul>
      <p class="muted small">
        A backup is a complete data directory. <code>lodestone restore</code> brings it back.
      </p>
    </section>
  );
}

/** Each is a request. */
const MOST_SHOWN = 50;

interface BranchState {
  readonly createdAt: string;
  /** Of the schema. */
  readonly version: number;
  readonly schema: { readonly tables: readonly TableSchema[] };
}

/** The branches of all databases: when each was created, and what it contains. */
function BranchList(): JSX.Element {
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
  const { answer: state, fault } = useAnswer(() => call<BranchState>("GET", branchPath(place)), [place.database, place.branch]);
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
  return `${counted(tables.length, "table")}, ${counted(vectors, "column")} of vectors · schema version ${version} · ${dayInWords(createdAt)}`;
}

const plain = (value: number): string => value.toLocaleString("en");

/** Of all requests together; beyond it the answer is 429. */
const SHARED = [
  { name: "Concurrent requests", metric: "lodestone_http_requests_limit", inWords: plain },
  { name: "Request bodies in memory", metric: "lodestone_http_body_bytes_limit", inWords: sizeInWords },
  { name: "Answers in memory", metric: "lodestone_answer_memory_limit_bytes", inWords: sizeInWords },
] as const;

/** Of one request; beyond it the answer is 400. `member` leads to it in the body; "[]" are the elements of a list. */
const OWN = [
  { name: "Records per page", operationId: "queryRecords", member: "page.size" },
  { name: "Results per vector search", operationId: "vectorSearch", member: "size" },
  { name: "Query vectors per search", operationId: "vectorSearch", member: "queryVectors" },
  { name: "Operations per transaction", operationId: "runTransaction", member: "operations" },
  { name: "Records per bulk insert", operationId: "insertRecords", member: "records" },
  { name: "Columns per table", operationId: "createTable", member: "columns" },
  { name: "Dimensions per vector", operationId: "createTable", member: "columns.[].vector.dimension" },
] as const;

/** The server's limits: those that all requests share, from its metrics; those of one request, from its API description. */
function LimitPanel({ metrics }: { metrics: Metrics }): JSX.Element {
  const { answer: api, fault } = useAnswer(() => call<ApiDescription>("GET", "/openapi.json"), []);
  const shared = SHARED.map(({ name, metric, inWords }) => ({ name, value: total(metrics, metric), inWords }));
  const own = OWN.map(({ name, ...where }) => ({ name, value: api && mostOf(api, where), inWords: plain }));
  return (
    <section class="card schema-panel" aria-label="Limits">
      <h2>Limits</h2>
      {fault !== "" && <Fault>{fault}</Fault>}
      <dl class="limits">
        {[...shared, ...own].map(
          ({ name, value, inWords }) =>
            value !== undefined && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{inWords(value)}</dd>
              </div>
            ),
        )}
      </dl>
      <p class="muted small">
        All limits, including time limits, are in <code>docs/limits.md</code>; how to run and monitor a server is in{" "}
        <code>docs/reliability.md</code>.
      </p>
    </section>
  );
}

/** undefined: the description does not contain it. */
function mostOf(api: ApiDescription, { operationId, member }: { operationId: string; member: string }): number | undefined {
  const operation = operationsOf(api).find((other) => other.operationId === operationId);
  let schema: JsonSchema | undefined = operation && bodySchema(operation);
  for (const name of member.split(".")) {
    const { items, properties }: JsonSchema = schema === undefined ? {} : resolve(schema, api);
    schema = name === "[]" ? items : properties?.[name];
  }
  return schema?.maximum ?? schema?.maxItems;
}

/** The state of the server: readiness, load, lag and memory as live plots; keys and backups for administrators. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, apiBase, call, messageOf } from "../api/client.ts";
import { sizeInWords } from "../parts/bytes.ts";
import { Fault, Waiting } from "../parts/notice.tsx";
import { access, connection, mayAdminister } from "../state/page-session.ts";
import { BackupPanel } from "./backup-panel.tsx";
import { BranchList } from "./branch-list.tsx";
import { KeyPanel } from "./key-panel.tsx";
import { LimitPanel } from "./limit-panel.tsx";
import { type Reading, withReading } from "./metric-series.ts";
import { parseMetrics, total } from "./metrics-text.ts";
import { ServerPlots } from "./server-plots.tsx";

const READ_EVERY_MS = 2_000;

interface Readiness {
  readonly status: string;
  readonly message?: string;
  readonly pending?: number;
  readonly part?: { readonly index: number; readonly of: number; readonly missing: readonly number[] };
}

/** Kept while the page is open, so that visiting another view loses nothing of the plots. */
let kept: readonly Reading[] = [];

export function ServerView(): JSX.Element {
  const [readings, setReadings] = useState(kept);
  const [readiness, setReadiness] = useState<Readiness | undefined>(undefined);
  const [fault, setFault] = useState("");
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function read(): Promise<void> {
      try {
        // Nobody looks at a page in the background.
        if (!document.hidden) {
          const metrics = parseMetrics(await call<string>("GET", "/metrics"));
          kept = withReading(kept, { time: Date.now() / 1000, metrics });
          const now = await readReadiness();
          if (isOver) return;
          setReadings(kept);
          setReadiness(now);
          setFault("");
        }
      } catch (error) {
        if (!isOver && connection.value === "up") setFault(messageOf(error));
      }
      if (!isOver) timer = setTimeout(() => void read(), READ_EVERY_MS);
    }
    void read();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  const last = readings.at(-1);
  if (last === undefined) return fault === "" ? <Waiting what="Reading the metrics …" /> : <Fault>{fault}</Fault>;
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

/** Not being ready is an answer, not a fault. */
async function readReadiness(): Promise<Readiness> {
  const response = await fetch(`${apiBase()}/readyz`, { cache: "no-store" });
  if (response.status !== 200 && response.status !== 503) throw new ApiError(response.status, `The server answered ${response.status}.`);
  return (await response.json()) as Readiness;
}

function Facts({ reading: { metrics }, readiness }: { reading: Reading; readiness: Readiness | undefined }): JSX.Element {
  const value = (name: string): number => total(metrics, name) ?? 0;
  const node = metrics.get("nodejs_version_info")?.[0]?.labels.version ?? "";
  const isReady = readiness?.status === "ready";
  return (
    <>
      <dl class="facts">
        <Fact name="State">
          <span class={`dot ${isReady ? "good" : "warn"}`} aria-hidden="true" /> {readiness?.status ?? "…"}
        </Fact>
        <Fact name="Up">{duration(Date.now() / 1000 - value("process_start_time_seconds"))}</Fact>
        <Fact name="Vectors in memory">{value("lodestone_search_rows").toLocaleString("en")}</Fact>
        <Fact name="Requests in progress">
          {value("lodestone_http_requests_in_progress")} of {value("lodestone_http_requests_limit").toLocaleString("en")}
        </Fact>
        <Fact name="Held by answers">
          {sizeInWords(value("lodestone_answer_memory_bytes"))} of {sizeInWords(value("lodestone_answer_memory_limit_bytes"))}
        </Fact>
        <Fact name="Timed out">{value("lodestone_statement_timeouts_total").toLocaleString("en")}</Fact>
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

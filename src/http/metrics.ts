/**
 * The content of /metrics (Prometheus text format). Labels are endpoint templates, methods and statuses: never
 * names, ids, keys or statements of users.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { RecordStore } from "../records/record-store.ts";
import type { SearchStore } from "../search/search-store.ts";

interface Share {
  readonly now: number;
  readonly most: number;
}

/** What is being processed right now, and the limits beyond which requests are answered 429. */
export interface Load {
  readonly requests: Share;
  readonly bodyBytes: Share;
  readonly answerBytes: Share;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<"method" | "endpoint" | "status">;
  readonly #seconds: Histogram<"method" | "endpoint">;
  readonly #statementTimeouts: Counter;

  constructor(records: Pick<RecordStore, "walBytes">, search: SearchStore, load: () => Load) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Counter({
      name: "lodestone_http_requests_total",
      help: "Answered requests.",
      labelNames: ["method", "endpoint", "status"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "lodestone_http_request_duration_seconds",
      help: "From the request's headers to the end of its handling.",
      labelNames: ["method", "endpoint"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    });
    this.#statementTimeouts = new Counter({
      name: "lodestone_statement_timeouts_total",
      help: "Statements that ran past their time limit and were rolled back.",
      registers,
    });
    const statusGauge = (name: string, help: string, read: () => number | Promise<number>) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await read());
        },
      });
    statusGauge("lodestone_http_requests_in_progress", "Requests being processed.", () => load().requests.now);
    statusGauge("lodestone_http_requests_limit", "Requests that can be processed at once.", () => load().requests.most);
    statusGauge("lodestone_http_body_bytes", "Request bodies that are held.", () => load().bodyBytes.now);
    statusGauge("lodestone_http_body_bytes_limit", "Request bodies that can be held at once.", () => load().bodyBytes.most);
    statusGauge("lodestone_answer_memory_bytes", "Memory that answers hold.", () => load().answerBytes.now);
    statusGauge("lodestone_answer_memory_limit_bytes", "Memory that answers can hold at once.", () => load().answerBytes.most);
    statusGauge(
      "lodestone_search_lag_seconds",
      "Age of the oldest change that searches do not see yet.",
      () => search.status().lagMs / 1000,
    );
    statusGauge(
      "lodestone_search_lag_p99_seconds",
      "How long recent changes took to be seen by searches: 99 of 100 took no longer.",
      () => search.status().lagP99Ms / 1000,
    );
    statusGauge("lodestone_search_rows", "Vectors in the search store.", () => search.status().rows);
    statusGauge("lodestone_search_memory_bytes", "Memory that the search store holds.", () => search.status().memoryBytes);
    statusGauge(
      "lodestone_search_file_bytes",
      "Disk that the vectors of the search store take which are not in memory.",
      () => search.status().fileBytes,
    );
    statusGauge("lodestone_search_ready", "1 when the search store has caught up after the start.", () => (search.status().ready ? 1 : 0));
    if (search.status().parts !== undefined) {
      statusGauge(
        "lodestone_search_parts_missing",
        "Parts of the vectors for which no server has answered recently: searches of tables held in parts get 503.",
        () => search.status().parts?.missing.length ?? 0,
      );
      statusGauge(
        "lodestone_search_strong_retries",
        "Strong searches since the start that were asked a second time, because a part was already beyond their position.",
        () => search.status().parts?.retries ?? 0,
      );
      statusGauge(
        "lodestone_search_whole_tables",
        "Tables with vectors that are held in full, because links lead to them.",
        () => search.status().parts?.wholeTables ?? 0,
      );
    }
    // The size of a PostgreSQL server's log is reported by its own exporter.
    const { walBytes } = records;
    if (walBytes !== undefined) statusGauge("lodestone_wal_bytes", "Size of the database's write-ahead log on disk.", walBytes);
  }

  observeRequest(method: string, endpoint: string, status: number, seconds: number): void {
    // Methods are a small set here too: anything may stand in a request line.
    const known = /^(GET|HEAD|PUT|PATCH|POST|DELETE|OPTIONS)$/.test(method) ? method : "other";
    this.#requests.inc({ method: known, endpoint, status: String(status) });
    this.#seconds.observe({ method: known, endpoint }, seconds);
  }

  countStatementTimeout(): void {
    this.#statementTimeouts.inc();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  render(): Promise<string> {
    return this.#registry.metrics();
  }
}

/**
 * `lodestone serve`: opens the stores and listens; on SIGTERM or Ctrl-C completes the requests in flight and
 * closes the stores. The process ends after that, after a start that failed, and at the latest when closing takes
 * longer than `shutdownTimeout`.
 */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { MemoryBudget } from "../budget/memory-budget.ts";
import { descriptorLimits, memoryLimits, mostOpenFiles } from "../budget/process-limits.ts";
import { createApp } from "../http/app.ts";
import { TrustedProxies } from "../http/connections/client-address.ts";
import { CONSOLE_PATH } from "../http/console-files.ts";
import { DEFAULT_HTTP_LIMITS } from "../http/http-limits.ts";
import { type AccessKey, hashKey, Keyring } from "../http/keys/access-keys.ts";
import { FollowedKeyFile } from "../http/keys/followed-key-file.ts";
import { readKeyFile } from "../http/keys/key-file.ts";
import { KeyManager } from "../http/keys/key-manager.ts";
import { listen, type RunningServer, resolveListenAddresses } from "../http/server.ts";
import { RESERVE_BYTES } from "../records/engine/embedded/disk-reserve.ts";
import { openRecordStore } from "../records/open.ts";
import type { RecordStore } from "../records/record-store.ts";
import { ReplicaHub } from "../replica/replica-hub.ts";
import { openSearchStore } from "../search/open-search-store.ts";
import type { StartEngine } from "../search/search-engine.ts";
import type { SearchStore } from "../search/search-store.ts";
import { lockSnapshots } from "../search/snapshot/snapshot-schedule.ts";
import { COMMIT } from "./build-identity.ts";
import { DEMO_REF, demoCurl, loadDemoIntoStore } from "./demo-command.ts";
import { endProcess } from "./process-end.ts";
import { enableRelaxedSimd } from "./relaxed-simd.ts";
import { type SearchPartOptions, searchPartSettings } from "./search-part.ts";
import type { StartSteps } from "./start-steps.ts";

export interface ServeOptions extends SearchPartOptions {
  readonly host?: string;
  readonly port: number;
  readonly dataDir: string;
  readonly databaseUrl?: string;
  readonly databaseConnections: number;
  readonly sqlConnections: number;
  readonly searchConnections: number;
  readonly apiKey: readonly string[];
  readonly keyFile?: string;
  readonly mcpWrite?: boolean;
  readonly corsOrigin: readonly string[];
  /** Addresses and networks of proxies. */
  readonly trustProxy: readonly string[];
  /** In seconds. */
  readonly statementTimeout?: number;
  /** In seconds. */
  readonly snapshotInterval: number;
  /** In bytes. */
  readonly journalSize?: number;
  readonly vectors: "auto" | "memory" | "disk";
  readonly maxRequests: number;
  /** In bytes; default: the machine's. */
  readonly maxMemory?: number;
  /** In seconds. */
  readonly maxLag: number;
  /** In seconds, from the signal to the end of the process. */
  readonly shutdownTimeout: number;
  readonly logLevel: string;
  readonly demo?: boolean;
  /** False: the console is not served. */
  readonly console: boolean;
  readonly version: string;
}

/** Of a statement of a search in the database of --search-url. */
const DEFAULT_SEARCH_TIMEOUT_SECONDS = 60;

/** How often a server that listens looks whether its search indexes are loaded, and how many it names. */
const LOOK_EVERY_MS = 250;
const MOST_NAMED = 4;

/** Beside the server's own code, in a checkout's dist/ and in the package. */
const CONSOLE_DIR = fileURLToPath(new URL("../console/", import.meta.url));

/** What was opened, and how it is closed. */
type Closers = (() => unknown)[];

export async function serve(options: ServeOptions, log: Logger, steps: StartSteps): Promise<void> {
  enableRelaxedSimd();
  const signals = new StopSignals(log);
  const closers: Closers = [];
  try {
    await start(options, log, steps, closers, () => signals.started());
    await signals.asked;
  } catch (error) {
    steps.end();
    await closeAll(closers, options, log, error);
    throw error;
  }
  steps.end();
  await closeAll(closers, options, log);
  log.info("stopped");
}

/** Rejects when something cannot be closed, after all the rest has been. */
async function closeAll(closers: Closers, { shutdownTimeout }: ServeOptions, log: Logger, startError?: unknown): Promise<void> {
  const deadline = setTimeout(() => {
    // Of a start that failed, the reason is said after this.
    if (startError !== undefined) log.fatal({ err: startError }, "failed to start");
    log.fatal({ shutdownTimeout }, "not stopped in time: ending the process");
    void endProcess(1);
  }, shutdownTimeout * 1000);
  const errors: unknown[] = [];
  for (const close of closers.toReversed()) {
    try {
      await close();
    } catch (error) {
      log.error({ err: error }, "closing failed");
      errors.push(error);
    }
  }
  clearTimeout(deadline);
  if (errors.length > 0 && startError === undefined) throw errors[0];
}

/** Adds to `closers` what it has opened, also when it fails. */
async function start(options: ServeOptions, log: Logger, steps: StartSteps, closers: Closers, onStarted: () => void): Promise<void> {
  const fixedKeys = options.apiKey.map((key, i): AccessKey => ({ name: `--api-key ${i + 1}`, hash: hashKey(key), scope: "admin" }));
  const fileKeys = options.keyFile === undefined ? [] : await readKeyFile(options.keyFile);
  const hasKeys = fixedKeys.length > 0 || options.keyFile !== undefined;
  const keyring = hasKeys ? new Keyring([...fixedKeys, ...fileKeys]) : new Keyring();
  const keyFile = options.keyFile === undefined ? undefined : new FollowedKeyFile(options.keyFile, keyring, fixedKeys, log);
  const proxies = new TrustedProxies(options.trustProxy);
  const addresses = await resolveListenAddresses(options.host, hasKeys);

  const parts = await searchPartSettings(options);
  const memory = memoryLimits(options.maxMemory);
  const connections = clientConnections(options, log);
  const records = await openRecords(options, memory.databaseBytes, log, steps);
  closers.push(() => records.close());
  const onFault = (error: unknown): void => log.warn({ err: error }, "the search store recovers from a fault");
  const startEngine = await searchEngineOf(options, onFault);
  const snapshotDir = join(options.dataDir, "search");
  // What is kept in a database needs no files.
  const snapshotLock = startEngine === undefined ? await lockSnapshots(snapshotDir, (sentence) => log.warn(sentence)) : undefined;
  closers.push(() => snapshotLock?.release());
  const searchOptions = {
    ...(snapshotLock === undefined ? {} : { snapshotDir, snapshotsLost: snapshotLock.lost }),
    ...(startEngine === undefined ? {} : { startEngine }),
    snapshotEveryMs: options.snapshotInterval * 1000,
    ...(options.journalSize === undefined ? {} : { journalBytes: options.journalSize }),
    onDiskFromBytes: onDiskFrom(options.vectors, memory.indexBytes),
    maxIndexBytes: memory.indexBytes,
    onFault,
    onRecovery: (sentence: string) => log.info(sentence),
  };
  const partStore =
    parts && new (await import("../search/parts/parts-search-store.ts")).PartsSearchStore(records, { ...searchOptions, ...parts });
  const search = partStore ?? (await openSearchStore(records, searchOptions));
  closers.push(() => search.close());
  if (options.demo === true) {
    steps.begin("loading the demo");
    await loadDemoIntoStore(records);
  }

  const replicas = new ReplicaHub(records, { directory: join(options.dataDir, "replicas"), onFault });
  closers.push(() => replicas.close());
  const limits = { concurrentRequests: options.maxRequests, concurrentBodyBytes: memory.bodyBytes, connections };
  const app = createApp({
    backupDir: join(options.dataDir, "backups"),
    ...(options.console ? { consoleDir: CONSOLE_DIR } : {}),
    records,
    search,
    replicas,
    keyring,
    ...(hasKeys ? { keys: new KeyManager(fixedKeys, keyFile) } : {}),
    log,
    limits,
    memory: new MemoryBudget(memory.answers),
    corsOrigins: options.corsOrigin,
    agentsWrite: options.mcpWrite === true,
    proxies,
    hostNames: options.host === undefined ? [] : [options.host],
    version: options.version,
    commit: COMMIT,
    maxLagMs: options.maxLag * 1000,
    searchPart: partStore && parts && { local: partStore.local, secret: parts.secret },
  });
  const server = await listen(app, { addresses, port: options.port, limits });
  closers.push(() => server.close());
  closers.push(() => keyFile?.close());
  onStarted();
  steps.end();
  log.info(
    { urls: server.urls, database: options.databaseUrl === undefined ? "embedded" : "server", version: options.version, commit: COMMIT },
    "listening",
  );
  printWelcome(options, server, hasKeys);
  sayUntilReady(search, steps, log);
}

/** Smaller columns are one index in the search thread (column-index.ts), and take little. */
const LEAST_ON_DISK_BYTES = 64 * 2 ** 20;

/** From how many bytes of float32 on the vectors of a column are on disk. */
function onDiskFrom(where: ServeOptions["vectors"], indexBytes: number): number {
  if (where === "memory") return Number.POSITIVE_INFINITY;
  return where === "disk" ? LEAST_ON_DISK_BYTES : Math.max(LEAST_ON_DISK_BYTES, indexBytes / 4);
}

/** Requests are answered from now on, but searches wait until what they need has been loaded. */
function sayUntilReady(search: SearchStore, steps: StartSteps, log: Logger): void {
  let isSaid = false;
  const words = (): string => {
    const { pending } = search.status();
    const more = pending.length > MOST_NAMED ? ` and of ${pending.length - MOST_NAMED} more` : "";
    return `loading the search index of ${pending.slice(0, MOST_NAMED).join(", ")}${more}`;
  };
  const look = (): void => {
    const { ready, rows } = search.status();
    if (!ready && !isSaid) steps.begin(words);
    isSaid = true;
    if (!ready) return void setTimeout(look, LOOK_EVERY_MS).unref();
    steps.end();
    log.info({ rows }, "ready");
  };
  setTimeout(look, LOOK_EVERY_MS).unref();
}

function openRecords(options: ServeOptions, maxMemoryBytes: number, log: Logger, steps: StartSteps): Promise<RecordStore> {
  const common = {
    onStep: (words: string) => steps.begin(words),
    ...(options.statementTimeout === undefined ? {} : { statementTimeoutMs: options.statementTimeout * 1000 }),
    onFault: (error: unknown) => log.error({ err: error }, "the record store has a fault"),
    onRecovery: (sentence: string) => log.info(sentence),
  };
  return openRecordStore(
    options.databaseUrl === undefined
      ? { ...common, dataDir: options.dataDir, maxMemoryBytes, reserveBytes: RESERVE_BYTES }
      : { ...common, databaseUrl: options.databaseUrl, poolSize: options.databaseConnections, sqlPoolSize: options.sqlConnections },
  );
}

/** As many as the process may open besides its files and its connections to databases. */
function clientConnections(options: ServeOptions, log: Logger): number {
  const ofDatabases =
    (options.databaseUrl === undefined ? 0 : options.databaseConnections + options.sqlConnections) +
    (options.searchUrl === undefined ? 0 : options.searchConnections);
  const openFiles = mostOpenFiles();
  const { connections } = descriptorLimits(Math.max(1, openFiles - ofDatabases));
  if (connections >= DEFAULT_HTTP_LIMITS.connections) return DEFAULT_HTTP_LIMITS.connections;
  log.warn({ openFiles, connections }, "this process may open few files (ulimit -n), so it takes fewer connections of clients");
  return connections;
}

/** What holds the vectors where --search-url names a database; undefined: this process. */
async function searchEngineOf(options: ServeOptions, onFault: (error: unknown) => void): Promise<StartEngine | undefined> {
  const { searchUrl, searchConnections: connections, statementTimeout = DEFAULT_SEARCH_TIMEOUT_SECONDS } = options;
  if (searchUrl === undefined) return undefined;
  const { startSqlEngine } = await import("../search/sql/sql-engine.ts");
  return startSqlEngine(searchUrl, { connections, statementTimeoutMs: statementTimeout * 1000 }, onFault);
}

/**
 * While the service starts, a signal ends the process at once, and so does the second one later: what was acknowledged
 * is on disk either way. The first one after the start asks for an orderly stop.
 */
class StopSignals {
  readonly asked: Promise<void>;
  #is: "starting" | "serving" | "stopping" = "starting";

  constructor(log: Logger) {
    this.asked = new Promise((resolve) => {
      const listener = (signal: NodeJS.Signals): void => {
        if (this.#is === "serving") {
          this.#is = "stopping";
          log.info({ signal }, "stopping: completing requests in flight");
          resolve();
        } else {
          log.warn({ signal }, `ending the process at once, while ${this.#is}`);
          void endProcess(1);
        }
      };
      process.on("SIGINT", listener).on("SIGTERM", listener);
    });
  }

  started(): void {
    this.#is = "serving";
  }
}

function printWelcome(options: ServeOptions, server: RunningServer, hasKeys: boolean): void {
  const url = server.urls[0] as string;
  const where =
    options.databaseUrl === undefined ? `Data in ${resolve(options.dataDir)}.` : "Data in the PostgreSQL server of --database-url.";
  const who = hasKeys ? "API keys are required." : "No API keys: the server listens on loopback only.";
  const page = options.console ? `\nConsole: ${url}${CONSOLE_PATH}\n` : "";
  const key = hasKeys ? " -H 'Authorization: Bearer <key>'" : "";
  const first = options.demo === true ? demoCurl(url) : `curl -s -X PUT ${url}/db/${DEMO_REF.database}:${DEMO_REF.branch}`;
  console.log(`Lodestone ${options.version} listens on ${server.urls.join(" and ")}\n${where} ${who}\n${page}\nTry:\n${first}${key}\n`);
}

/**
 * `lodestone serve`: opens the stores and listens; on SIGTERM or Ctrl-C completes the requests in flight and
 * closes the stores.
 */
import { unwatchFile, watchFile } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Logger, pino } from "pino";
import { MemoryBudget } from "../budget/memory-budget.ts";
import { memoryLimits } from "../budget/memory-limits.ts";
import { createApp } from "../http/app.ts";
import { CONSOLE_PATH } from "../http/console-files.ts";
import { type AccessKey, hashKey, Keyring } from "../http/keys/access-keys.ts";
import { readKeyFile } from "../http/keys/key-file.ts";
import { KeyManager } from "../http/keys/key-manager.ts";
import { resolveListenAddresses } from "../http/listen-addresses.ts";
import { listen, type RunningServer } from "../http/server.ts";
import { openRecordStore } from "../records/open.ts";
import { openSearchStore } from "../search/open-search-store.ts";
import { PartsSearchStore } from "../search/parts/parts-search-store.ts";
import type { StartEngine } from "../search/search-engine.ts";
import { lockSnapshots } from "../search/snapshot/lock-snapshots.ts";
import { startSqlEngine } from "../search/sql/sql-engine.ts";
import { DEMO_REF, demoCurl, loadDemoIntoStore } from "./load-demo.ts";
import { enableRelaxedSimd } from "./relaxed-simd.ts";
import { type SearchPartOptions, searchPartSettings } from "./search-part.ts";

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
  readonly corsOrigin: readonly string[];
  /** In seconds. */
  readonly statementTimeout?: number;
  /** In seconds. */
  readonly snapshotInterval: number;
  /** In bytes. */
  readonly journalSize?: number;
  readonly maxRequests: number;
  /** In bytes; default: the machine's. */
  readonly maxMemory?: number;
  /** In seconds. */
  readonly maxLag: number;
  readonly logLevel: string;
  readonly demo?: boolean;
  /** False: the console is not served. */
  readonly console: boolean;
  readonly version: string;
}

const KEY_FILE_POLL_MS = 1_000;
/** Of a statement of a search in the database of --search-url. */
const DEFAULT_SEARCH_TIMEOUT_SECONDS = 60;

/** Beside the server's own code, in a checkout's dist/ and in the package. */
const CONSOLE_DIR = fileURLToPath(new URL("../console/", import.meta.url));

export async function serve(options: ServeOptions): Promise<void> {
  enableRelaxedSimd();
  const log = pino({ level: options.logLevel, redact: ["req.headers.authorization"] }, pino.destination({ fd: 2, sync: true }));
  const fixedKeys = options.apiKey.map((key, i): AccessKey => ({ name: `--api-key ${i + 1}`, hash: hashKey(key), scope: "admin" }));
  const fileKeys = options.keyFile === undefined ? [] : await readKeyFile(options.keyFile);
  const hasKeys = fixedKeys.length > 0 || options.keyFile !== undefined;
  const keyring = hasKeys ? new Keyring([...fixedKeys, ...fileKeys]) : new Keyring();
  const addresses = await resolveListenAddresses(options.host, hasKeys);

  const parts = await searchPartSettings(options);
  const memory = memoryLimits(options.maxMemory);
  const timeLimits = options.statementTimeout === undefined ? {} : { statementTimeoutMs: options.statementTimeout * 1000 };
  const records = await openRecordStore(
    options.databaseUrl === undefined
      ? { dataDir: options.dataDir, ...timeLimits, maxMemoryBytes: memory.databaseBytes }
      : {
          databaseUrl: options.databaseUrl,
          ...timeLimits,
          poolSize: options.databaseConnections,
          sqlPoolSize: options.sqlConnections,
        },
  );
  const onFault = (error: unknown): void => log.warn({ err: error }, "the search store recovers from a fault");
  const startEngine = await searchEngineOf(options, onFault).catch(async (error: unknown) => {
    await records.close();
    throw error;
  });
  const snapshotDir = join(options.dataDir, "search");
  // What is kept in a database needs no files.
  const snapshotLock = startEngine === undefined ? await lockSnapshots(snapshotDir, (sentence) => log.warn(sentence)) : undefined;
  const searchOptions = {
    ...(snapshotLock === undefined ? {} : { snapshotDir }),
    ...(startEngine === undefined ? {} : { startEngine }),
    snapshotEveryMs: options.snapshotInterval * 1000,
    ...(options.journalSize === undefined ? {} : { journalBytes: options.journalSize }),
    maxIndexBytes: memory.indexBytes,
    onFault,
  };
  const partStore = parts === undefined ? undefined : new PartsSearchStore(records, { ...searchOptions, ...parts });
  const search = partStore ?? (await openSearchStore(records, searchOptions));
  let server: RunningServer;
  try {
    if (options.demo === true) await loadDemoIntoStore(records);
    const limits = { concurrentRequests: options.maxRequests, concurrentBodyBytes: memory.bodyBytes };
    const app = createApp({
      backupDir: join(options.dataDir, "backups"),
      ...(options.console ? { consoleDir: CONSOLE_DIR } : {}),
      records,
      search,
      keyring,
      ...(hasKeys ? { keys: new KeyManager(keyring, fixedKeys, options.keyFile) } : {}),
      log,
      limits,
      memory: new MemoryBudget(memory.answers),
      corsOrigins: options.corsOrigin,
      hostNames: options.host === undefined ? [] : [options.host],
      version: options.version,
      maxLagMs: options.maxLag * 1000,
      searchPart: partStore && parts && { local: partStore.local, secret: parts.secret },
    });
    server = await listen(app, { addresses, port: options.port });
  } catch (error) {
    await search.close();
    snapshotLock?.release();
    await records.close();
    throw error;
  }
  if (options.keyFile !== undefined) followKeyFile(options.keyFile, keyring, fixedKeys, log);
  log.info({ urls: server.urls, database: records.kind, version: options.version }, "listening");
  printWelcome(options, server, hasKeys);

  await untilAskedToStop(log);
  if (options.keyFile !== undefined) unwatchFile(options.keyFile);
  await server.close();
  await search.close();
  snapshotLock?.release();
  await records.close();
  log.info("stopped");
}

/** What holds the vectors where --search-url names a database; undefined: this process. */
async function searchEngineOf(options: ServeOptions, onFault: (error: unknown) => void): Promise<StartEngine | undefined> {
  const { searchUrl, searchConnections: connections, statementTimeout = DEFAULT_SEARCH_TIMEOUT_SECONDS } = options;
  if (searchUrl === undefined) return undefined;
  return startSqlEngine(searchUrl, { connections, statementTimeoutMs: statementTimeout * 1000 }, onFault);
}

function followKeyFile(path: string, keyring: Keyring, fixedKeys: readonly AccessKey[], log: Logger): void {
  watchFile(path, { interval: KEY_FILE_POLL_MS, persistent: false }, () => {
    readKeyFile(path).then(
      (keys) => {
        keyring.replace([...fixedKeys, ...keys]);
        log.info({ keys: keys.length }, "key file read again");
      },
      // A half-written or removed file must neither let anyone in nor lock everyone out.
      (error: Error) => log.error({ err: error }, "key file cannot be read; the keys stay unchanged"),
    );
  });
}

/**
 * The first signal asks for an orderly stop, the second ends the process at once (what was acknowledged is on disk
 * either way).
 */
function untilAskedToStop(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const listener = (signal: NodeJS.Signals) => {
      if (asked) process.exit(1);
      asked = true;
      log.info({ signal }, "stopping: completing requests in flight");
      resolve();
    };
    process.on("SIGINT", listener).on("SIGTERM", listener);
  });
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

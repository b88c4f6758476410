/** The real application with the real stores in this process, at limits that a test can reach and wait for. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import type { MemoryBudget } from "../../src/budget/memory-budget.ts";
import { createApp } from "../../src/http/app.ts";
import type { TrustedProxies } from "../../src/http/connections/client-address.ts";
import type { HttpLimits } from "../../src/http/http-limits.ts";
import { Keyring } from "../../src/http/keys/access-keys.ts";
import { listen, type RunningServer } from "../../src/http/server.ts";
import { openRecordStore } from "../../src/records/open.ts";
import type { RecordStore } from "../../src/records/record-store.ts";
import { openSearchStore } from "../../src/search/open-search-store.ts";
import type { SearchStore } from "../../src/search/search-store.ts";
import { copyTemplate } from "../support/server-template.ts";

const CONSOLE_DIR = fileURLToPath(new URL("../../dist/console/", import.meta.url));

export interface ServerSettings {
  readonly keyring?: Keyring;
  readonly memory?: MemoryBudget;
  readonly proxies?: TrustedProxies;
  readonly addresses?: readonly string[];
  readonly backupDir?: string;
}

/** What the server logged, as JSON lines. */
export type Log = readonly { readonly msg: string; readonly [name: string]: unknown }[];

export class RealStores {
  readonly records: RecordStore;
  readonly search: SearchStore;
  readonly dataDir: string;

  private constructor(records: RecordStore, search: SearchStore, dataDir: string) {
    this.records = records;
    this.search = search;
    this.dataDir = dataDir;
  }

  /** With an empty database. */
  static async open(): Promise<RealStores> {
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-real-app-"));
    copyTemplate(dataDir);
    const records = await openRecordStore({ dataDir });
    return new RealStores(records, await openSearchStore(records), dataDir);
  }

  async close(): Promise<void> {
    await this.search.close();
    await this.records.close();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  async listen(limits: Partial<HttpLimits>, settings: ServerSettings = {}): Promise<{ server: RunningServer; log: Log }> {
    const { keyring = new Keyring(), addresses = ["127.0.0.1"], ...options } = settings;
    const log: Log[number][] = [];
    const { records, search } = this;
    const logger = pino({ level: "warn" }, { write: (line: string) => log.push(JSON.parse(line) as Log[number]) });
    const app = createApp({ records, search, keyring, ...options, log: logger, limits, version: "0.0.0", consoleDir: CONSOLE_DIR });
    return { server: await listen(app, { addresses, port: 0, limits }), log };
  }

  async withServer(
    limits: Partial<HttpLimits>,
    work: (server: RunningServer, log: Log) => Promise<void>,
    settings: ServerSettings = {},
  ): Promise<void> {
    const { server, log } = await this.listen(limits, settings);
    try {
      await work(server, log);
    } finally {
      await server.close();
    }
  }
}

/** An open connection whose responses are collected. */
export class Talk {
  readonly socket: Socket;
  text = "";
  readonly closed: Promise<void>;
  /** Of the connection, when it was broken. */
  error: NodeJS.ErrnoException | undefined;

  /** @param from  the address of this side: any of 127.0.0.0/8. */
  constructor(server: RunningServer, from?: string) {
    this.socket = connect({ port: server.port, host: "127.0.0.1", ...(from === undefined ? {} : { localAddress: from }) });
    this.socket.on("data", (chunk) => {
      this.text += chunk.toString();
    });
    this.socket.on("error", (error) => {
      this.error = error;
    });
    this.closed = new Promise((resolve) => this.socket.on("close", () => resolve()));
  }

  send(text: string): void {
    this.socket.write(text);
  }

  /** Resolves when what came fits; rejects when the connection ends before. */
  async answered(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text)) {
      const ended = this.closed.then(() => true);
      const more = new Promise<boolean>((resolve) => this.socket.once("data", () => resolve(false)));
      if ((await Promise.race([more, ended])) && !pattern.test(this.text))
        throw new Error(`no answer like ${pattern}: ${JSON.stringify(this.text.slice(0, 300))}`);
    }
  }
}

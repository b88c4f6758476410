/**
 * The worker's server, one database in it with the suite's tables, and three ways
 * to access it: the published SDK's client, its XataApiClient, and plain fetch (like curl). The databaseURL
 * is the one line that users change.
 */
import { XataApiClient } from "@xata.io/client";
import { sharedServer } from "../../support/shared-server.ts";
import { TABLES, XataClient } from "./schema.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the point of these tests is to look into answers of any shape
  readonly body: any;
}

export interface World {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  readonly port: number;
  readonly database: string;
  readonly client: XataClient;
  readonly api: XataApiClient;
  /** pathParams for XataApiClient's calls on the database's main branch. */
  readonly branchPath: { readonly workspace: string; readonly region: string; readonly dbBranchName: string };
  /** A request without the SDK. `path` follows `/db/{database}:main`. */
  plain(method: string, path: string, body?: unknown): Promise<Answer>;
  /** A request without the SDK; `path` begins at the root. */
  plainRoot(method: string, path: string, body?: unknown): Promise<Answer>;
  stop(): Promise<void>;
}

export const API_KEY = "any-key-will-do-when-none-is-configured";
export const WORKSPACE = "anything";
export const REGION = "anywhere";

async function request(url: string, method: string, body?: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
}

/** Makes the suite's tables in `database` through the SDK's own setup calls. */
export async function openWorld(database: string): Promise<World> {
  const server = await sharedServer();
  const port = Number(new URL(server.url).port);
  const api = apiClient(port);
  const branchPath = { workspace: WORKSPACE, region: REGION, dbBranchName: `${database}:main` };
  try {
    await api.databases.createDatabase({ pathParams: { workspaceId: WORKSPACE, dbName: database }, body: { region: REGION } });
    for (const { name } of TABLES) await api.table.createTable({ pathParams: { ...branchPath, tableName: name } });
    for (const { name, columns } of TABLES) {
      await api.table.setTableSchema({
        pathParams: { ...branchPath, tableName: name },
        body: { columns: structuredClone(columns) as never },
      });
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  return {
    url: server.url,
    port,
    database,
    client: sdkClient(port, database),
    api,
    branchPath,
    plain: (method, path, body) => request(`${server.url}/db/${database}:main${path}`, method, body),
    plainRoot: (method, path, body) => request(`${server.url}${path}`, method, body),
    stop: async () => {
      await server.stop();
    },
  };
}

export function sdkClient(port: number, database: string, branch = "main"): XataClient {
  return new XataClient({ databaseURL: `http://w.r.localhost:${port}/db/${database}`, apiKey: API_KEY, branch });
}

export function apiClient(port: number): XataApiClient {
  const host = { main: `http://localhost:${port}`, workspaces: `http://{workspaceId}.{region}.localhost:${port}` };
  return new XataApiClient({ apiKey: API_KEY, host });
}

/** The record as plain data without its metadata, for comparisons. */
export function values(record: object | null): unknown {
  if (record === null) return null;
  const { xata: _xata, ...columns } = JSON.parse(JSON.stringify(record)) as Record<string, unknown>;
  return columns;
}

export const RECORD_ID = /^rec_[0-9a-v]{20}$/;

/**
 * The server that the test files of one worker share, one file after the other, because starting and stopping one costs more than most
 * files do. Each file has databases of its own, which are removed when it ends. Files that end their server, or give it options of their
 * own, start one (`server.ts`).
 *
 * Usage: `let server; beforeAll(async () => { server = await sharedServer(); }); afterAll(() => server?.stop());`
 */

import { askHost } from "./ask-host.ts";
import { ServerClient } from "./server-client.ts";

export class SharedServer extends ServerClient {
  readonly url: string;
  readonly dataDir: string;

  constructor(url: string, dataDir: string) {
    super();
    this.url = url;
    this.dataDir = dataDir;
  }

  /** Removes all databases. */
  async stop(): Promise<void> {
    const { body } = await this.get("/dbs");
    for (const { name } of body.databases) {
      const { status, text } = await this.delete(`/workspaces/tests/dbs/${name}`);
      if (status >= 300) throw new Error(`the shared server does not remove "${name}": ${text}`);
    }
  }
}

let isUsed = false;

export async function sharedServer(): Promise<SharedServer> {
  isUsed = true;
  const { url, dataDir } = await askHost<{ url: string; dataDir: string }>("server");
  return new SharedServer(url, dataDir);
}

/** What it has logged, if tests of this process use it. */
export async function sharedLog(): Promise<{ url: string; log: string }[]> {
  return isUsed ? [await askHost<{ url: string; log: string }>("server")] : [];
}

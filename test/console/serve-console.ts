/** A real server and Chromium for all tests of one suite. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { closeChromium, launchChromium } from "../browser/launch.ts";
import { type ServerOptions, startServer, type TestServer } from "../support/server.ts";
import { type ConsolePage, openConsole, type PageOptions } from "./console-page.ts";

export interface ServedConsole {
  readonly server: TestServer;
  /** Opens another page of it. @param hash  the view. @param url  another address of the server. */
  open(hash: string, options?: PageOptions, url?: string): Promise<ConsolePage>;
}

/**
 * Both are there while the tests of the suite that calls it run.
 * @param fill  writes what the tests need, once.
 */
export function serveConsole(
  executablePath: string,
  fill: (server: TestServer) => Promise<void> = async () => {},
  options: ServerOptions = {},
): ServedConsole {
  let browser: Browser | undefined;
  let server: TestServer | undefined;
  beforeAll(async () => {
    browser = await launchChromium(executablePath);
    server = await startServer(options);
    await fill(server);
  });
  afterAll(async () => {
    await closeChromium(browser);
    await server?.stop();
  });
  return {
    get server() {
      return server as TestServer;
    },
    open: (hash, page, url = (server as TestServer).url) => openConsole(browser as Browser, url, hash, page),
  };
}

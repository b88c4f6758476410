/** Chromium as tests run it: no sandbox (containers), and no traffic of its own. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { WAIT_MS } from "../support/patience.ts";

const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const CLOSE_LIMIT_MS = 20_000;

/** Closes it. One that does not answer is left to the end of this process, which ends it: what was tested does not depend on it. */
export async function closeChromium(browser: Browser | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isLate = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_LIMIT_MS);
  });
  await Promise.race([browser?.close(), isLate]);
  clearTimeout(timer);
}

/** A page that waits as patiently as tests do. */
export async function newPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(WAIT_MS);
  return page;
}

/** @param more  arguments, for a browser that is to be told something else as well. */
export function launchChromium(executablePath: string, more: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, timeout: WAIT_MS, args: [...ARGUMENTS, ...more] });
}

/** One that keeps what its pages store, and is started again with it. @param profile  a folder. */
export async function launchProfile(executablePath: string, profile: string): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext(profile, { executablePath, timeout: WAIT_MS, args: ARGUMENTS });
  context.setDefaultTimeout(WAIT_MS);
  return context;
}

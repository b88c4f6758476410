/** Chromium as tests run it: no sandbox (containers), and no traffic of its own. */
import { type Browser, chromium } from "playwright-core";

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

/** @param more  arguments, for a browser that is to be told something else as well. */
export function launchChromium(executablePath: string, more: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...ARGUMENTS, ...more] });
}

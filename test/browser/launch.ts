/** Chromium as tests run it: without a sandbox (containers), and without traffic of its own. */
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

/** @param more  additional arguments. */
export function launchChromium(executablePath: string, more: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...ARGUMENTS, ...more] });
}

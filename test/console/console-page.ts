/**
 * Opens the console in Chromium, and records what must never happen: a violation of its policy, an error in a
 * script, a request to another host.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page, Request } from "playwright-core";
import { expect } from "vitest";
import { newPage } from "../browser/launch.ts";
import { countPage } from "./page-coverage.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

declare const axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }> };

export interface ConsolePage {
  readonly page: Page;
  /** axe-core finds no fault in what is shown. */
  expectAccessible(): Promise<void>;
  /** Resolves when all that was asked for has come and has been painted, and nothing more is asked for. */
  untilQuiet(): Promise<void>;
  /** How much has moved by itself since the page was loaded: the browser's sum. */
  layoutShift(): Promise<number>;
  /** Closes it. @throws if any of this was recorded. */
  close(): Promise<void>;
}

export interface PageOptions {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
  /** As the browser's computer has it; undefined: that of this one. */
  readonly timezoneId?: string;
  readonly height?: number;
  /**
   * The page has an editor with coloured words. When typed text replaces a selection, Chromium itself writes a
   * style attribute, so that the text looks like what it replaces. The policy refuses the attribute and reports
   * it. The editor draws the line again, so nothing is lost. That one report is ignored.
   */
  readonly isRichText?: boolean;
  /** What the page asks for comes one at a time, and is painted before the next comes: as on a slow machine, on each. */
  readonly isSlow?: boolean;
}

export async function openConsole(browser: Browser, url: string, hash: string, options: PageOptions = {}): Promise<ConsolePage> {
  const { colorScheme = "light", width = 1440, height = 900, timezoneId, isRichText = false, isSlow = false } = options;
  // Scripts of the test, such as axe, run in a world of their own, to which the page's policy does not apply.
  const page = await newPage(browser, { colorScheme, viewport: { width, height }, ...(timezoneId === undefined ? {} : { timezoneId }) });
  const finishCount = await countPage(page);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    if (!/Content.Security.Policy|Refused to/i.test(text)) return;
    if (!isRichText || !/style-src-attr|Applying inline style/.test(text)) faults.push(text);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith("data:")) faults.push(`request to ${request.url()}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) =>
      console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  const pending = new Set<Request>();
  page.on("request", (request) => isLive(request) || pending.add(request));
  for (const event of ["requestfinished", "requestfailed"] as const)
    page.on(event as "requestfinished", (request) => pending.delete(request));
  if (isSlow) await oneAtATime(page);
  await page.goto(`${url}/console${hash}`);
  return {
    page,
    async untilQuiet() {
      for (let quiet = 0; quiet < 3; quiet = pending.size === 0 ? quiet + 1 : 0)
        await page.evaluate(() => new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve), 100)));
    },
    async expectAccessible() {
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
    },
    layoutShift: () =>
      page.evaluate(
        () =>
          new Promise<number>((resolve) => {
            new PerformanceObserver((list) => {
              resolve(list.getEntries().reduce((sum, entry) => sum + (entry as unknown as { value: number }).value, 0));
            }).observe({ type: "layout-shift", buffered: true });
            // Without any there is no entry.
            requestAnimationFrame(() => requestAnimationFrame(() => resolve(0)));
          }),
      ),
    async close() {
      await finishCount();
      await page.close();
      expect(faults).toEqual([]);
    },
  };
}

/** What the browser needs before it paints at all is not held. */
const BEFORE_THE_FIRST_PAINT = ["document", "stylesheet"];

/** The map follows its records by an answer that does not end. */
const isLive = (request: Request): boolean => request.url().endsWith("/replica");

async function oneAtATime(page: Page): Promise<void> {
  let before: Promise<unknown> = Promise.resolve();
  await page.route("**/*", (route) => {
    const request = route.request();
    if (BEFORE_THE_FIRST_PAINT.includes(request.resourceType())) return route.continue();
    const answered = before.then(async () => {
      await route.continue();
      const response = await request.response();
      if (!isLive(request)) await response?.finished();
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    });
    // A request that the page gave up, and a page that is closed, hold nobody.
    before = answered.catch(() => {});
    return before;
  });
}

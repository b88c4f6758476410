/** `npm run coverage`: what a page of the console executes is counted like what processes execute. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

/**
 * To be called before the page loads anything.
 * @returns what is to be called before it is closed. Both do nothing unless coverage is counted. A page that reloads
 * may lose the counts from before.
 */
export async function countPage(page: Page): Promise<() => Promise<void>> {
  const { coverage } = page;
  const folder = process.env.NODE_V8_COVERAGE;
  // Other browsers do not count.
  if (folder === undefined || page.context().browser()?.browserType().name() !== "chromium") return async () => {};
  await coverage.startJSCoverage({ resetOnNavigation: false });
  return async () => {
    const scripts = (await coverage.stopJSCoverage()).filter(({ url }) => new URL(url).pathname.includes("/console/assets/"));
    // As Node writes its own, with the addresses of the files that the server served.
    const result = scripts.map(({ url, scriptId, functions }) => ({
      scriptId,
      url: new URL(`../../dist/${new URL(url).pathname.replace(/^.*\/(?=console\/assets\/)/, "")}`, import.meta.url).href,
      functions,
    }));
    writeFileSync(join(folder, `coverage-page-${randomUUID()}.json`), JSON.stringify({ result }));
  };
}

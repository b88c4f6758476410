/** A page of the console in Chromium, watched: what breaks its policy, fails, or goes to another host is kept, and must be nothing in the end. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

declare const axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }> };

export interface ConsolePage {
  readonly page: Page;
  /** axe-core finds nothing to object to in what is shown. */
  expectAccessible(): Promise<void>;
  /** Closes it. @throws when its policy was broken, a script failed, or it spoke to another host. */
  close(): Promise<void>;
}

export interface PageOptions {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
  readonly height?: number;
  /**
   * The page has an editor whose words are coloured. Where text takes the place of a selection, Chromium gives it the look of what was selected (the colour and
   * the weight of a keyword), in a style attribute that it writes itself, also into an element that is `plaintext-only`. The policy refuses the attribute, and the
   * editor makes the line anew: nothing is lost but the report, which is passed over.
   */
  readonly isRichText?: boolean;
}

export async function openConsole(browser: Browser, url: string, hash: string, options: PageOptions = {}): Promise<ConsolePage> {
  const { colorScheme = "light", width = 1440, height = 900, isRichText = false } = options;
  // axe is put into the page by the test, as no script of its own could be: it runs in a world that the policy does not bind.
  const page = await browser.newPage({ colorScheme, viewport: { width, height } });
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
  await page.goto(`${url}/console${hash}`);
  return {
    page,
    async expectAccessible() {
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
    },
    async close() {
      await page.close();
      expect(faults).toEqual([]);
    },
  };
}

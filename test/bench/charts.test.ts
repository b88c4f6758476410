import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium, newPage } from "../browser/launch.ts";
import { describeWith } from "../support/requirements.ts";

/**
 * The charts of the documents as a reader's browser shows them: no text is cut off, and both light and dark
 * mode have contrast.
 */

const FOLDER = fileURLToPath(new URL("../../docs/", import.meta.url));
const CHARTS = readdirSync(FOLDER).filter((name) => /^bench-.*\.svg$/.test(name));

it("there are charts", () => expect(CHARTS.length).toBeGreaterThan(0));

describeWith("chromium", "charts", (executablePath) => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium(executablePath);
  });
  afterAll(() => browser?.close());

  it.each(CHARTS)("%s: every text lies inside the picture", async (name) => {
    const page = await newPage(browser);
    await page.setContent(readFileSync(`${FOLDER}${name}`, "utf8"));
    const outside = await page.evaluate(() => {
      const svg = document.querySelector("svg") as SVGSVGElement;
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].filter(({ textContent }) => textContent?.trim());
      const cut = texts.filter((text) => {
        const { left, top, right, bottom } = text.getBoundingClientRect();
        return left < frame.left || top < frame.top || right > frame.right || bottom > frame.bottom;
      });
      return { count: texts.length, cut: cut.map(({ textContent }) => textContent), title: svg.querySelector("title")?.textContent };
    });
    await page.close();
    expect(outside.count).toBeGreaterThan(5);
    expect(outside.cut).toEqual([]);
    expect(outside.title).toMatch(/\w/);
  });

  it.each(CHARTS)("%s: text and background contrast in light and in dark mode", async (name) => {
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await newPage(browser, { colorScheme });
      await page.setContent(readFileSync(`${FOLDER}${name}`, "utf8"));
      const [ground, ...inks] = await page.evaluate(() => {
        const luminance = (element: Element) => {
          const [r = 0, g = 0, b = 0] = (getComputedStyle(element).fill.match(/\d+/g) ?? []).map(Number);
          return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
        };
        const texts = [...document.querySelectorAll("svg text")].filter(({ textContent }) => textContent?.trim());
        return [document.querySelector("svg rect") as Element, ...texts].map(luminance);
      });
      await page.close();
      expect(ground! > 0.5).toBe(colorScheme === "light");
      for (const ink of inks) expect(Math.abs(ink - ground!)).toBeGreaterThan(0.4);
    }
  });
});

import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium } from "../../browser/launch.ts";
import { LIMIT_MS } from "../../support/patience.ts";
import { freePort } from "../../support/ports.ts";
import { describeWith } from "../../support/requirements.ts";
import { startServer as startLodestone, type TestServer } from "../../support/server.ts";
import { runTool } from "../outcome.ts";
import { createProject, removeFolder } from "../packed.ts";
import { serveFolder, startServer } from "../page.ts";
import { describeRuntime, tool } from "../tools.ts";

const EXAMPLES = fileURLToPath(new URL("../../../examples/", import.meta.url));

/** The unmodified example, with the library's tarball. */
function install(name: string): string {
  const paths = readdirSync(join(EXAMPLES, name), { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(EXAMPLES, name).length + 1));
  const files = Object.fromEntries(paths.map((path) => [path, readFileSync(join(EXAMPLES, name, path), "utf8")]));
  return createProject(name, files, JSON.parse(files["package.json"] ?? "{}") as object);
}

it("node-script", () => {
  const project = install("node-script");
  try {
    for (let run = 0; run < 2; run++) {
      expect(runTool(project, process.execPath, ["search.js"])).toBe(
        "1.9300 The Thing 1982\n1.9091 Gravity 2013\n" + "0.24 Airplane! words 1.00, vector -0.76\n0.16 Gravity words -0.25, vector 0.41\n",
      );
    }
  } finally {
    removeFolder(project);
  }
});

const PURPLES = "rebeccapurple, indigo, darkslateblue, slateblue, purple";
const rename = (server: TestServer, id: string, name: string) =>
  server.request("PATCH", `/db/demo:main/tables/colors/data/${id}`, { name });

it("live-node follows the server, and has what it had at the next start", async () => {
  const project = install("live-node");
  const server = await startLodestone({ args: ["--demo"] });
  const run = async (body: (output: () => string) => Promise<void>): Promise<void> => {
    let output = "";
    const child = spawn(process.execPath, ["nearest.js", "rebeccapurple", server.url], { cwd: project });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
    const ended = new Promise((resolve) => child.once("exit", resolve));
    try {
      await body(() => output);
    } finally {
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
    }
  };
  try {
    await run(async (output) => {
      await expect.poll(output, { timeout: LIMIT_MS }).toBe(`${PURPLES}\n`);
      await rename(server, "indigo", "jeans");
      await expect.poll(output, { timeout: LIMIT_MS }).toBe(`${PURPLES}\n${PURPLES.replace("indigo", "jeans")}\n`);
    });
    await run((output) => expect.poll(output, { timeout: LIMIT_MS }).toBe(`${PURPLES.replace("indigo", "jeans")}\n`));
  } finally {
    await server.stop();
    removeFolder(project);
  }
});

describeRuntime("node 22", "cloudflare-worker", (node) => {
  it("answers, filters, and reports what is wrong with a question", async () => {
    const project = install("cloudflare-worker");
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const args = [tool("wrangler/bin/wrangler.js"), "dev", "--local", "--ip", "127.0.0.1", "--port", `${port}`, "--inspector-port", "0"];
    const server = await startServer(project, node, args, `${url}?vector=1,0,0`, { CI: "true" });
    try {
      const ask = async (query: string) => (await fetch(url + query)).json();
      expect(await ask("?vector=1,0.3,0")).toMatchObject({ build: "simd", totalCount: 4, results: [{ id: "fire" }, { id: "sunset" }] });
      expect(await ask("?vector=1,0.3,0&family=cool")).toMatchObject({ totalCount: 2, results: [{ id: "meadow" }, { id: "ocean" }] });
      expect(await ask("?vector=1")).toEqual({ message: expect.stringMatching(/^query has 1 element; expected 3/) });
    } finally {
      await server.stop();
      removeFolder(project);
    }
  });
});

describeWith("chromium", "pages", (executablePath) => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium(executablePath);
  });
  afterAll(() => browser?.close());

  async function visit(name: string, body: (page: Page) => Promise<void>, query = ""): Promise<void> {
    const project = install(name);
    try {
      runTool(project, process.execPath, [tool("vite-8/bin/vite.js"), "build"]);
      const site = await serveFolder(join(project, "dist"));
      const context = await browser.newContext();
      const page = await context.newPage();
      try {
        await page.goto(site.url + query);
        await body(page);
      } finally {
        await context.close();
        await site.close();
      }
    } finally {
      removeFolder(project);
    }
  }

  it("nearest-colours", () =>
    visit("nearest-colours", async (page) => {
      await page.locator("#nearest li").nth(4).waitFor();
      expect(await page.locator("#nearest li").allTextContents()).toEqual([
        "rebeccapurple",
        "indigo",
        "darkslateblue",
        "slateblue",
        "purple",
      ]);
      await page.locator("#colour").fill("#ff6347");
      expect(await page.locator("#nearest li").first().textContent()).toBe("tomato");
    }));

  it("text-search finds texts by meaning: they contain none of the query's words", () =>
    visit("text-search", async (page) => {
      await page.locator("#query").fill("money interest");
      await page.locator("#results li", { hasText: "The central bank bought bonds to keep the currency stable." }).waitFor();
      await page.locator("#query").fill("nothing-known");
      await page.waitForFunction(() => document.querySelectorAll("#results li").length === 0);
    }));

  it("react: the nearest city, on the first visit and from IndexedDB on the second", () =>
    visit("react", async (page) => {
      await page.locator("li").nth(2).waitFor();
      expect(await page.locator("li").allTextContents()).toEqual(["Berlin, Germany", "Prague, Czechia", "Warsaw, Poland"]);
      await page.reload();
      await page.locator("input").fill("-12, -77");
      await page.locator("li", { hasText: "Lima, Peru" }).first().waitFor();
      await page.locator("input").fill("x");
      await page.locator("[role=alert]").waitFor();
      expect(await page.locator("[role=alert]").textContent()).toMatch(/^query\[0\] is NaN/);
    }));

  it("live-search: two windows that show each other's changes, offline, and after the first one is closed", async () => {
    const server = await startLodestone({ args: ["--demo", "--cors-origin", "*"] });
    try {
      await visit(
        "live-search",
        async (first) => {
          const found = (page: Page) => page.locator("#results span").allTextContents();
          await first.locator("#words").fill("rebec");
          await expect.poll(() => found(first), { timeout: LIMIT_MS }).toEqual(["rebeccapurple (purple)"]);
          await first.locator("#results li button").first().click();
          await first.locator("#words").fill("");
          await expect
            .poll(async () => (await found(first)).slice(0, 2), { timeout: LIMIT_MS })
            .toEqual(["rebeccapurple (purple)", "indigo (purple)"]);
          const second = await first.context().newPage();
          await second.goto(first.url());
          await second.locator("#words").fill("indi");
          await expect.poll(() => found(second), { timeout: LIMIT_MS }).toEqual(["indianred (red)", "indigo (purple)"]);
          await second.locator("#family").selectOption("purple");
          await expect.poll(() => found(second), { timeout: LIMIT_MS }).toEqual(["indigo (purple)"]);
          second.once("dialog", (dialog) => void dialog.accept("indian ink"));
          await second.locator("#results li button").last().click();
          await expect.poll(() => found(second), { timeout: LIMIT_MS }).toEqual(["indian ink (purple)"]);
          await expect.poll(async () => (await found(first))[1], { timeout: LIMIT_MS }).toBe("indian ink (purple)");
          await first.close();
          await rename(server, "indigo", "indigo again");
          await expect.poll(() => found(second), { timeout: LIMIT_MS }).toEqual(["indigo again (purple)"]);
          await second.context().setOffline(true);
          await server.end("SIGTERM");
          await second.locator("#status", { hasText: "offline" }).waitFor();
          await second.locator("#words").fill("rebec");
          await expect.poll(() => found(second), { timeout: LIMIT_MS }).toEqual(["rebeccapurple (purple)"]);
          await second.close();
        },
        `?server=${encodeURIComponent(server.url)}`,
      );
    } finally {
      await server.stop();
    }
  });
});

/** The console's snippets run as pasted: in a shell, in Node with the SDK, in Python, in Node with the library. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { closeChromium, launchChromium } from "../browser/launch.ts";
import { pathOf } from "../support/finders.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { openConsole } from "./console-page.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const KEY = "paste-key";
const run = promisify(execFile);
/** 1 + cos of the same direction and of the opposite one, as far as float32 can tell. */
const ANSWER = /^near (2|1\.9\d*)\nfar (0|[\d.]+e-\d+)\n$/;

describeWith("python", "what to paste", () => {
  describeWith("chromium", "from the console's home", (executablePath) => {
    let server: TestServer;
    let browser: Browser;
    /** Where the published packages are installed. */
    const folder = mkdtempSync(join(tmpdir(), "lodestone-paste-"));
    const auth = { authorization: `Bearer ${KEY}` };
    beforeAll(async () => {
      mkdirSync(join(folder, "node_modules"));
      symlinkSync(join(ROOT, "dist/packages/library"), join(folder, "node_modules/lodestone"));
      symlinkSync(join(ROOT, "node_modules/@xata.io"), join(folder, "node_modules/@xata.io"));
      server = await startServer({ args: ["--api-key", KEY] });
      browser = await launchChromium(executablePath);
      await server.put("/db/paste:main", {}, auth);
      for (const dimension of [3, 40]) {
        const columns = [{ name: "v", type: "vector", vector: { dimension } }];
        await server.put(`/db/paste:main/tables/of${dimension}`, { columns }, auth);
        for (const [id, value] of [
          ["near", 0.2],
          ["far", -1],
        ] as const)
          await server.put(`/db/paste:main/tables/of${dimension}/data/${id}`, { v: Array(dimension).fill(value) }, auth);
      }
    });
    afterAll(async () => {
      await closeChromium(browser);
      await server?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    it.each([3, 40])("runs as it is pasted, for vectors of %i dimensions", async (dimension) => {
      const { page, close } = await openConsole(browser, server.url, `#/home/paste:main/of${dimension}`);
      await page.getByLabel("API key").fill(KEY);
      await page.getByRole("button", { name: "Open" }).click();
      const codeOf = async (language: string): Promise<string> => {
        await page.getByRole("button", { name: language, exact: true }).click();
        return page.locator(".snippets pre").innerText();
      };
      const outputOf = async (program: string, args: readonly string[]): Promise<string> => {
        const env = { PATH: process.env.PATH, HOME: process.env.HOME, LODESTONE_API_KEY: KEY };
        return (await run(program, args, { cwd: folder, env })).stdout;
      };
      const node = ["--input-type=module", "-e"];
      const found = JSON.parse(await outputOf("sh", ["-c", await codeOf("curl")]));
      expect(found.results.map(({ id }: { id: string }) => id)).toEqual(["near", "far"]);
      expect(await outputOf(process.execPath, [...node, await codeOf("TypeScript")])).toMatch(ANSWER);
      expect(await outputOf(pathOf("python"), ["-c", await codeOf("Python")])).toMatch(ANSWER);
      expect(await outputOf(process.execPath, [...node, await codeOf("Library")])).toMatch(/id: 'a', score: (2|1\.9)/);
      await close();
    });
  });
});

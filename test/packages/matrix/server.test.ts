import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runTool } from "../outcome.ts";
import { newFolder, npm, pack, removeFolder, write } from "../packed.ts";
import { freePort, startServer } from "../page.ts";

describe("the server's package", () => {
  let project: string;
  beforeAll(() => {
    project = newFolder("server");
    write(project, { "package.json": JSON.stringify({ name: "test-server", version: "0.0.0", private: true }) });
    npm(project, "install", "--no-audit", "--no-fund", "--prefer-offline", pack("library"), pack("server"));
  });
  afterAll(() => removeFolder(project));

  it("depends on the library and contains none of its code except the scores' definition, which it needs by itself", () => {
    const installed = join(project, "node_modules/lodestone-server");
    expect(JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))).toMatchObject({
      dependencies: { lodestone: expect.any(String) },
    });
    expect(existsSync(join(installed, "node_modules"))).toBe(false);
    const forwarded = readdirSync(join(installed, "dist/core")).filter((name) => name !== "exact.js");
    expect(forwarded).not.toEqual([]);
    for (const name of forwarded) {
      expect([name, readFileSync(join(installed, "dist/core", name), "utf8")]).toEqual([name, 'export * from "lodestone";\n']);
    }
  });

  it("has the command `lodestone`, which serves and searches", async () => {
    const bin = join(project, "node_modules/.bin/lodestone");
    expect(runTool(project, bin, ["--version"])).toMatch(/^\d+\.\d+\.\d+/);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const server = await startServer(
      project,
      bin,
      ["serve", "--demo", "--port", `${port}`, "--data-dir", join(project, "data")],
      `${url}/readyz`,
    );
    try {
      const search = async (): Promise<unknown> => {
        const response = await fetch(`${url}/db/demo:main/tables/colors/vectorSearch`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            column: "lab",
            queryVector: [32.902, 42.883, -47.149],
            similarityFunction: "l2",
            size: 2,
            consistency: "strong",
          }),
        });
        return response.json();
      };
      // The demo's data are loaded after the server begins to answer.
      let answer = await search();
      for (let i = 0; i < 100 && !JSON.stringify(answer).includes("indigo"); i++) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        answer = await search();
      }
      expect(answer).toMatchObject({ results: [{ id: "rebeccapurple" }, { id: "indigo" }] });
    } finally {
      await server.stop();
    }
  });
});

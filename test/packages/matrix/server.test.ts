import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMIT_MS } from "../../support/patience.ts";
import { freePort } from "../../support/ports.ts";
import { runTool } from "../outcome.ts";
import { newFolder, npm, pack, removeFolder, write } from "../packed.ts";
import { startServer } from "../page.ts";

describe("the server's package", () => {
  let project: string;
  beforeAll(() => {
    project = newFolder("server");
    write(project, { "package.json": JSON.stringify({ name: "test-server", version: "0.0.0", private: true }) });
    npm(project, "install", "--no-audit", "--no-fund", "--offline", pack("library"), pack("server"));
  });
  afterAll(() => removeFolder(project));

  it("depends on the library and contains none of its code except the scores' definition, which it needs by itself", () => {
    const installed = join(project, "node_modules/lodestone-server");
    expect(JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))).toMatchObject({
      dependencies: { lodestone: expect.any(String) },
    });
    expect(existsSync(join(installed, "node_modules/lodestone"))).toBe(false);
    const forwarded = readdirSync(join(installed, "dist/core")).filter((name) => name !== "exact.js");
    expect(forwarded).not.toEqual([]);
    for (const name of forwarded) {
      expect([name, readFileSync(join(installed, "dist/core", name), "utf8")]).toEqual([name, 'export * from "lodestone";\n']);
    }
  });

  it("contains the packages that it imports, each with its licence, and npm fetches nothing else", () => {
    const installed = join(project, "node_modules");
    expect(readdirSync(installed).filter((name) => !name.startsWith("."))).toEqual(["lodestone", "lodestone-server"]);
    const inside = join(installed, "lodestone-server/node_modules");
    const names = readdirSync(inside).flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(inside, name)).map((part) => `${name}/${part}`) : name,
    );
    expect(names).toEqual(expect.arrayContaining(["@electric-sql/pglite", "koa", "libpg-query", "pg"]));
    const unlicensed = names.filter((name) => !readdirSync(join(inside, name)).some((file) => /^(licen[cs]e|copying)/i.test(file)));
    // Their own packages on the registry have no such file either; their manifests name the licence.
    expect(
      unlicensed.filter((name) => typeof JSON.parse(readFileSync(join(inside, name, "package.json"), "utf8")).license !== "string"),
    ).toEqual([]);
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
      await expect
        .poll(search, { interval: 200, timeout: LIMIT_MS })
        .toMatchObject({ results: [{ id: "rebeccapurple" }, { id: "indigo" }] });
    } finally {
      await server.stop();
    }
  });
});

/**
 * The address that an application gives to its SDK, by the SDK's version, as docs/migrating.md lists it: before a
 * request, an SDK drops the first label of the address's host, or the first two.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

const MIGRATING = readFileSync(new URL("../../docs/migrating.md", import.meta.url), "utf8");
const ONE_LABEL = "http://w.localhost:8787/db/library";
const TWO_LABELS = "http://w.r.localhost:8787/db/library";

describeWith("clients", "the address", (modules) => {
  const load = createRequire(modules);
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ env: { LODESTONE_LOG_LEVEL: "warn" } });
    await server.put("/db/library:main", {});
    await server.put("/db/library:main/tables/books", { columns: [{ name: "title", type: "string" }] });
    // A dot in an id is one in the URL, too.
    await server.put("/db/library:main/tables/books/data/solaris.1961", { title: "Solaris" });
  });
  afterAll(() => server?.stop());

  test.each([
    ["@xata.io/client-0.21.6", "0.21.6", ONE_LABEL],
    ["@xata.io/client-0.28.3", "0.28.3", ONE_LABEL],
    ["@xata.io/client-1.0.0-next.0", "1.0.0-next.0", ONE_LABEL],
    ["@xata.io/client-0.28.4", "0.28.4", TWO_LABELS],
    ["@xata.io/client", "0.30.1", TWO_LABELS],
  ])("of %s is in the table, and leads to the server, whatever names the machine resolves", async (name, version, address) => {
    const row = MIGRATING.split("\n").find((line) => line.startsWith("|") && line.includes(`\`${address}\``));
    expect(row).toContain(version);
    const { BaseClient } = load(name);
    const asked: string[] = [];
    const xata = new BaseClient({
      databaseURL: address.replace("8787", `${server.port}`),
      branch: "main",
      apiKey: "none",
      fetch: (url: string, options: RequestInit) => {
        asked.push(new URL(url).hostname);
        return fetch(url, options);
      },
    });
    expect(await xata.db.books.read("solaris.1961", ["title"])).toMatchObject({ id: "solaris.1961", title: "Solaris" });
    expect(await xata.db.books.getAll()).toHaveLength(1);
    expect(await xata.db.books.delete("nobody.at-all")).toBeNull();
    expect(new Set(asked)).toEqual(new Set(["localhost"]));
  });
});

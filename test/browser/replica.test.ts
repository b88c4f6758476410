/** A replica in pages: kept in IndexedDB, shared by the tabs of an origin, and what becomes of it when tabs are closed. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type * as Lodestone from "../../src/index.ts";
import { WAIT_MS } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { launchChromium } from "./launch.ts";
import { launchFirefox } from "./launch-firefox.ts";
import { serveStatic } from "./static-server.ts";

declare const lodestone: typeof Lodestone;

interface Opened {
  replica: Lodestone.Replica;
  phases: string[];
  changed: string[];
  requests: number;
  /** The server cannot be reached. */
  isAway: boolean;
}
declare global {
  var opened: Opened;
}

const LIBRARY = readFileSync(fileURLToPath(new URL("../../dist/packages/library/dist/index.js", import.meta.url)));
const PAGE = `<!doctype html><title>p</title><script type="module">globalThis.lodestone = await import("./lodestone.js");</script>`;
const TABLE = "/db/live:main/tables/things";

describeWith("chromium", "a replica in pages of Chromium", (executablePath) => testReplicas(() => launchChromium(executablePath)));
describeWith("firefox", "a replica in pages of Firefox", (executablePath) => testReplicas(() => launchFirefox(executablePath)));

function testReplicas(launch: () => Promise<Browser>): void {
  let site: Awaited<ReturnType<typeof serveStatic>>;
  let server: TestServer;
  let browser: Browser;
  let context: BrowserContext;
  beforeAll(async () => {
    site = await serveStatic(
      new Map([
        ["/", { type: "text/html", body: PAGE }],
        ["/lodestone.js", { type: "text/javascript", body: LIBRARY }],
      ]),
    );
    server = await startServer({ args: ["--cors-origin", "*"] });
    await server.put("/db/live:main");
    const columns = [
      { name: "v", type: "vector", vector: { dimension: 8 } },
      { name: "n", type: "int" },
      { name: "name", type: "string" },
    ];
    expect((await server.put(TABLE, { columns })).status).toBe(201);
    const records = Array.from({ length: 1000 }, (_, n) => ({
      id: `r${n}`,
      v: Array.from({ length: 8 }, (_, i) => Math.sin(n * 8 + i)),
      n,
      name: `thing ${n}`,
    }));
    expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    await server?.stop();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    context.setDefaultTimeout(WAIT_MS);
  });
  afterEach(() => context.close());

  /** A tab with the replica open, as `opened`. */
  async function openTab(database = "replicas"): Promise<Page> {
    const page = await context.newPage();
    await page.goto(site.url);
    await begin(page, database);
    return page;
  }
  async function begin(page: Page, database = "replicas", isAway = false): Promise<void> {
    await page.waitForFunction(() => "lodestone" in globalThis);
    await page.evaluate(
      async ({ url, database, isAway }) => {
        const opened = { phases: [], changed: [], requests: 0, isAway } as unknown as Opened;
        globalThis.opened = opened;
        opened.replica = await lodestone.Replica.open({
          url: `${url}/db/live:main`,
          table: "things",
          columns: ["v", "n", "name"],
          words: true,
          store: new lodestone.IndexedDbReplicaStore(database),
          fetch: async (input, init) => {
            opened.requests++;
            return fetch(opened.isAway ? "http://127.0.0.1:1" : input, init);
          },
          onStatus: ({ phase }) => opened.phases.push(phase),
          onChange: ({ upserted, deleted }) => opened.changed.push(...upserted, ...deleted),
        });
      },
      { url: server.url, database, isAway },
    );
  }
  const stateOf = (page: Page) =>
    page.evaluate(() => ({
      phases: opened.phases,
      requests: opened.requests,
      size: opened.replica.size,
      position: opened.replica.position,
      lagMs: opened.replica.lagMs,
      phase: opened.replica.status.phase,
    }));
  const get = (page: Page, id: string) => page.evaluate((id) => opened.replica.get(id), id);

  /** What the server answers, compared with a tab's answer. */
  async function expectSame(page: Page): Promise<void> {
    await page.evaluate(() => opened.replica.current());
    const query = Array.from({ length: 8 }, (_, i) => Math.cos(i));
    const request = { column: "v", queryVector: query, size: 20, consistency: "strong", filter: { n: { $lt: 500 } } };
    const { body } = await server.post(`${TABLE}/vectorSearch`, request);
    const own = await page.evaluate((query) => opened.replica.search(query, { k: 20, filter: { n: { $lt: 500 } } }), query);
    expect(own).toEqual(body);
  }

  it("is kept: the next visit has it without the server, then fetches the difference", async () => {
    const page = await openTab();
    await expectSame(page);
    expect((await stateOf(page)).phases).toContain("loading");
    await server.put(`${TABLE}/data/kept`, { n: 1 });
    await page.evaluate(() => opened.replica.current());
    await page.evaluate(() => opened.replica.close());
    await server.put(`${TABLE}/data/meanwhile`, { n: 2 });
    await page.reload();
    await begin(page, "replicas", true);
    expect(await stateOf(page)).toMatchObject({ size: 1001 });
    expect(await get(page, "kept")).toMatchObject({ n: 1 });
    expect(await get(page, "meanwhile")).toBeUndefined();
    await page.waitForFunction(() => opened.replica.status.phase === "offline");
    await page.evaluate(() => {
      opened.isAway = false;
    });
    await expect.poll(() => get(page, "meanwhile"), { timeout: WAIT_MS }).toMatchObject({ n: 2 });
    await expectSame(page);
    expect((await stateOf(page)).phases).not.toContain("loading");
    await server.request("DELETE", `${TABLE}/data/kept`);
    await server.request("DELETE", `${TABLE}/data/meanwhile`);
  });

  it("tabs share one connection, and have the same answers, events and errors", async () => {
    const first = await openTab();
    const second = await openTab();
    await expectSame(first);
    await expectSame(second);
    const { headers } = await server.put(`${TABLE}/data/new`, { v: [1, 0, 0, 0, 0, 0, 0, 0], n: 3, name: "a new one" });
    await second.evaluate((read) => opened.replica.current(read), headers["lodestone-read"] as string);
    expect(await get(second, "new")).toMatchObject({ name: "a new one" });
    const found = await second.evaluate(() => opened.replica.search({ text: "new one" }));
    expect(found.results[0]).toMatchObject({ id: "new" });
    expect(await second.evaluate(async () => [...((await opened.replica.vector("new")) ?? [])])).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
    await expect.poll(() => second.evaluate(() => opened.changed), { timeout: WAIT_MS }).toContain("new");
    expect(await stateOf(second)).toMatchObject({ requests: 0, size: 1001, phase: "current", lagMs: 0 });
    const wrong = await second.evaluate(() =>
      Promise.all([
        opened.replica.search([1]).catch((error) => [error.name, error.message]),
        opened.replica.search([1], { column: "absent" }).catch((error) => [error.name, error.code, error.message]),
        opened.replica.search([1], { filter: () => true }).catch((error) => [error.name, error.message]),
      ]),
    );
    expect(wrong).toEqual([
      ["RangeError", expect.stringMatching(/^query has 1 element; expected 8/)],
      ["LodestoneError", "INVALID", expect.stringMatching(/no vector column "absent"/)],
      ["TypeError", expect.stringMatching(/^filter is a function, where tabs share the replica/)],
    ]);
    await server.request("DELETE", `${TABLE}/data/new`);
  });

  it("goes on in the next tab when the one that leads is closed, and no position is older than one that was seen", async () => {
    const tabs = [await openTab(), await openTab(), await openTab()];
    for (let round = 0; round < 2; round++) {
      const [leading, next, other] = tabs as [Page, Page, Page];
      const { headers } = await server.put(`${TABLE}/data/round${round}`, { n: round });
      await next.evaluate((read) => opened.replica.current(read), headers["lodestone-read"] as string);
      // Asked while there may be nobody who answers.
      const asked = next.evaluate(async () => {
        const answers: Promise<unknown>[] = [];
        for (let i = 0; i < 200; i++) {
          answers.push(opened.replica.search([1, 0, 0, 0, 0, 0, 0, 0], { k: 3 }));
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return new Set((await Promise.all(answers)).map((answer) => JSON.stringify(answer))).size;
      });
      const seen = other?.evaluate((id) => opened.replica.get(id), `round${round}`);
      await leading.close({ runBeforeUnload: false });
      tabs.shift();
      expect(await asked).toBe(1);
      expect(await seen).toSatisfy((record) => other === undefined || (record as { n: number }).n === round);
      expect(await next.evaluate((id) => opened.replica.get(id), `round${round}`)).toMatchObject({ n: round });
      await expectSame(next);
    }
    const [last] = tabs as [Page];
    expect((await stateOf(last)).phases).not.toContain("loading");
    await last.evaluate(() => opened.replica.close());
    expect(await last.evaluate(() => opened.replica.get("r1").catch((error) => error.message))).toBe("The replica is closed.");
    for (const n of [0, 1]) await server.request("DELETE", `${TABLE}/data/round${n}`);
  });

  it("a store of another name is another replica", async () => {
    const first = await openTab("of-user-1");
    const second = await openTab("of-user-2");
    await expectSame(first);
    await expectSame(second);
    expect((await stateOf(second)).requests).toBeGreaterThan(0);
  });
}

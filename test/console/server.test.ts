/** The server view and the API reference, as a person uses them; and what keys of a narrower scope are offered. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createKey } from "../../src/http/keys/key-file.ts";
import { closeChromium, launchChromium } from "../browser/launch.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";
import { openConsole } from "./console-page.ts";

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describeWith("chromium", "a server with keys in the console", (executablePath) => {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-console-keys-"));
  const file = join(folder, "keys.json");
  const keys: Record<string, string> = {};
  let browser: Browser;
  let server: TestServer;
  beforeAll(async () => {
    writeFileSync(file, '{"version":1,"keys":[]}', { mode: 0o600 });
    keys.boss = await createKey(file, "boss", "admin");
    keys.reader = await createKey(file, "reader", "read");
    keys.shop = await createKey(file, "shop", "admin", ["shop"]);
    browser = await launchChromium(executablePath);
    server = await startServer({ args: ["--key-file", file] });
    for (const database of ["shop", "other"]) {
      await server.put(`/db/${database}:main`, {}, bearer(keys.boss));
      const columns = [
        { name: "title", type: "string" },
        { name: "look", type: "vector", vector: { dimension: 2 } },
      ];
      await server.put(`/db/${database}:main/tables/items`, { columns }, bearer(keys.boss));
      await server.put(`/db/${database}:main/tables/items/data/a`, { title: "A", look: [1, 0] }, bearer(keys.boss));
    }
  });
  afterAll(async () => {
    await closeChromium(browser);
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(name: string, hash: string) {
    const opened = await openConsole(browser, server.url, hash);
    await opened.page.getByLabel("API key").fill(keys[name] as string);
    await opened.page.getByRole("button", { name: "Open" }).click();
    return opened;
  }
  const goTo = (page: Page, view: string) => page.getByRole("navigation").getByRole("link", { name: view }).click();

  it("shows the server's state, makes a key that works and is shown once, revokes it, and makes a backup", async () => {
    const { page, expectAccessible, close } = await open("boss", "#/server");
    await page.getByText("Vectors in memory").waitFor();
    const fact = (name: string) => page.locator(`.fact:has(dt:text-is("${name}")) dd`).innerText();
    await expect.poll(() => fact("Status")).toContain("ready");
    await expect.poll(() => fact("Vectors in memory")).toBe("2");
    // The page draws what it reads: requests that others make are seen in the next reading.
    const searches = page.getByRole("region", { name: "Requests" }).getByRole("listitem").filter({ hasText: "searches" }).locator("b");
    await expect
      .poll(async () => {
        await server.post("/db/shop:main/tables/items/vectorSearch", { column: "look", queryVector: [1, 0] }, bearer(keys.boss as string));
        return Number.parseFloat(await searches.innerText());
      })
      .toBeGreaterThan(0);
    await expect.poll(() => page.locator(".plot canvas").count()).toBe(6);
    expect(await fact("WAL on disk")).toMatch(/ [kM]B$/);
    await expectAccessible();
    const limits = page.getByRole("region", { name: "Limits" });
    const limit = (name: string) => limits.locator(`div:has(> dt:text-is("${name}")) dd`).innerText();
    expect(await limit("Concurrent requests")).toBe("256");
    expect(await limit("Dimensions per vector")).toBe("10,000");
    expect(await limit("Results per vector search")).toBe("1,000");
    const branches = page.getByRole("region", { name: "Branches" });
    await expect.poll(() => branches.getByRole("link").allInnerTexts()).toEqual(["other:main", "shop:main"]);
    await branches.getByText("1 table, 1 column of vectors").first().waitFor();
    const panel = page.getByRole("region", { name: "Keys" });
    await panel.getByLabel("Name of the new key").fill("not a name");
    await panel.getByRole("button", { name: "Create key" }).click();
    await panel.locator(".fault").filter({ hasText: "name" }).waitFor();
    await panel.getByLabel("Name of the new key").fill("robot");
    await panel.getByLabel("For").selectOption("other");
    await panel.getByRole("button", { name: "Create key" }).click();
    const key = await panel.locator(".new-key").innerText();
    expect((await server.get("/db/other:main", bearer(key))).status).toBe(200);
    expect((await server.get("/db/shop:main", bearer(key))).status).toBe(403);
    expect(readFileSync(file, "utf8") + server.log).not.toContain(key);
    await panel.getByText("read · other").waitFor();
    await panel.getByRole("button", { name: "Revoke robot" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await panel.getByText("read · other").waitFor({ state: "detached" });
    expect((await server.get("/db/other:main", bearer(key))).status).toBe(401);
    const backups = page.getByRole("region", { name: "Backups" });
    await backups.getByText("None yet.").waitFor();
    await backups.getByRole("button", { name: "Back up now" }).click();
    await backups.getByText("Done in").waitFor();
    await expect.poll(() => backups.getByRole("list").getByRole("listitem").count()).toBe(1);
    await expectAccessible();
    await close();
  });

  it("reads on while another view is shown, until the key is forgotten", async () => {
    const { page, close } = await open("boss", "#/server");
    await page.getByText("Vectors in memory").waitFor();
    await goTo(page, "Home");
    await page.getByRole("region", { name: "Database shop" }).waitFor();
    const read = page.waitForResponse((response) => response.url().endsWith("/metrics"));
    expect((await read).status()).toBe(200);
    await page.getByRole("button", { name: "admin key · forget" }).click();
    await page.getByLabel("API key").fill(keys.reader as string);
    await page.getByRole("button", { name: "Open" }).click();
    await goTo(page, "Server");
    // Nothing of what the other key has seen.
    await page.getByRole("region", { name: "Latency" }).getByText("–").first().waitFor();
    await close();
  });

  it("shows every endpoint, reports an error in a body, and sends it with the key, which is not in the curl", async () => {
    const { page, expectAccessible, close } = await open("boss", "#/reference/shop:main/items");
    const { body: api } = await server.get("/openapi.json");
    const operations = Object.values(api.paths as Record<string, object>).flatMap((methods) => Object.keys(methods)).length;
    await page.getByText(`${operations} endpoints`).waitFor();
    await expect.poll(() => page.locator(".operation .method").count()).toBe(operations);
    await page.getByLabel("Find").fill("post vectorsearch");
    await page.locator(".operation summary").first().click();
    const form = page.getByRole("form", { name: "Try" });
    await expect.poll(() => form.getByLabel("table").inputValue()).toBe("items");
    await expectAccessible();
    await form.getByLabel("Body").fill('{"column": "look", "queryVector": [1, 0}');
    await form.getByRole("button", { name: "Send" }).click();
    await form.locator(".fault").filter({ hasText: "not JSON" }).waitFor();
    await form.getByLabel("Body").fill('{"column": "look", "queryVector": [1, 0, 0]}');
    await form.getByRole("button", { name: "Send" }).click();
    const answer = page.getByRole("region", { name: "Answer", exact: true });
    await answer.getByText("400", { exact: true }).waitFor();
    await answer.getByText("dimension 2").waitFor();
    await form.getByLabel("Body").fill('{"column": "look", "queryVector": [1, 0], "consistency": "strong"}');
    await form.getByRole("button", { name: "Send" }).click();
    await answer.getByText('"totalCount": 1').waitFor();
    const curl = await page.locator(".snippets pre").innerText();
    expect(curl).toContain(`${server.url}/db/shop:main/tables/items/vectorSearch`);
    expect(curl).not.toContain(keys.boss as string);
    await expectAccessible();
    await close();
  });

  it("offers no writes for a read-only key, and the server refuses what the page would not send", async () => {
    const { page, expectAccessible, close } = await open("reader", "#/table/shop:main/items");
    await page.getByText("this key can only read").waitFor();
    for (const name of ["New", "Delete"]) expect(await page.getByRole("button", { name }).count()).toBe(0);
    await expect.poll(() => page.getByRole("checkbox", { name: "Select a" }).count()).toBe(0);
    await page.getByRole("gridcell", { name: "A", exact: true }).dblclick();
    await expect.poll(() => page.getByLabel("New value of title").count()).toBe(0);
    await goTo(page, "Schema");
    await page.getByRole("list", { name: "Columns" }).getByText("vector · 2").waitFor();
    await expect.poll(() => page.locator("main button:not(.schema-tools button)").count()).toBe(0);
    await expectAccessible();
    await goTo(page, "Server");
    await page.getByText("Vectors in memory").waitFor();
    await expect.poll(() => page.getByRole("region", { name: /Keys|Backups/ }).count()).toBe(0);
    await goTo(page, "SQL");
    await page.getByText("This key can only read.").waitFor();
    await goTo(page, "API");
    await page.getByLabel("Find").fill("delete {id}");
    await page.locator(".operation summary").first().click();
    await page.getByText("It needs a key with the scope write.").waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
    // Whoever enables the button meets the server.
    await page.getByRole("button", { name: "Send" }).evaluate((button) => button.removeAttribute("disabled"));
    await page.getByRole("form", { name: "Try" }).getByLabel("id", { exact: true }).fill("a");
    await page.getByRole("button", { name: "Send" }).evaluate((button) => button.removeAttribute("disabled"));
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("region", { name: "Answer", exact: true }).getByText('scope \\"write\\"').waitFor();
    expect((await server.get("/db/shop:main/tables/items/data/a", bearer(keys.boss as string))).status).toBe(200);
    await close();
  });

  it("shows a key of one database that database alone, and neither keys nor backups", async () => {
    const { page, close } = await open("shop", "#/home");
    await page.getByRole("region", { name: "Database shop" }).waitFor();
    await expect.poll(() => page.getByText("other").count()).toBe(0);
    await goTo(page, "Server");
    await page.getByText("Vectors in memory").waitFor();
    await expect.poll(() => page.getByRole("region", { name: /Keys|Backups/ }).count()).toBe(0);
    await page.goto(`${server.url}/console#/schema/other:main/items`);
    await page.reload();
    await page.getByLabel("API key").fill(keys.shop as string);
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByRole("alert").filter({ hasText: 'not for the database "other"' }).waitFor();
    for (const path of ["/keys", "/backups"]) expect((await server.get(path, bearer(keys.shop as string))).status).toBe(403);
    await close();
  });
});

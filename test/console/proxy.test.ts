/** The console behind a proxy, which gives it another name and a path: with keys and without. */
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { closeChromium, launchChromium, newPage } from "../browser/launch.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer } from "../support/server.ts";
import { openConsole } from "./console-page.ts";

const NAME = "data.example";
const BELOW = "/search-service";

/** Passes on requests below its path, with the path cut off and the `Host` as it came. */
async function startProxy(port: number): Promise<Server> {
  const proxy = createServer((incoming, answer) => {
    if (!incoming.url?.startsWith(BELOW)) {
      answer.writeHead(404).end();
      return;
    }
    const path = incoming.url.slice(BELOW.length) || "/";
    const passed = request({ host: "127.0.0.1", port, method: incoming.method, path, headers: incoming.headers }, (response) => {
      answer.writeHead(response.statusCode as number, response.headers);
      response.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return proxy;
}

describeWith("chromium", "the console behind a proxy, called by another name", (executablePath) => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium(executablePath, [`--host-resolver-rules=MAP ${NAME} 127.0.0.1`]);
  });
  afterAll(() => closeChromium(browser));

  it("reads and writes below a path of the proxy if the server requires keys", async () => {
    const server = await startServer({ args: ["--api-key", "the-key"] });
    const proxy = await startProxy(server.port);
    try {
      const url = `http://${NAME}:${(proxy.address() as AddressInfo).port}${BELOW}`;
      const { page, close } = await openConsole(browser, url, "");
      await page.getByLabel("API key").fill("the-key");
      await page.getByRole("button", { name: "Open" }).click();
      await page.getByRole("button", { name: "Load the demo" }).click();
      // The map's worker, its WebAssembly and its requests as well.
      await page.getByText("this page found the same to the last bit").waitFor();
      await page.getByRole("link", { name: "API" }).click();
      await page.getByText(/\d+ endpoints/).waitFor();
      expect((await server.get("/db/demo:main", { authorization: "Bearer the-key" })).status).toBe(200);
      await close();
    } finally {
      proxy.close();
      await server.stop();
    }
  });

  it("is not served at all if the server requires no keys: anybody may own the name", async () => {
    const server = await startServer();
    const proxy = await startProxy(server.port);
    const page = await newPage(browser);
    try {
      const answer = await page.goto(`http://${NAME}:${(proxy.address() as AddressInfo).port}${BELOW}/console`);
      expect(answer?.status()).toBe(403);
      await expect.poll(() => page.locator("body").innerText()).toContain("A server without keys does not answer to the name");
    } finally {
      await page.close();
      proxy.close();
      await server.stop();
    }
  });
});

/** Who may call without a key, and which pages of browsers may call at all. */
import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { isTrustedHost } from "../../src/http/cross-site-requests.ts";
import { runCommand, startServer } from "../support/server.ts";

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("without keys", () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.internal === false && address.family === "IPv4")?.address;

  it.each(["0.0.0.0", "::", outside ?? "192.0.2.1"])("the server refuses to listen on %s, and says what to do", async (host) => {
    const refused = await runCommand(["serve", "--host", host, "--port", "0", "--data-dir", "/nonexistent"]);
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/Without API keys.*--api-key/s) });
  });

  it("it listens on both loopback addresses, and reports that it listens only there", async () => {
    const server = await startServer();
    try {
      expect(server.stdout).toContain("listens on loopback only");
      expect((await fetch(`http://localhost:${server.port}/livez`)).status).toBe(200);
      expect((await fetch(`http://[::1]:${server.port}/livez`)).status).toBe(200);
      if (outside !== undefined) await expect(fetch(`http://${outside}:${server.port}/livez`)).rejects.toThrow();
    } finally {
      await server.stop();
    }
  });

  it("a page from another origin gets nothing, not even a write whose response it cannot read", async () => {
    const server = await startServer();
    try {
      const answer = await server.put("/db/evil:main", {}, { origin: "https://evil.example" });
      expect(answer).toMatchObject({ status: 403, body: { message: expect.stringContaining("--cors-origin") } });
      expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
      expect((await server.get("/dbs")).body.databases).toEqual([]);
    } finally {
      await server.stop();
    }
  });
});

describe("DNS rebinding: a page whose own name was made to resolve to this machine", () => {
  const PORT = ":8787";
  const FOREIGN = [
    "evil.example",
    `evil.example${PORT}`,
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "notlocalhost",
    "localhost@evil.example",
    "evil.example/localhost",
    "[::1",
  ];
  const OWN = [
    "localhost",
    `localhost${PORT}`,
    "LOCALHOST",
    "localhost.",
    "xata.us-east-1.localhost",
    "127.0.0.1",
    "127.1",
    `127.0.0.1${PORT}`,
    "[::1]",
    `[::1]${PORT}`,
    "192.0.2.7",
    "[2001:db8::7]:80",
  ];

  it.each([
    [[] as string[], FOREIGN],
    [["--host", "localhost"], ["evil.example"]],
    [
      ["--cors-origin", "https://app.example"],
      ["evil.example", "app.example"],
    ],
  ])("reads nothing from a server without keys (%j); loopback's names and addresses do", async (args, foreign) => {
    const server = await startServer({ args });
    try {
      await server.put("/db/own:main", {});
      for (const host of foreign) {
        for (const path of ["/dbs", "/db/own:main", "/metrics", "/access", "/console", "/nothing"]) {
          const answer = await server.get(path, { host });
          expect([host, answer.status, answer.body.message]).toEqual([
            host,
            403,
            expect.stringContaining("use localhost or an IP address"),
          ]);
        }
        expect((await server.put("/db/evil:main", {}, { host })).status).toBe(403);
      }
      for (const host of OWN) expect([host, (await server.get("/dbs", { host })).body.databases?.length]).toEqual([host, 1]);
    } finally {
      await server.stop();
    }
  });

  it("is detected in the request's target, too, if that names a host", async () => {
    const server = await startServer();
    try {
      for (const target of [
        "http://evil.example/dbs",
        "HTTP://evil.example:8787/dbs",
        "https://localhost@evil.example/dbs",
        "http:///dbs",
        "ws://localhost/dbs",
      ]) {
        const answer = await server.get(target, { host: "localhost" });
        expect([target, answer.status]).toEqual([target, 403]);
      }
      expect((await server.put("http://evil.example/db/evil:main", {}, { host: "localhost" })).status).toBe(403);
      for (const target of ["http://localhost/dbs", "http://127.0.0.1:8787/dbs", "/dbs"]) {
        expect([target, (await server.get(target, { host: "localhost" })).body.databases]).toEqual([target, []]);
      }
    } finally {
      await server.stop();
    }
  });

  it("is detected by the name that the server listens on", () => {
    expect(isTrustedHost("Box.example:8787", ["box.example"])).toBe(true);
    expect(isTrustedHost("box.example.evil.example", ["box.example"])).toBe(false);
    expect(isTrustedHost(undefined, [])).toBe(true);
  });

  it("needs a key if there are keys; pages of all origins may read with --cors-origin", async () => {
    const keyed = await startServer({ args: ["--api-key", "k"] });
    const open = await startServer({ args: ["--cors-origin", "*"] });
    try {
      expect((await keyed.get("/dbs", { host: "evil.example" })).status).toBe(401);
      expect((await keyed.get("/dbs", { host: "lodestone.internal", ...bearer("k") })).status).toBe(200);
      expect((await open.get("/dbs", { host: "any.example" })).status).toBe(200);
    } finally {
      await keyed.stop();
      await open.stop();
    }
  });
});

describe("with keys, and listening everywhere", () => {
  it("the server starts", async () => {
    const server = await startServer({ args: ["--host", "0.0.0.0", "--api-key", "k"] });
    try {
      expect((await server.get("/dbs", bearer("k"))).status).toBe(200);
    } finally {
      await server.stop();
    }
  });
});

describe("CORS", () => {
  it("is off by default: no header allows any page", async () => {
    const server = await startServer({ args: ["--api-key", "k"] });
    try {
      const answer = await server.get("/dbs", { ...bearer("k"), origin: "https://app.example" });
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
      const preflight = await server.request("OPTIONS", "/dbs", undefined, {
        origin: "https://app.example",
        "access-control-request-method": "GET",
      });
      expect(Object.keys(preflight.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  it("lets the pages of the named origins in, and no others", async () => {
    const server = await startServer({ args: ["--api-key", "k", "--cors-origin", "https://app.example"] });
    try {
      const preflight = await server.request("OPTIONS", "/db/a:b/tables/t/vectorSearch", undefined, {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      });
      expect(preflight.status).toBe(204);
      expect(preflight.headers).toMatchObject({
        "access-control-allow-origin": "https://app.example",
        "access-control-allow-headers": "authorization,content-type",
        "access-control-allow-methods": expect.stringContaining("POST"),
      });
      const allowed = await server.get("/dbs", { ...bearer("k"), origin: "https://app.example" });
      expect(allowed.headers["access-control-allow-origin"]).toBe("https://app.example");
      expect(allowed.headers.vary).toMatch(/Origin/i);
      const unauthorised = await server.get("/dbs", { origin: "https://app.example" });
      expect(unauthorised.status).toBe(401);
      expect(unauthorised.headers["access-control-allow-origin"]).toBe("https://app.example");
      const other = await server.get("/dbs", { ...bearer("k"), origin: "https://evil.example" });
      expect(other.headers["access-control-allow-origin"] ?? "").not.toBe("https://evil.example");
    } finally {
      await server.stop();
    }
  });
});

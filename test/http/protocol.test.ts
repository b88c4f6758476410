import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SharedServer, sharedServer } from "../support/shared-server.ts";

let server: SharedServer;
const table = "/db/protocol:main/tables/t";

beforeAll(async () => {
  server = await sharedServer();
  await server.put("/db/protocol:main");
  await server.put(table, { columns: [{ name: "s", type: "text" }] });
});
afterAll(() => server?.stop());

/**
 * Sends bytes unchanged and returns everything that arrives until the connection closes or `until` matches.
 */
function talk(bytes: (string | Buffer)[], until?: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1");
    let text = "";
    socket.on("connect", () => {
      for (const chunk of bytes) socket.write(chunk);
    });
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (until?.test(text)) socket.destroy();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "ECONNRESET" || error.code === "EPIPE" ? resolve(text) : reject(error),
    );
  });
}

const countRecords = async (): Promise<number> =>
  (await server.post("/db/protocol:main/sql", { statement: 'SELECT count(*)::int AS n FROM "t"' })).body.records[0].n;

describe("every answer", () => {
  it("has a request id, and errors have it in the body as well", async () => {
    const good = await server.get("/dbs");
    const other = await server.get("/dbs");
    expect(good.headers["x-request-id"]).toMatch(/^[\w-]{36}$/);
    expect(other.headers["x-request-id"]).not.toBe(good.headers["x-request-id"]);
    const bad = await server.get("/db/nothing:main");
    expect(bad.body.id).toBe(bad.headers["x-request-id"]);
  });

  it("returns the caller's request id if it is harmless", async () => {
    expect((await server.get("/dbs", { "x-request-id": "trace-1.2" })).headers["x-request-id"]).toBe("trace-1.2");
    expect((await server.get("/dbs", { "x-request-id": 'x" evil' })).headers["x-request-id"]).toMatch(/^[\w-]{36}$/);
  });

  it("does not depend on the Host header if that is one of this machine's names or addresses (others: cross-site-requests.test.ts)", async () => {
    for (const host of ["workspace.us-east-1.localhost:8787", "a.b.localhost", "192.0.2.1"]) {
      expect((await server.get("/dbs", { host })).status).toBe(200);
    }
  });
});

describe("paths and methods", () => {
  it("an unknown path is 404", async () => {
    for (const path of ["/", "/nothing", "/db/protocol:main/nothing", `${table}/data/x/y`, "/DBS", "//dbs"]) {
      const { status, body } = await server.get(path);
      expect([path, status]).toEqual([path, 404]);
      expect(body.message).toContain("no endpoint");
    }
  });

  it("a method that does not exist is 405, with the existing ones in Allow", async () => {
    const answer = await server.delete("/dbs");
    expect(answer).toMatchObject({ status: 405, body: { message: expect.stringContaining("GET") } });
    expect(answer.headers.allow).toBe("HEAD, GET, OPTIONS");
    const record = await server.request("TRACE", `${table}/data/x`);
    expect(record.status).toBe(405);
    expect(record.headers.allow?.split(", ").toSorted()).toEqual(["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]);
  });

  it("OPTIONS lists the methods, HEAD is GET without the body", async () => {
    const options = await server.request("OPTIONS", `${table}/query`);
    expect(options.status).toBe(204);
    expect(options.headers.allow).toBe("POST, OPTIONS");
    const head = await server.request("HEAD", "/dbs");
    expect(head.status).toBe(200);
    expect(head.text).toBe("");
    expect((await server.request("HEAD", "/db/nothing:main")).status).toBe(404);
  });
});

describe("bodies", () => {
  it("of 20 MiB are accepted, of one byte more refused (413)", async () => {
    const limit = 20 * 1024 * 1024;
    const ofLength = (bytes: number) => {
      const shell = JSON.stringify({ s: "" });
      return `{"s":"${"x".repeat(bytes - shell.length)}"}`;
    };
    const before = await countRecords();
    for (const bytes of [limit - 1, limit]) {
      const taken = await server.post(`${table}/data`, ofLength(bytes));
      expect([bytes, taken.status]).toEqual([bytes, 201]);
    }
    const refused = await server.post(`${table}/data`, ofLength(limit + 1));
    expect(refused).toMatchObject({ status: 413, body: { message: expect.stringContaining("20,971,520 bytes") } });
    expect(await countRecords()).toBe(before + 2);
  });

  it("that are too large are taken to their end before the connection is closed, so that every client gets to read why", async () => {
    const bytes = 20 * 1024 * 1024 + 1;
    const socket = connect(server.port, "127.0.0.1");
    const failure = new Promise<string>((resolve) => socket.once("error", (error) => resolve(error.message)));
    let isSent = false;
    const ended = once(socket, "end").then(() => `the server ended it, ${isSent ? "after" : "before"} all was sent`);
    socket.write(`POST ${table}/data HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n`);
    socket.write(`Content-Length: ${bytes}\r\n\r\n`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /);
    socket.write(Buffer.alloc(bytes, " "), () => {
      isSent = true;
    });
    expect(await Promise.race([failure, ended])).toBe("the server ended it, after all was sent");
    socket.destroy();
  });

  it("without length are cut off at the same limit", async () => {
    const before = await countRecords();
    const chunk = `100000\r\n${"x".repeat(0x100000)}\r\n`;
    const head = `POST ${table}/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await talk([head, '6\r\n{"s":"\r\n', ...Array.from({ length: 25 }, () => chunk)], /"message"[^}]*\}/);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(await countRecords()).toBe(before);
  });

  it("in any other transfer coding than chunked are refused", async () => {
    const before = await countRecords();
    const body = '{"s":"plain"}';
    for (const coding of ["gzip, chunked", "identity, chunked", "chunked, chunked", "x-unknown,chunked"]) {
      const head = `POST ${table}/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
      const answer = await talk([head, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`], /\r\n\r\n/);
      expect([coding, answer.slice(0, 12)]).toEqual([coding, expect.stringMatching(/^HTTP\/1\.1 4(15|00)$/)]);
    }
    expect(await countRecords()).toBe(before);
    const chunked = `POST ${table}/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: Chunked\r\n\r\n`;
    expect(await talk([chunked, `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`], /"id"/)).toMatch(/^HTTP\/1\.1 201 /);
  });

  it("that announce a size beyond the limit are refused before they are sent", async () => {
    const head = `POST ${table}/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n`;
    expect(await talk([head], /"message"[^}]*\}/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("that a client breaks off change nothing, and the server continues", async () => {
    const before = await countRecords();
    const head = `POST ${table}/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"s": "broken`;
    for (let i = 0; i < 20; i++) {
      await new Promise<void>((resolve) => {
        const socket = connect(server.port, "127.0.0.1", () => socket.write(head, () => setTimeout(() => socket.destroy(), 5)));
        socket.on("close", () => resolve());
      });
    }
    expect(await countRecords()).toBe(before);
  });

  it("are optional where nothing is needed", async () => {
    expect((await server.request("POST", `${table}/data`)).status).toBe(201);
    expect((await server.request("POST", `${table}/query`, undefined, { "content-type": "application/json" })).status).toBe(200);
    expect((await server.request("POST", `${table}/query`, "")).status).toBe(200);
  });

  it("may begin with a byte order mark", async () => {
    expect((await server.post(`${table}/data?columns=s`, '\ufeff{"s": "marked"}')).body).toMatchObject({ s: "marked" });
  });

  it("of GET and DELETE are ignored", async () => {
    expect((await server.request("GET", "/dbs", "no json", { "content-type": "text/plain" })).status).toBe(200);
  });

  it("may have a key twice: the last one counts", async () => {
    expect((await server.post(`${table}/data?columns=s`, '{"s": "first", "s": "last"}')).body).toMatchObject({ s: "last" });
  });

  it("may have constructor and prototype as keys of json values, without any effect", async () => {
    await server.post(`${table}/columns`, { name: "j", type: "json" });
    const record = await server.post(`${table}/data?columns=j`, { j: '{"constructor": {"prototype": {"polluted": 1}}}' });
    expect(record.status).toBe(201);
    expect((await server.post(`${table}/data`, { constructor: 1 })).status).toBe(400);
    expect((await server.post(`${table}/data`, { toString: 1 })).status).toBe(400);
  });
});

describe("what is no HTTP", () => {
  it("is answered 400 in the API's shape", async () => {
    const answer = await talk(["NONSENSE\r\n\r\n"]);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/X-Request-Id: [\w-]{36}/);
    expect(answer).toMatch(/\{"id":"[\w-]{36}","message":"The request is not valid HTTP\."\}$/);
  });

  it("headers beyond 16 KiB are answered 431", async () => {
    expect(await talk([`GET /dbs HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`])).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe("health", () => {
  it("/livez and /readyz answer", async () => {
    expect(await server.get("/livez")).toMatchObject({ status: 200, body: { status: "alive" } });
    await expect.poll(() => server.get("/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  });

  it("/metrics counts requests by endpoint, and reveals no names", async () => {
    await server.get(`${table}/schema`);
    const { status, text, headers } = await server.get("/metrics");
    expect(status).toBe(200);
    expect(headers["content-type"]).toContain("text/plain");
    expect(text).toMatch(
      /^lodestone_http_requests_total\{method="GET",endpoint="\/db\/\{db\}:\{branch\}\/tables\/\{table\}\/schema",status="200"\} \d+$/m,
    );
    for (const name of [
      "http_request_duration_seconds_bucket",
      "search_lag_seconds",
      "search_rows",
      "search_memory_bytes",
      "statement_timeouts_total",
      "wal_bytes",
    ]) {
      expect(text).toContain(`lodestone_${name}`);
    }
    expect(text).toContain("process_resident_memory_bytes");
    const log = readdirSync(join(server.dataDir, "postgres", "pg_wal"), { withFileTypes: true }).filter((entry) => entry.isFile());
    expect(log.length).toBeGreaterThan(0);
    const logBytes = log.reduce((sum, { name }) => sum + statSync(join(server.dataDir, "postgres", "pg_wal", name)).size, 0);
    expect(Number(/^lodestone_wal_bytes (\d+)$/m.exec(text)?.[1])).toBe(logBytes);
    expect(text).not.toContain("protocol:main");
  });
});

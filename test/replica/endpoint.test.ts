/** The two requests of a replica, as HTTP: caches, ranges, long polling, and what they refuse. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FrameReader } from "../../src/frames/frames.ts";
import { startServer, type TestServer } from "../support/server.ts";

const TABLE = "/db/live:main/tables/things";
const SNAPSHOT = `${TABLE}/replica?columns=v,n`;

describe("the requests of a replica", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
    await server.put("/db/live:main");
    const columns = [
      { name: "v", type: "vector", vector: { dimension: 3 } },
      { name: "n", type: "int" },
    ];
    expect((await server.put(TABLE, { columns })).status).toBe(201);
    const records = Array.from({ length: 100 }, (_, n) => ({ id: `r${n}`, v: [n, 0, 1], n }));
    expect((await server.post(`${TABLE}/bulk`, { records })).status).toBe(200);
  });
  afterAll(() => server.stop());

  async function bytesOf(path: string, headers: Record<string, string> = {}) {
    const response = await fetch(server.url + path, { headers });
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
  }
  const framesOf = (bytes: Uint8Array) => [...new FrameReader().read(bytes)].map(({ frame }) => frame);
  async function positionOf(): Promise<string> {
    const frames = framesOf((await bytesOf(SNAPSHOT)).bytes);
    const [open, last] = [frames[0], frames.at(-1)];
    if (open?.type !== "open" || last?.type !== "position") throw new Error("expected a snapshot");
    return `${open.life}~${open.reading}~${last.at}`;
  }
  async function changes(body: object) {
    const response = await fetch(`${server.url}${TABLE}/replica`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return framesOf(Buffer.from(await response.arrayBuffer()));
  }

  it("a snapshot can be cached, and continued where it was cut off", async () => {
    const first = await bytesOf(SNAPSHOT);
    const whole = await bytesOf(SNAPSHOT);
    expect(whole.bytes.equals(first.bytes)).toBe(true);
    const etag = whole.headers.get("etag")!;
    expect(whole.headers.get("content-length")).toBe(String(whole.bytes.length));
    expect((await bytesOf(SNAPSHOT, { "If-None-Match": etag })).status).toBe(304);
    const rest = await bytesOf(SNAPSHOT, { Range: "bytes=1000-", "If-Range": etag });
    expect([rest.status, rest.headers.get("content-range")]).toEqual([206, `bytes 1000-${whole.bytes.length - 1}/${whole.bytes.length}`]);
    expect(rest.bytes.equals(whole.bytes.subarray(1000))).toBe(true);
    const another = await bytesOf(SNAPSHOT, { Range: "bytes=1000-", "If-Range": '"another"' });
    expect([another.status, another.bytes.equals(whole.bytes)]).toEqual([200, true]);
  });

  it("an answer that ends has the first changes, or says after a while that there are none", async () => {
    const position = await positionOf();
    const body = { columns: ["v", "n"], position, wait: 30 };
    const waiting = changes(body);
    await server.put(`${TABLE}/data/new`, { v: [1, 1, 1], n: -1 });
    const came = await waiting;
    expect(came.map(({ type }) => type)).toEqual(expect.arrayContaining(["open", "records", "position"]));
    expect(came.find(({ type }) => type === "records")).toMatchObject({ ids: ["new"], values: [null, ["-1"]] });
    const last = came.at(-1) as { at: string };
    const at = `${position.split("~").slice(0, 2).join("~")}~${last.at}`;
    expect((await changes({ ...body, position: at, wait: 0 })).filter(({ type }) => type === "records")).toEqual([]);
  });

  it("a position of another life, or of a read that is to come, is answered with restart", async () => {
    const [life, reading, ...rest] = (await positionOf()).split("~");
    const another = [life!.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")), reading, ...rest].join("~");
    expect(await changes({ columns: ["v"], position: another, wait: 0 })).toMatchObject([{ type: "open" }, { type: "restart" }]);
    const future = [life, "00000000", "7", "99999999:99999999:"].join("~");
    expect(await changes({ columns: ["v"], position: future, wait: 0 })).toMatchObject([{ type: "open" }, { type: "restart" }]);
  });

  it.each(["20:10:", "0:10:", "10:20:25", "10:18446744073709551616:", "10:20:/20:10:/14,3"])(
    "a position that PostgreSQL would refuse (%s) is answered with restart, and is nobody else's fault",
    async (feed) => {
      const [life] = (await positionOf()).split("~");
      const position = [life, "00000000", "1", feed].join("~");
      expect(await changes({ columns: ["v"], position, wait: 0 })).toMatchObject([{ type: "open" }, { type: "restart" }]);
      expect(server.log).not.toMatch(/"level":(50|60)/);
    },
  );

  it.each([
    [`${TABLE}/replica`, 400, "columns: expected 1 to 100 names separated by commas."],
    [`${TABLE}/replica?columns=absent`, 400, 'columns[0]: table "things" has no column "absent".'],
    [`${TABLE}/replica?columns=v&filter=x`, 400, "filter: expected a filter as JSON, an object."],
    ["/db/live:main/tables/nothing/replica?columns=v", 404, "nothing"],
    ["/db/live:absent/tables/things/replica?columns=v", 404, "absent"],
  ])("%s is refused with the reason", async (path, status, message) => {
    expect(await server.get(path)).toMatchObject({ status, body: { message: expect.stringContaining(message) } });
  });

  it("a position that is none is refused", async () => {
    expect(await server.post(`${TABLE}/replica`, { columns: ["v"], position: "here" })).toMatchObject({
      status: 400,
      body: { message: "position: expected one that a frame has given." },
    });
  });
});

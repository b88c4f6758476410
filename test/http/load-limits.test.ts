import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { MemoryBudget } from "../../src/budget/memory-budget.ts";
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from "../../src/http/http-limits.ts";
import { hashKey, Keyring } from "../../src/http/keys/access-keys.ts";
import type { RunningServer } from "../../src/http/server.ts";
import { until } from "../support/patience.ts";
import { RealStores, Talk } from "./real-app.ts";

/**
 * Limits of time and concurrency, with the real stores behind the real application, at values that a test can
 * wait for.
 */

let stores: RealStores;

beforeAll(async () => {
  stores = await RealStores.open();
  await stores.records.createBranch({ database: "l", branch: "main" });
  await stores.records.createTable({ database: "l", branch: "main" }, "t", [{ name: "s", type: "text" }]);
});
afterAll(() => stores?.close());

const withServer = (
  limits: Partial<HttpLimits>,
  work: (server: RunningServer) => Promise<void>,
  keyring = new Keyring(),
  memory?: MemoryBudget,
): Promise<void> => stores.withServer(limits, work, { keyring, ...(memory === undefined ? {} : { memory }) });

/** Metrics are answered at any load, and report how many requests are in flight. */
async function untilUnderWay(server: RunningServer, count: number): Promise<void> {
  await until(`${count} requests are under way`, async () => {
    const text = await (await fetch(`${server.urls[0]}/metrics`)).text();
    return text.includes(`lodestone_http_requests_in_progress ${count}\n`);
  });
}

const HEAD = "POST /db/l:main/tables/t/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const countRecords = async () =>
  (await stores.records.sql({ database: "l", branch: "main" }, { statement: 'SELECT count(*)::int AS n FROM "t"' })).records?.[0]
    ?.n as number;

describe("requests at once", () => {
  it.each([1, 3])(
    "up to %i are worked on; one more is answered 429 and not processed; a place that is free again is given",
    async (concurrentRequests) => {
      await withServer({ concurrentRequests }, async (server) => {
        const before = await countRecords();
        // Requests whose bodies have not arrived yet hold their places.
        const waiting = Array.from({ length: concurrentRequests }, () => new Talk(server));
        for (const talk of waiting) talk.send(`${HEAD}Content-Length: 12\r\n\r\n{"s": `);
        await untilUnderWay(server, concurrentRequests);
        const refused = await fetch(`${server.urls[0]}/db/l:main/tables/t/data`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: '{"s": "x"}',
        });
        expect(refused.status).toBe(429);
        expect(Number(refused.headers.get("x-ratelimit-reset"))).toBeGreaterThanOrEqual(1);
        expect(refused.headers.get("retry-after")).toBe(refused.headers.get("x-ratelimit-reset"));
        expect(await refused.json()).toMatchObject({ id: expect.any(String), message: expect.stringContaining("not processed") });
        expect((await fetch(`${server.urls[0]}/livez`)).status).toBe(200);
        expect((await fetch(`${server.urls[0]}/readyz`)).status).toBe(200);
        expect(await countRecords()).toBe(before);

        for (const talk of waiting) talk.send('"abc"}');
        for (const talk of waiting) await talk.answered(/^HTTP\/1\.1 201 /);
        expect(await countRecords()).toBe(before + concurrentRequests);
        expect((await fetch(`${server.urls[0]}/dbs`)).status).toBe(200);
        for (const talk of waiting) talk.socket.destroy();
      });
    },
  );

  it("a client that leaves returns its place", async () => {
    await withServer({ concurrentRequests: 1 }, async (server) => {
      for (let i = 0; i < 5; i++) {
        const talk = new Talk(server);
        talk.send(`${HEAD}Content-Length: 12\r\n\r\n{"s": `);
        await untilUnderWay(server, 1);
        expect((await fetch(`${server.urls[0]}/dbs`)).status).toBe(429);
        talk.socket.destroy();
        await untilUnderWay(server, 0);
        expect((await fetch(`${server.urls[0]}/dbs`)).status).toBe(200);
      }
    });
  });

  it("bodies may hold only a limited amount of memory together, and those of one caller three quarters of it", async () => {
    await withServer({ concurrentBodyBytes: 100 }, async (server) => {
      const talk = new Talk(server);
      talk.send(`${HEAD}Content-Length: 60\r\n\r\n${'{"s": "'.padEnd(35, "x")}`);
      const post = (length: number) =>
        fetch(`${server.urls[0]}/db/l:main/tables/t/data`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: `{"s":"${"x".repeat(length - 8)}"}`,
        });
      await until("the body holds its memory", async () => (await post(41)).status === 429);
      expect((await post(39)).status).toBe(201);
      expect((await post(40)).status).toBe(201);
      expect((await post(41)).status).toBe(429);
      talk.socket.destroy();
    });
  });

  it("a body holds only what has arrived of it: connections that announce much and send nothing block nobody", async () => {
    await withServer({ bodyBytes: 50, concurrentBodyBytes: 60 }, async (server) => {
      const idle = Array.from({ length: 20 }, () => new Talk(server));
      for (const [i, talk] of idle.entries())
        talk.send(`${HEAD}${i % 2 === 0 ? "Transfer-Encoding: chunked" : "Content-Length: 45"}\r\n\r\n`);
      await untilUnderWay(server, 20);
      const answer = await fetch(`${server.urls[0]}/db/l:main/tables/t/data`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"s":"xxxxxxxx"}',
      });
      expect(answer.status).toBe(201);
      // A body that exceeds the available room is refused in the middle, and its room is free for others
      // again.
      const before = await countRecords();
      const [first, second] = idle as [Talk, Talk];
      first.send(`1e\r\n${'{"s":"'.padEnd(30, "x")}\r\n`);
      second.send('{"s":"'.padEnd(40, "y"));
      await Promise.race([first.answered(/^HTTP\/1\.1 429 /), second.answered(/^HTTP\/1\.1 429 /)]);
      expect(await countRecords()).toBe(before);
      for (const talk of idle) talk.socket.destroy();
      await untilUnderWay(server, 0);
    });
  });
});

describe("callers", () => {
  const key = (name: string) => ({ name, hash: hashKey(name), scope: "write" as const });
  const as = (name: string) => `Authorization: Bearer ${name}\r\n`;

  it("share the places: a caller who holds three quarters of them gets no more, others do", async () => {
    const keyring = new Keyring([key("greedy"), key("modest")]);
    const post = async (server: RunningServer, name: string): Promise<number> => {
      const talk = new Talk(server);
      talk.send(`${HEAD.replace("Content-Type", `${as(name)}Content-Type`)}Content-Length: 10\r\nConnection: close\r\n\r\n{"s": "a"}`);
      await talk.closed;
      return Number(talk.text.slice(9, 12));
    };
    await withServer(
      { concurrentRequests: 8 },
      async (server) => {
        const head = HEAD.replace("Content-Type", `${as("greedy")}Content-Type`);
        const idle = Array.from({ length: 12 }, () => new Talk(server));
        for (const talk of idle) talk.send(`${head}Content-Length: 10\r\n\r\n{"s": `);
        await expect.poll(() => idle.filter((talk) => talk.text.startsWith("HTTP/1.1 429 ")).length).toBe(6);
        expect(await post(server, "modest")).toBe(201);
        expect(await post(server, "greedy")).toBe(429);
        const held = idle.filter((talk) => talk.text === "");
        for (const talk of held) talk.send('"a"}');
        for (const talk of held) await talk.answered(/^HTTP\/1\.1 201 /);
        expect(await post(server, "greedy")).toBe(201);
        for (const talk of idle) talk.socket.destroy();
      },
      keyring,
    );
    await withServer(
      { concurrentBodyBytes: 4_000 },
      async (server) => {
        const head = HEAD.replace("Content-Type", `${as("greedy")}Content-Type`);
        const talk = new Talk(server);
        talk.send(`${head}Content-Length: 3000\r\n\r\n${'{"s": "'.padEnd(2_995, "x")}`);
        await until("the body holds its memory", async () => (await post(server, "greedy")) === 429);
        expect(await post(server, "modest")).toBe(201);
        talk.socket.destroy();
      },
      keyring,
    );
  });
});

describe("slow clients", () => {
  /** Requests whose time passes only when the test says so. A round trip after a piece was sent: it has arrived. */
  async function passes(server: RunningServer, ms: number): Promise<void> {
    await fetch(`${server.urls[0]}/livez`);
    vi.advanceTimersByTime(ms);
  }
  const withOwnClock = (limits: Partial<HttpLimits>, work: (server: RunningServer) => Promise<void>) =>
    withServer(limits, async (server) => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      try {
        await work(server);
      } finally {
        vi.useRealTimers();
      }
    });

  it("a body that pauses too long is answered 408 and changes nothing, one that arrives slowly is accepted", async () => {
    const before = await countRecords();
    await withOwnClock({ bodyIdleTimeoutMs: 1_500 }, async (server) => {
      const paused = new Talk(server);
      paused.send(`${HEAD}Content-Length: 12\r\n\r\n{"s": `);
      const slow = new Talk(server);
      slow.send(`${HEAD}Content-Length: 12\r\n\r\n`);
      await untilUnderWay(server, 2);
      // Longer than the limit together, with pauses below it.
      for (const character of '{"s": "abc"}') {
        await passes(server, 1_000);
        slow.send(character);
      }
      await slow.answered(/^HTTP\/1\.1 201 /);
      await paused.answered(/^HTTP\/1\.1 408 [\s\S]*"message":"The body did not arrive within 1\.5 s\."/);
      slow.socket.destroy();
      await paused.closed;
    });
    expect(await countRecords()).toBe(before + 1);
  });

  it("a body that takes too long as a whole is answered 408", async () => {
    await withOwnClock({ bodyTimeoutMs: 2_500, bodyIdleTimeoutMs: 1_500 }, async (server) => {
      const talk = new Talk(server);
      talk.send(`${HEAD}Content-Length: 1000000\r\n\r\n`);
      await untilUnderWay(server, 1);
      for (let second = 0; second < 3; second++) {
        expect(talk.text).toBe("");
        talk.send(" ");
        await passes(server, 1_000);
      }
      await talk.answered(/^HTTP\/1\.1 408 [\s\S]*"message":"The body did not arrive within 2\.5 s\."/);
      talk.socket.destroy();
    });
  });

  it("headers that never end are answered 408", async () => {
    await withServer({ headersTimeoutMs: 500 }, async (server) => {
      const talk = new Talk(server);
      talk.send("GET /dbs HTTP/1.1\r\nHost: localhost\r\n");
      await talk.answered(/^HTTP\/1\.1 408 [\s\S]*"message":"The request did not arrive in time\."/);
      await talk.closed;
    });
  });

  it("a client that does not read a large response is disconnected", async () => {
    // Holds the memory of a response until its connection is closed.
    const memory = new MemoryBudget({ answerBytes: 64 << 20, totalBytes: 256 << 20 });
    await withServer(
      { answerIdleTimeoutMs: 1_000 },
      async (server) => {
        await stores.records.insertRecord({ database: "l", branch: "main" }, "t", { id: "large", s: "x".repeat(15_000_000) });
        const talk = new Talk(server);
        talk.socket.pause();
        talk.send("GET /db/l:main/tables/t/data/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
        await expect.poll(() => memory.heldBytes).toBeGreaterThan(0);
        await expect.poll(() => memory.heldBytes).toBe(0);
        talk.socket.resume();
        await talk.closed;
        expect(talk.text.length).toBeGreaterThan(0);
        expect(talk.text.length).toBeLessThan(15_000_000);
      },
      new Keyring(),
      memory,
    );
    await withServer({}, async (server) => {
      const whole = await (await fetch(`${server.urls[0]}/db/l:main/tables/t/data/large`)).json();
      expect((whole as { s: string }).s).toHaveLength(15_000_000);
    });
  });

  it("also of the console's files, which need no key and no place", async () => {
    const requests = 400;
    await withServer({ answerIdleTimeoutMs: 1_000 }, async (server) => {
      const page = await (await fetch(`${server.urls[0]}/console`)).text();
      const file = `/${/src="(console\/assets\/[^"]+)"/.exec(page)?.[1]}`;
      const { length } = await (await fetch(server.urls[0] + file)).text();
      const talk = new Talk(server);
      talk.socket.pause();
      talk.send(`GET ${file} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(requests));
      // A paused socket notices that it was closed only when something is sent.
      const probe = setInterval(() => talk.send("\r\n"), 50);
      await talk.closed;
      clearInterval(probe);
      expect(length).toBeGreaterThan(20_000);
      expect(talk.text.length).toBeLessThan(requests * length);
    });
  });
});

describe("the documented values", () => {
  it("are those of the code", () => {
    expect(DEFAULT_HTTP_LIMITS).toEqual({
      bodyBytes: 20_971_520,
      jsonDepth: 100,
      jsonKeys: 250_000,
      jsonObjectKeys: 50_000,
      jsonKeyLength: 262_144,
      jsonValues: 4_000_000,
      jsonContainers: 1_000_000,
      concurrentRequests: 256,
      concurrentBodyBytes: 256 * 1024 * 1024,
      connections: 4_096,
      headersTimeoutMs: 10_000,
      bodyTimeoutMs: 120_000,
      bodyIdleTimeoutMs: 15_000,
      answerIdleTimeoutMs: 30_000,
      shutdownIdleMs: 250,
      shutdownTimeoutMs: 5_000,
      shutdownAnswerMs: 500,
    });
  });
});

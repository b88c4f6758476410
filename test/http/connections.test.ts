import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { networkOf, TrustedProxies } from "../../src/http/connections/client-address.ts";
import { RealStores, Talk } from "./real-app.ts";

/** Connections of several clients: addresses of loopback, each of which is a client of its own. */

let stores: RealStores;

beforeAll(async () => {
  stores = await RealStores.open();
  await stores.records.createBranch({ database: "c", branch: "main" });
  await stores.records.createTable({ database: "c", branch: "main" }, "t", [{ name: "s", type: "text" }]);
});
afterAll(() => stores?.close());

const ALIVE = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HALF_A_BODY =
  'POST /db/c:main/tables/t/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"s": ';
const OK = /^HTTP\/1\.1 200 /;

const ask = async (talk: Talk): Promise<Talk> => {
  talk.text = "";
  talk.send(ALIVE);
  await talk.answered(OK);
  return talk;
};

describe("connections", () => {
  it.each([4, 8])("of %i in all one client has three quarters; one more closes the one that waits the longest", async (connections) => {
    await stores.withServer({ connections }, async (server, log) => {
      const most = (connections * 3) / 4;
      const held: Talk[] = [];
      // Each has been answered before the next comes, so their order is known.
      for (let i = 0; i < most; i++) held.push(await ask(new Talk(server, "127.0.0.2")));
      expect(log).toEqual([]);
      // The first has asked again: the second is the one that waits.
      await ask(held[0]!);
      const next = await ask(new Talk(server, "127.0.0.2"));
      await held[1]!.closed;
      for (const talk of [...held, next]) if (talk !== held[1]) await ask(talk);
      expect(log.map(({ msg }) => msg)).toEqual([
        expect.stringContaining(`The client 127.0.0.2 has ${most} of ${connections} connections`),
      ]);
      for (const talk of [...held, next]) talk.socket.destroy();
    });
  });

  it("that say nothing, of two clients who take all there are, make room for a third one's health check", async () => {
    await stores.withServer({ connections: 8 }, async (server, log) => {
      const silent: Talk[] = [];
      for (const [from, count] of [
        ["127.0.0.2", 6],
        ["127.0.0.3", 2],
      ] as const) {
        for (let i = 0; i < count; i++) {
          silent.push(new Talk(server, from));
          // A connection is counted before a later one is answered.
          await ask(silent.at(-1)!);
        }
      }
      const health = await ask(new Talk(server, "127.0.0.4"));
      await silent[0]!.closed;
      // As many others as there are: each takes a place of the one who has the most.
      for (let i = 0; i < 3; i++) await ask(new Talk(server, "127.0.0.4"));
      for (const talk of silent.slice(0, 4)) await talk.closed;
      for (const talk of [...silent.slice(4), health]) await ask(talk);
      expect(log.map(({ msg }) => msg)).toEqual([expect.stringContaining("All 8 connections are open")]);
      for (const talk of [...silent, health]) talk.socket.destroy();
    });
  });

  it("whose requests are worked on are not closed for others; when all are, a new one is", async () => {
    await stores.withServer({ connections: 4 }, async (server) => {
      const busy = ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"].map((from) => new Talk(server, from));
      for (const talk of busy) {
        talk.send(HALF_A_BODY.replace("Content-Type", "Expect: 100-continue\r\nContent-Type"));
        // It is said when the request begins, which then has its place.
        await talk.answered(/^HTTP\/1\.1 100 /);
        talk.text = "";
      }
      const refused = new Talk(server, "127.0.0.4");
      refused.send(ALIVE);
      await refused.closed;
      expect(refused.text).toBe("");
      for (const talk of busy) talk.send('"abc"}');
      for (const talk of busy) await talk.answered(/^HTTP\/1\.1 201 /);
      // They wait now, and make room.
      await ask(new Talk(server, "127.0.0.4"));
      await Promise.race(busy.map((talk) => talk.closed));
      for (const talk of busy) talk.socket.destroy();
    });
  });

  it("of a trusted proxy are not one client's, and are the last to be closed for others", async () => {
    const proxies = new TrustedProxies(["127.0.0.9"]);
    await stores.withServer(
      { connections: 4 },
      async (server) => {
        const ofProxy: Talk[] = [];
        for (let i = 0; i < 3; i++) ofProxy.push(await ask(new Talk(server, "127.0.0.9")));
        const other = await ask(new Talk(server, "127.0.0.2"));
        // Its fourth one takes the place of somebody else's.
        ofProxy.push(await ask(new Talk(server, "127.0.0.9")));
        await other.closed;
        for (const talk of ofProxy) await ask(talk);
        await ask(new Talk(server, "127.0.0.2"));
        await ofProxy[0]!.closed;
        for (const talk of ofProxy) talk.socket.destroy();
      },
      { proxies },
    );
  });

  it("are counted together, whichever address they came to", async () => {
    await stores.withServer(
      { connections: 4 },
      async (server) => {
        const held: Talk[] = [];
        for (let i = 0; i < 3; i++) held.push(await ask(new Talk(server, "127.0.0.2")));
        const answer = await Promise.all([fetch(`${server.urls[1]}/livez`), fetch(`${server.urls[1]}/livez`)]);
        expect(answer.map(({ status }) => status)).toEqual([200, 200]);
        await held[0]!.closed;
        for (const talk of held) talk.socket.destroy();
      },
      { addresses: ["127.0.0.1", "::1"] },
    );
  });
});

describe("clients without a key behind a proxy", () => {
  /** Holds a place until its body is sent. */
  const begin = (talk: Talk, forwardedFor: string): void =>
    talk.send(HALF_A_BODY.replace("Content-Type", `X-Forwarded-For: ${forwardedFor}\r\nContent-Type`));
  const take = async (proxies: TrustedProxies): Promise<number> => {
    let status = 0;
    await stores.withServer(
      { concurrentRequests: 4 },
      async (server) => {
        const first = Array.from({ length: 4 }, () => new Talk(server));
        for (const talk of first) begin(talk, "198.51.100.1");
        // Three have places, the fourth is refused.
        await Promise.race(first.map((talk) => talk.answered(/^HTTP\/1\.1 429 /)));
        const second = new Talk(server);
        begin(second, "spoofed, 198.51.100.2");
        second.send('"abc"}');
        await second.answered(/^HTTP\/1\.1 \d/);
        status = Number(second.text.slice(9, 12));
        for (const talk of [...first, second]) talk.socket.destroy();
        await Promise.all([...first, second].map((talk) => talk.closed));
      },
      { proxies },
    );
    return status;
  };

  it("are told apart by the last address in X-Forwarded-For that the proxy wrote, and only if the operator trusts it", async () => {
    expect(await take(new TrustedProxies(["127.0.0.0/8"]))).toBe(201);
    expect(await take(new TrustedProxies(["10.0.0.0/8"]))).toBe(429);
    expect(await take(new TrustedProxies())).toBe(429);
  });

  it.each([
    ["192.0.2.1", undefined, "192.0.2.1"],
    ["192.0.2.1", "198.51.100.7", "192.0.2.1"],
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["10.0.0.1", "198.51.100.7", "198.51.100.7"],
    ["10.0.0.1", "203.0.113.9, 198.51.100.7, 10.1.1.1", "198.51.100.7"],
    ["10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", "198.51.100.7, unknown", "10.0.0.1"],
    ["10.0.0.1", "198.51.100.7:80, 10.0.0.2", "10.0.0.2"],
    ["fd00::1", "2001:db8::7", "2001:db8::7"],
    ["::ffff:10.0.0.1", "2001:db8::7", "2001:db8::7"],
  ])("from %s with %s is %s", (remote, forwardedFor, client) => {
    expect(new TrustedProxies(["10.0.0.0/8", "fd00::/8"]).clientOf(remote, forwardedFor)).toBe(client);
  });

  it.each(["", "x", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.1/", "10.0.0.1/8/8"])("%s is not a network", (entry) => {
    expect(() => new TrustedProxies([entry])).toThrow(/--trust-proxy: .* is neither an address nor a network/);
  });

  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2::9", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1:2:3:4%eth0", "fe80:0:0:0::/64"],
    ["2001:db8:1::", "2001:db8:1:0::/64"],
  ])("%s is counted as %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

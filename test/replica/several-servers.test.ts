/** A replica of several servers on one PostgreSQL, each of whose requests goes to another one. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Replica } from "../../src/library/replica/replica.ts";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer, type TestServer } from "../support/server.ts";

const TABLE = "/db/many:main/tables/t";

describeWith("postgresql", "a replica of several servers", (bin) => {
  let postgres: TestPostgres;
  let servers: [TestServer, TestServer];
  let replica: Replica | undefined;
  beforeAll(async () => {
    postgres = await startPostgres(bin);
    const databaseUrl = await postgres.createDatabase();
    servers = [await startServer({ databaseUrl }), await startServer({ databaseUrl })];
    await servers[0].put("/db/many:main");
    expect((await servers[0].put(TABLE, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] })).status).toBe(201);
  });
  afterAll(async () => {
    for (const server of servers ?? []) await server.stop();
    await postgres?.stop();
  });
  afterEach(async () => {
    await replica?.close();
    replica = undefined;
  });

  const write = async (server: TestServer, id: string): Promise<string | undefined> =>
    (await server.put(`${TABLE}/data/${id}`, { v: [1, 2] })).headers["lodestone-read"] as string | undefined;

  /** Like a balancer: `next` says which server gets a request; one that is away gets none. */
  async function openBy(next: () => number, onStatus: (phase: string) => void = () => {}): Promise<Replica> {
    const toNext: typeof fetch = (input, init) => {
      const up = servers.filter(({ isRunning }) => isRunning);
      return fetch(String(input).replace("http://balancer", up[next() % up.length]!.url), init);
    };
    replica = await Replica.open({
      url: "http://balancer/db/many:main",
      table: "t",
      columns: ["v"],
      fetch: toNext,
      onStatus: ({ phase }) => onStatus(phase),
    });
    return replica;
  }

  it.each([
    ["in turns", (n: number) => n],
    ["the stream to the first, all else to the second", (n: number) => (n === 1 ? 0 : 1)],
  ])("is current after a write to any of them, %s", async (_, server) => {
    let requests = 0;
    const replica = await openBy(() => server(requests++));
    for (let i = 0; i < 10; i++) {
      await write(servers[i % 2]!, `w${i}`);
      await replica.current();
      expect(await replica.get(`w${i}`)).toBeDefined();
      const read = await write(servers[(i + 1) % 2]!, `x${i}`);
      await replica.current(read);
      expect(await replica.get(`x${i}`)).toBeDefined();
    }
    // Many at once have what was written before each of them.
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        await write(servers[i % 2]!, `y${i}`);
        await replica.current();
        expect(await replica.get(`y${i}`)).toBeDefined();
      }),
    );
  });

  it("goes on with another one when its own is killed, from where it is", async () => {
    const phases: string[] = [];
    const replica = await openBy(
      () => 0,
      (phase) => phases.push(phase),
    );
    await replica.current();
    phases.length = 0;
    await servers[0].end("SIGKILL");
    await write(servers[1], "while");
    await replica.current().catch(() => {});
    await expect.poll(() => replica.get("while")).toBeDefined();
    await servers[0].start();
    await write(servers[0], "again");
    await replica.current();
    expect(await replica.get("again")).toBeDefined();
    expect(phases).not.toContain("loading");
  });
});

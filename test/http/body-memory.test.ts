/**
 * The heap that the values of bodies take is counted before they are held: no number of bodies within the
 * limits exhausts it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryLimits } from "../../src/budget/process-limits.ts";
import { Admission, collectGarbage, ReleasedBodies } from "../../src/http/admission/admission.ts";
import { memoryOf, shapeOf } from "../../src/http/body/read-json.ts";
import { jsonPieces } from "../../src/records/json-pieces.ts";
import { startServer, type TestServer } from "../support/server.ts";

const MIB = 2 ** 20;
const lists = (count: number): string => `[${"[1],".repeat(count - 1)}[1]]`;

describe("memoryOf", () => {
  /** The memory that V8 takes, as measured on 64 bits. */
  it.each([
    ["empty objects in a list", 67, Array.from({ length: 1_000 }, () => ({}))],
    ["lists of one number", 68, Array.from({ length: 1_000 }, () => [1])],
    ["one object of different keys", 87, Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, 1]))],
    ["objects with a key of their own each", 184, Array.from({ length: 1_000 }, (_, i) => ({ [`k${i}`]: 1 }))],
  ])("is at least what V8 takes for %s", (_, bytesEach, value) => {
    const text = JSON.stringify(value);
    expect(memoryOf(shapeOf(value, text.length))).toBeGreaterThanOrEqual(1_000 * bytesEach);
  });

  it("is less than four times the text for typical bodies", () => {
    const vectors = Array.from({ length: 20 }, (_, i) => ({ id: `r${i}`, v: Array.from({ length: 384 }, (_, n) => Math.sin(n)) }));
    const text = JSON.stringify({ records: vectors });
    expect(memoryOf(shapeOf(JSON.parse(text), text.length))).toBeLessThan(4 * text.length);
  });
});

it("a value's text, written piece by piece, takes its characters and no more", () => {
  const value = Array.from({ length: 300_000 }, () => ({}));
  const heapBytes = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heapBytes();
  const pieces = [...jsonPieces(value)];
  const after = heapBytes();
  // Added up from 600,000 texts, it takes twenty times as much.
  expect(after - before).toBeLessThan(4 * pieces.join("").length);
});

describe("Admission", () => {
  const admission = () => new Admission({ concurrentRequests: 100, concurrentBodyBytes: 100 * MIB });

  it("counts a body by its values where they are more than four times its bytes", () => {
    const own = admission();
    const place = own.enter("a", 0);
    place.arrived(10 * MIB);
    place.holds(39 * MIB);
    expect(own.bodyBytes).toBe(10 * MIB);
    place.holds(80 * MIB);
    expect(own.bodyBytes).toBe(20 * MIB);
    place.leave();
    expect(own.bodyBytes).toBe(0);
  });

  it("refuses temporarily what does not fit beside others, and permanently what never fits", () => {
    const own = admission();
    own.enter("a", 0).holds(160 * MIB);
    expect(() => own.enter("a", 0).holds(160 * MIB)).toThrow(expect.objectContaining({ code: "OVERLOADED" }));
    expect(() => own.enter("a", 0).holds(301 * MIB)).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
    own.enter("b", 0).holds(160 * MIB);
    expect(own.bodyBytes).toBe(80 * MIB);
  });

  it("admits the largest body with the least memory", () => {
    const { bodyBytes } = memoryLimits(512 * MIB);
    const place = new Admission({ concurrentRequests: 1, concurrentBodyBytes: bodyBytes }).enter("a", 20 * MIB);
    expect(() => place.arrived(20 * MIB)).not.toThrow();
  });
});

describe("ReleasedBodies", () => {
  it("collects once bodies of half the budget were released, however many; small ones do not count", async () => {
    let collections = 0;
    const released = new ReleasedBodies(100 * MIB, () => collections++);
    const add = async (mib: number): Promise<number> => {
      released.add(mib * MIB);
      await new Promise((resolve) => setImmediate(resolve));
      return collections;
    };
    expect([await add(30), await add(19), await add(0.9), await add(1), await add(49), await add(60), await add(60)]).toEqual([
      0, 0, 0, 1, 1, 2, 3,
    ]);
  });

  it("frees what nobody refers to, before V8 would", async () => {
    const values = new WeakRef(JSON.parse(lists(1_000)) as object);
    // What a WeakRef was made for or asked for stays until the end of the turn.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(values.deref()).toBe(undefined);
  });
});

describe("a server with little memory", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ args: ["--max-memory", "512MB"], env: { NODE_OPTIONS: "--max-old-space-size=320" } });
    await server.put("/db/b:main");
    await server.put("/db/b:main/tables/t", { columns: [{ name: "j", type: "json" }] });
  });
  afterAll(() => server?.stop());

  const post = (path: string, body: string) =>
    fetch(`${server.url}/db/b:main/tables/t/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body });

  it("survives bodies whose values together are larger than its heap", async () => {
    const { pid } = server;
    // About 50 MB of values each, parsed in turns. Refused only once completely parsed, since it is not a
    // list of columns.
    const body = `{"columns":${lists(700_000)}}`;
    const answers = await Promise.all(Array.from({ length: 12 }, () => post("query", body).then(({ status }) => status)));
    expect(answers.filter((status) => status !== 400 && status !== 429)).toEqual([]);
    expect(answers).toContain(400);
    expect([server.isRunning, server.pid]).toEqual([true, pid]);
  });

  it("refuses even a short body that would take too much by itself, and says what to do", async () => {
    const refused = await post("data", `{"j":${lists(950_000)}}`);
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining("Send several smaller requests") });
  });
});

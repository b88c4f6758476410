/** One reading of a branch after another: their numbers are not the same, though both begin at one. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { FrameReader } from "../../src/frames/frames.ts";
import type { RecordStore } from "../../src/records/record-store.ts";
import { Definition } from "../../src/replica/definition.ts";
import { FollowedBranch } from "../../src/replica/followed-branch.ts";
import { RealStores } from "../http/real-app.ts";

const REF = { database: "f", branch: "main" };
const { signal } = new AbortController();

let stores: RealStores;
let records: RecordStore;
beforeAll(async () => {
  stores = await RealStores.open();
  records = stores.records;
  await records.createBranch(REF);
  await records.createTable(REF, "t", [{ name: "n", type: "int" }]);
});
afterAll(() => stores?.close());

async function follow(): Promise<{ branch: FollowedBranch; definition: Definition }> {
  const feed = records.feed.forFollower("replicas");
  const branch = await FollowedBranch.start(REF, records, feed, (error) => {
    throw error;
  });
  const definition = new Definition(await records.branch(REF), "t", { columns: ["n"] });
  branch.want(definition);
  return { branch, definition };
}

it("a replica of an earlier reading misses nothing that was written between them", async () => {
  const { branch: first } = await follow();
  const position = await first.readNow(signal);
  expect(position.read).toBe(1);
  first.end("Nobody has asked for it for a while.");
  await records.insertRecord(REF, "t", { id: "between", n: 1 });
  const { branch: second, definition } = await follow();
  while ((await second.readNow(signal)).read < 3);
  await records.insertRecord(REF, "t", { id: "after", n: 2 });
  await second.readNow(signal);
  const next = await second.next(definition, position, true);
  if (next === undefined || "restart" in next) throw new Error("expected changes");
  const frames = next.frames.flatMap((bytes) => [...new FrameReader().read(bytes)].map(({ frame }) => frame));
  expect(frames.flatMap((frame) => (frame.type === "records" ? frame.ids : [])).sort()).toEqual(["after", "between"]);
  expect([next.position.reading, next.position.read]).toEqual([second.reading, 4]);
  expect(second.reading).not.toBe(first.reading);
  second.end("");
});

it("rests for replicas that come back, until it is released, and is not released under the one that follows after it", async () => {
  const { branch: first } = await follow();
  const position = await first.readNow(signal);
  const over: string[] = [];
  first.rest(() => over.push("first"));
  for (let n = 0; n < 3; n++) await records.insertRecord(REF, "t", { n });
  expect(await records.feed.backlogBytes(REF)).toBeGreaterThan(0);
  const { branch: second, definition } = await follow();
  first.replaced();
  await records.insertRecord(REF, "t", { id: "later", n: 9 });
  const next = await second.next(definition, position, true);
  expect(next).toMatchObject({ frames: expect.anything() });
  second.end("");
  expect(over).toEqual([]);
});

it("a group that came since a replica last looked does not have to be followed by another one", async () => {
  const { branch } = await follow();
  await branch.readNow(signal);
  const seen = branch.lastRead;
  await branch.readNow(signal);
  expect(await branch.wake(signal, undefined, seen)).toBe(true);
  expect(await branch.wake(signal, 1, branch.lastRead)).toBe(false);
  branch.end("");
  expect(await branch.wake(signal)).toBe(true);
});

it("many replicas are told in turns, between which others are served", async () => {
  const { branch } = await follow();
  await branch.readNow(signal);
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const waiting = Array.from({ length: 1000 }, () => branch.wake(new AbortController().signal).then(() => turn));
  branch.changed();
  const turns = await Promise.all(waiting);
  isOver = true;
  const most = Math.max(...turns.map((own) => turns.filter((other) => other === own).length));
  expect(most).toBeLessThanOrEqual(64);
  branch.end("");
});

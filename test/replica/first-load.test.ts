/** The first load and the next start of a replica, from answers and stores that this file makes up. */
import { afterEach, expect, it, vi } from "vitest";
import { encodeFrame, FRAMES_VERSION, type OpenFrame } from "../../src/frames/frames.ts";
import { Replica } from "../../src/library/replica/replica.ts";
import type { ReplicaOptions, ReplicaStatus } from "../../src/library/replica/replica-options.ts";
import type { ReplicaStore } from "../../src/library/replica/replica-store.ts";

const OPEN: OpenFrame = {
  type: "open",
  version: FRAMES_VERSION,
  columns: [
    { name: "v", type: "vector", dimension: 2 },
    { name: "n", type: "int" },
  ],
  life: "life",
  reading: "reading",
};
const recordsOf = (...ns: number[]): Uint8Array<ArrayBuffer> =>
  encodeFrame({ type: "records", ids: ns.map((n) => `r${n}`), values: [null, ns.map(String)] }, [
    Float32Array.from(ns.flatMap((n) => [n, 1])),
  ]);
const positionOf = (at: number): Uint8Array<ArrayBuffer> => encodeFrame({ type: "position", at: String(at) });
const SNAPSHOT = [encodeFrame(OPEN), recordsOf(0, 1, 2), recordsOf(3, 4), recordsOf(5), positionOf(1)];
const CHANGES = [encodeFrame(OPEN), positionOf(2)];

/** An answer that ends, or one that goes on until the caller has enough. */
function answer(pieces: readonly Uint8Array[], ends: boolean, init: RequestInit | undefined): Response {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Uint8Array.from(piece));
      if (ends) controller.close();
      else init?.signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
    },
  });
  return new Response(body, { headers: ends ? { "content-length": String(length) } : {} });
}

/** @param snapshots  the pieces of one after the other. @param follow  what comes after a position that is seen. */
function serverOf(snapshots: readonly (readonly Uint8Array[])[], follow: readonly Uint8Array[] = CHANGES): typeof fetch {
  let next = 0;
  return async (_url, init) => {
    if (init?.method === undefined) return answer(snapshots[next++]!, true, init);
    const { wait } = JSON.parse(init.body as string) as { wait?: number };
    return wait === undefined ? answer(follow, false, init) : answer(CHANGES, true, init);
  };
}

class MemoryStore implements ReplicaStore {
  pieces: Uint8Array<ArrayBuffer>[] = [];
  readonly calls: string[] = [];

  async *read(): AsyncGenerator<Uint8Array, void, undefined> {
    yield* this.pieces;
  }

  async append(_name: string, pieces: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
    this.calls.push("append");
    this.pieces.push(...pieces);
  }

  async replace(_name: string, pieces: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void> {
    this.calls.push("replace");
    const all: Uint8Array<ArrayBuffer>[] = [];
    for await (const piece of pieces) all.push(piece);
    this.pieces = all;
  }

  async delete(): Promise<void> {
    this.calls.push("delete");
    this.pieces = [];
  }
}

const open: Replica[] = [];
afterEach(async () => {
  for (const replica of open.splice(0)) await replica.close();
  vi.restoreAllMocks();
});
async function replicaOf(fetch: typeof globalThis.fetch, more: Partial<ReplicaOptions> = {}): Promise<Replica> {
  const replica = await Replica.open({ url: "http://made.up/db/d:main", table: "t", columns: ["v", "n"], fetch, ...more });
  open.push(replica);
  return replica;
}

it("tells how much has come at most every 50 ms, and the end of it", async () => {
  const bytes = SNAPSHOT.reduce((sum, { length }) => sum + length, 0);
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  const told: ReplicaStatus[] = [];
  const onStatus = (status: ReplicaStatus): void => void (status.phase === "loading" && told.push(status));
  const pieces = [...Buffer.concat(SNAPSHOT)].map((byte) => Uint8Array.of(byte));
  await replicaOf(serverOf([pieces]), { onStatus });
  expect(told.map((status) => status.bytes)).toEqual([0, bytes]);
  told.length = 0;
  now.mockRestore();
  let time = 0;
  // Each look at the clock is 25 ms after the one before.
  vi.spyOn(performance, "now").mockImplementation(() => 25 * time++);
  await replicaOf(serverOf([pieces]), { onStatus });
  expect(told.length).toBeGreaterThan(3);
  expect(told.at(-1)).toEqual({ phase: "loading", bytes, totalBytes: bytes });
});

it.each([0, 1])("of a snapshot that is damaged in the middle nothing is seen, and it is loaded again, with %i workers", async (shards) => {
  const damaged = Uint8Array.from(SNAPSHOT[2]!);
  damaged[9] = 0xff;
  const seen: (readonly [string, number | undefined])[] = [];
  let replica: Replica | undefined;
  const onStatus = ({ phase }: ReplicaStatus): void => void seen.push([phase, replica?.size]);
  const snapshots = [[...SNAPSHOT.slice(0, 2), damaged, ...SNAPSHOT.slice(3)], SNAPSHOT.slice(0, 3), SNAPSHOT];
  replica = await replicaOf(serverOf(snapshots), { onStatus, shards });
  const phases = seen.map(([phase]) => phase).filter((phase, i, all) => phase !== all[i - 1]);
  expect(phases.slice(0, 6)).toEqual(["loading", "offline", "loading", "offline", "loading", "behind"]);
  expect(replica.size).toBe(6);
  for (const n of [0, 2, 3, 5]) {
    expect(await replica.get(`r${n}`)).toEqual({ id: `r${n}`, n });
    expect(await replica.vector(`r${n}`)).toEqual(Float32Array.of(n, 1));
  }
});

it.each([0, 1])("what is kept after changes is what was shown, though their vectors went to %i workers", async (shards) => {
  const store = new MemoryStore();
  const changes = [encodeFrame(OPEN), positionOf(2), recordsOf(6, 7), recordsOf(0), positionOf(3)];
  const first = await replicaOf(serverOf([SNAPSHOT], changes), { store, shards });
  await expect.poll(() => first.position).toBe("life~reading~3");
  await first.close();
  expect(store.calls).toEqual(["replace", "append"]);
  const next = await replicaOf(serverOf([]), { store, shards });
  expect([next.size, next.position?.slice(0, 13)]).toEqual([8, "life~reading~"]);
  for (const n of [0, 5, 6, 7]) expect(await next.vector(`r${n}`)).toEqual(Float32Array.of(n, 1));
});

it("what is kept and ends with a part of a frame is written anew before anything is appended to it", async () => {
  const store = new MemoryStore();
  store.pieces = [...SNAPSHOT, recordsOf(6).slice(0, -3)];
  const changes = [encodeFrame(OPEN), positionOf(2), recordsOf(7), positionOf(3)];
  const first = await replicaOf(serverOf([], changes), { store });
  await expect.poll(() => first.position).toBe("life~reading~3");
  await first.close();
  expect(store.calls).toEqual(["replace", "append"]);
  const next = await replicaOf(serverOf([]), { store });
  expect([next.size, await next.get("r6"), await next.get("r7")]).toEqual([7, undefined, { id: "r7", n: 7 }]);
});

it("what is kept and is damaged is deleted, and the server's state loaded", async () => {
  const store = new MemoryStore();
  const damaged = Uint8Array.from(SNAPSHOT[2]!);
  damaged[9] = 0xff;
  store.pieces = [SNAPSHOT[0]!, SNAPSHOT[1]!, damaged, SNAPSHOT[4]!];
  const replica = await replicaOf(serverOf([SNAPSHOT]), { store });
  expect(replica.size).toBe(6);
  await expect.poll(() => store.calls).toEqual(["delete", "replace"]);
});

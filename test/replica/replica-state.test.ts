/** Frames on their way into a replica's state: with their buffers, several at once, in order. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { ParallelVectorIndex } from "../../src/core/parallel-vector-index.ts";
import { encodeFrame, FRAMES_VERSION, FrameReader, type OpenFrame, type ReadFrame, type RecordsFrame } from "../../src/frames/frames.ts";
import { Columns } from "../../src/library/columns.ts";
import { ReplicaState } from "../../src/library/replica/replica-state.ts";
import { WritesUnderWay } from "../../src/library/replica/writes-under-way.ts";

const OPEN: OpenFrame = {
  type: "open",
  version: FRAMES_VERSION,
  columns: [
    { name: "v", type: "vector", dimension: 4 },
    { name: "n", type: "int" },
    { name: "w", type: "vector", dimension: 2 },
  ],
  life: "life",
  reading: "reading",
};
const POSITION = "life~reading~1";
const elementsOf = (from: number, count: number, dimension: number): Float32Array =>
  Float32Array.from({ length: count * dimension }, (_, i) => from * dimension + i + 1);

/** Records `from` to `from + count`, all with vectors; of the second column only those that `has` names. */
function records(from: number, count: number, has?: readonly number[]): ReadFrame {
  const frame: RecordsFrame = {
    type: "records",
    ids: Array.from({ length: count }, (_, i) => `r${from + i}`),
    values: [null, Array.from({ length: count }, (_, i) => String(from + i)), null],
    ...(has !== undefined && { present: ["all", null, has] }),
  };
  const second = has === undefined ? elementsOf(from, count, 2) : Float32Array.from(has.flatMap((i) => [...elementsOf(from + i, 1, 2)]));
  const [read] = new FrameReader().read(encodeFrame(frame, [elementsOf(from, count, 4), second]));
  return read!;
}

let states: ReplicaState[] = [];
async function stateOf(shards: number, open = OPEN): Promise<ReplicaState> {
  const state = await ReplicaState.create(open, { makeColumns: (types) => new Columns(types), shards });
  states.push(state);
  return state;
}
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  for (const state of states) await state.free();
  states = [];
});

describe.each([true, false])("a frame's vectors (shared memory: %s)", (isShared) => {
  it.each([1, 2])("are transferred with their buffer, and are in the state what they were, with %i workers", async (shards) => {
    if (!isShared) vi.stubGlobal("SharedArrayBuffer", undefined);
    const state = await stateOf(shards);
    // Rows 0 to 511 are the first worker's, so the second frame is of both.
    const frames = [records(0, 500), records(500, 100), records(600, 3, [0, 2])];
    for (const read of frames) await state.add(read);
    await state.apply([], POSITION);
    expect(frames.map(({ vectors }) => vectors.length)).toEqual(shards === 1 ? [0, 0, 0] : [0, 600, 0]);
    expect([state.size, state.position]).toEqual([603, POSITION]);
    for (const n of [0, 499, 500, 511, 512, 599, 600, 602]) {
      expect(await state.vector("v", `r${n}`)).toEqual(elementsOf(n, 1, 4));
      expect(await state.vector("w", `r${n}`)).toEqual(elementsOf(n, 1, 2));
      expect(await state.get(`r${n}`)).toEqual({ id: `r${n}`, n });
    }
    expect(await state.vector("w", "r601")).toBeUndefined();
  });
});

/** Of each write to an index, in order: its first id, and what ends it. */
function heldWrites(): { readonly ids: string[]; readonly ends: { resolve(): void; reject(error: Error): void }[] } {
  const [ids, ends]: [string[], { resolve(): void; reject(error: Error): void }[]] = [[], []];
  vi.spyOn(ParallelVectorIndex.prototype, "setRows").mockImplementation((_rows, [first]) => {
    ids.push(first!);
    return new Promise((resolve, reject) => ends.push({ resolve, reject }));
  });
  return { ids, ends };
}
const ONE_COLUMN: OpenFrame = { ...OPEN, columns: OPEN.columns.slice(0, 2) };
const record = (n: number): ReadFrame => ({ ...records(n, 1), vectors: elementsOf(n, 1, 4) as Float32Array<ArrayBuffer> });
/** Everything that waits for nothing else has happened. */
const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("while the worker writes", () => {
  it("up to four frames are under way, in order, and the position is there when all are written", async () => {
    const { ids, ends } = heldWrites();
    const state = await stateOf(1, ONE_COLUMN);
    const added = (async () => {
      for (let n = 0; n < 6; n++) await state.add(record(n));
      await state.apply([record(6)], POSITION);
    })();
    await expect.poll(() => ids).toEqual(["r0", "r1", "r2", "r3"]);
    await rest();
    expect(ids.length).toBe(4);
    ends[0]!.resolve();
    await expect.poll(() => ids).toEqual(["r0", "r1", "r2", "r3", "r4"]);
    for (let n = 1; n < 6; n++) {
      await expect.poll(() => ends.length).toBeGreaterThan(n);
      ends[n]!.resolve();
    }
    await expect.poll(() => ids.at(-1)).toBe("r6");
    await rest();
    expect(state.position).toBeUndefined();
    ends[6]!.resolve();
    await added;
    expect(state.position).toBe(POSITION);
  });

  it("the first error ends it: no further frame is written, and the state is of no use", async () => {
    const { ids, ends } = heldWrites();
    const state = await stateOf(1, ONE_COLUMN);
    const added = (async () => {
      for (let n = 0; n < 6; n++) await state.add(record(n));
      await state.apply([], POSITION);
    })();
    added.catch(() => {});
    await expect.poll(() => ids.length).toBe(4);
    ends[2]!.reject(new Error("later"));
    ends[1]!.reject(new Error("no room"));
    ends[0]!.resolve();
    await expect(added).rejects.toThrow("no room");
    expect([ids.length, state.isFailed, state.position]).toEqual([5, true, undefined]);
    await expect(state.search(undefined, [1, 0, 0, 0], {})).rejects.toThrow("no room");
    await expect(state.apply([], POSITION)).rejects.toThrow("no room");
  });

  it("no more than 16 MB are under way, unless one frame is larger", async () => {
    const writes = new WritesUnderWay();
    const ends: (() => void)[] = [];
    const told: number[] = [];
    const write = (): Promise<void> => new Promise((resolve) => ends.push(resolve));
    const added = (async () => {
      for (const [n, megabytes] of [9, 9, 40, 1].entries()) {
        await writes.add(write(), megabytes << 20);
        told.push(n);
      }
      await writes.end();
      told.push(-1);
    })();
    await rest();
    expect([ends.length, told]).toEqual([2, [0]]);
    ends[0]!();
    await rest();
    expect([ends.length, told]).toEqual([3, [0, 1]]);
    ends[1]!();
    await rest();
    expect([ends.length, told]).toEqual([3, [0, 1]]);
    ends[2]!();
    await rest();
    expect([ends.length, told]).toEqual([4, [0, 1, 2, 3]]);
    ends[3]!();
    await added;
    expect(told.at(-1)).toBe(-1);
  });
});

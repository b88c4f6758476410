import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { seededRandom } from "../../bench/data.mjs";
import { Columns, openVectorFile, ParallelVectorIndex, RowDirectory, TextColumns, VectorIndex, VectorStore } from "../../src/index.ts";
import { runs } from "../support/random-runs.ts";

const TYPES = { title: "string", year: "int", tags: "multiple", more: "json" } as const;

interface Case {
  dimension: number;
  count: number;
  /** undefined: a VectorIndex. */
  shards: number | undefined;
  columns: typeof Columns | typeof TextColumns | undefined;
  /** The directory and the columns are shared with a second index. */
  isShared: boolean;
}

/** What is written, and what two indexes of these options have. */
class Subject {
  readonly #writes: unknown[] = [];
  readonly index: VectorIndex | ParallelVectorIndex;
  readonly #other: VectorIndex | undefined;
  readonly #rows: RowDirectory | undefined;

  constructor(index: VectorIndex | ParallelVectorIndex, other: VectorIndex | undefined, rows: RowDirectory | undefined) {
    this.index = index;
    this.#other = other;
    this.#rows = rows;
  }

  static async create({ dimension, shards, columns: Kind, isShared }: Case): Promise<Subject> {
    const columns = Kind && new Kind(TYPES);
    const rows = isShared ? new RowDirectory() : undefined;
    const index =
      shards === undefined
        ? await VectorIndex.create({ dimension, columns, rows })
        : await ParallelVectorIndex.create({ dimension, columns, rows, shards });
    return new Subject(index, rows && (await VectorIndex.create({ dimension: 1, columns, rows })), rows);
  }

  /** Changes something, chosen by the numbers of `random` alone. */
  write(random: () => number, { dimension, count, columns, isShared }: Case): void {
    const below = (n: number): number => Math.floor(random() * n);
    const newId = (): string => `ö${below(count * 1.1)}`;
    const values = () =>
      columns && below(3) > 0
        ? { title: `word${below(50)}`, year: below(9), tags: ["a", "b"].slice(below(3)), more: below(2) ? { n: below(9) } : null }
        : undefined;
    const vector = (n: number): Float32Array => new Float32Array(n).fill(random() - 0.5);
    const many = (most: number): string[] => Array.from({ length: 1 + below(most) }, newId);
    const kind = below(isShared ? 24 : 20);
    if (kind < 8) this.#writes.push(this.index.upsert(newId(), vector(dimension), values()));
    else if (kind < 11) {
      const ids = many(below(2) ? 3 : count);
      this.#writes.push(this.index.upsertMany(ids, vector(ids.length * dimension), columns && ids.map(values)));
    } else if (kind < 16) this.#writes.push(this.index.delete(newId()));
    else if (kind < 19) this.#writes.push(this.index.deleteMany(many(below(2) ? 3 : count / 4)));
    else if (kind < 20) {
      if (below(4) === 0) this.#writes.push(this.index.clear());
    } else if (kind < 22) for (const id of many(5)) this.#rows!.release(id);
    else this.#other!.upsert(newId(), vector(1), values());
  }

  async end(): Promise<void> {
    await Promise.all(this.#writes);
    await this.index.free();
  }
}

/** Ids are gathered in two steps; vectors are read in several. */
const SIZES = [
  { dimension: 2, count: 5000 },
  { dimension: 512, count: 1100 },
];
const CASES = SIZES.flatMap((size) =>
  [undefined, 1, 3].flatMap((shards) =>
    [undefined, Columns, TextColumns].flatMap((columns) => [false, true].map((isShared): Case => ({ ...size, shards, columns, isShared }))),
  ),
);

describe("saves while the index is changed", () => {
  it("have the bytes that toBytes would have given at the call, two at once, whatever is written between any two pieces", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...CASES), fc.integer(), async (kind, seed) => {
        const random = seededRandom(seed);
        const subject = await Subject.create(kind);
        // Changed in the same way, and in one thread: its toBytes waits for nothing.
        const twin = await Subject.create({ ...kind, shards: undefined });
        const write = (): void => {
          const same = Math.floor(random() * 2 ** 31);
          for (const each of [subject, twin]) each.write(seededRandom(same), kind);
        };
        const ids = Array.from({ length: kind.count }, (_, i) => `ö${i}`);
        const matrix = Float32Array.from({ length: kind.count * kind.dimension }, random);
        const values = kind.columns && ids.map((_, i) => ({ title: `a word${i}`, year: i }));
        for (const { index } of [subject, twin]) {
          await index.upsertMany(ids, matrix, values);
          await index.deleteMany(ids.filter((_, i) => i % 3 === 0));
        }
        const save = async (): Promise<void> => {
          const expected = (twin.index as VectorIndex).toBytes();
          const reader = subject.index.toStream().getReader();
          const pieces: Uint8Array[] = [];
          for (let writes = Math.floor(random() * 4); writes > 0; writes--) write();
          for (;;) {
            if (random() < 0.5) write();
            const reading = reader.read();
            // Also while ids are gathered and vectors are on their way.
            for (let turns = Math.floor(random() * 4); turns > 0; turns--) {
              await Promise.resolve();
              write();
            }
            const { done, value } = await reading;
            if (done) break;
            pieces.push(value);
          }
          expect(Buffer.concat(pieces).equals(expected)).toBe(true);
        };
        await Promise.all([save(), save()]);
        await save();
        await Promise.all([subject.end(), twin.end()]);
      }),
      { numRuns: runs(30) },
    );
  });

  it.each([VectorIndex, ParallelVectorIndex])("of %o the rows are those at the call, not those at the first read", async (Index) => {
    const index = await Index.create({ dimension: 2, shards: 2 });
    await index.upsertMany(["a", "b"], Float32Array.of(1, 2, 3, 4));
    const before = await index.toBytes();
    const stream = index.toStream();
    await index.delete("a");
    await index.upsert("c", [5, 6]);
    await index.upsert("b", [7, 8]);
    expect(new Uint8Array(await new Response(stream as ReadableStream).arrayBuffer())).toEqual(new Uint8Array(before));
    await index.free();
  });

  it("of an index whose vectors are in a file end with CONFLICT when it is changed before their end", async () => {
    const folder = mkdtempSync(join(tmpdir(), "lodestone-saves-"));
    try {
      const file = openVectorFile(join(folder, "one.vectors"));
      const one = await VectorIndex.create({ dimension: 64, vectors: new VectorStore(file) });
      const shards = await ParallelVectorIndex.create({ dimension: 64, shards: 2, vectors: folder });
      for (const index of [one, shards]) {
        await index.upsertMany(["a", "b"], new Float32Array(128).fill(1));
        const whole = Buffer.from(await new Response(index.toStream() as ReadableStream).arrayBuffer());
        expect(whole.equals(await index.toBytes())).toBe(true);
        for (const change of [() => index.delete("a"), () => index.upsert("c", new Float32Array(64))]) {
          const stream = index.toStream();
          await change();
          await expect(new Response(stream as ReadableStream).arrayBuffer()).rejects.toMatchObject({ code: "CONFLICT" });
        }
        await index.free();
      }
      file.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("a stream that nobody reads any more, or that is cancelled, keeps nothing", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const columns = new Columns({ year: "int" });
    const index = await VectorIndex.create({ dimension: 2, columns });
    index.upsert("a", [1, 2], { year: 1 });
    const keep = vi.spyOn(columns, "keep");
    const isKept = (): boolean => {
      keep.mockClear();
      index.upsert("a", [1, 2], { year: 2 });
      return keep.mock.calls.length > 0;
    };
    const stream = index.toStream();
    expect(isKept()).toBe(true);
    await stream.cancel();
    expect(isKept()).toBe(false);
    index.toStream();
    await expect
      .poll(() => {
        collect();
        return isKept();
      })
      .toBe(false);
  });
});

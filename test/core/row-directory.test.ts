/** Ids and rows compared with a Map, which held them before, up to its limit of 16,777,216. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowDirectory } from "../../src/index.ts";
import { compareText } from "../../src/text/code-point-order.ts";

/** What RowDirectory promises, as obvious code. */
class MapDirectory {
  readonly rows = new Map<string, number>();
  readonly #free: number[] = [];
  capacity = 0;

  add(id: string): number {
    const known = this.rows.get(id);
    if (known !== undefined) return known;
    const row = this.#free.pop() ?? this.capacity++;
    this.rows.set(id, row);
    return row;
  }

  release(id: string): boolean {
    const row = this.rows.get(id);
    if (row === undefined) return false;
    this.rows.delete(id);
    this.#free.push(row);
    return true;
  }
}

const ID = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 40 }).map((n) => `id-${n}`) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  // With a common beginning, of lengths where the length itself takes another byte, and longer than a block.
  { weight: 1, arbitrary: fc.constantFrom(0, 126, 127, 128, 129, 511, 513, 16_383, 16_384, 70_000).map((n) => "x".repeat(n)) },
  { weight: 1, arbitrary: fc.constantFrom("é".repeat(64), "\u{1F600}".repeat(300), "\u0000", "￿", "\u{10000}", "\uFEFFmark", "") },
);
const STEP = fc.record({ id: ID, isRelease: fc.boolean() });

describe("RowDirectory", () => {
  it("gives the rows that a Map would, whatever the order of adding and releasing", () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 300 }), (steps) => {
        const directory = new RowDirectory();
        const expected = new MapDirectory();
        for (const { id, isRelease } of steps) {
          if (isRelease) expect(directory.release(id)).toBe(expected.release(id));
          else expect(directory.add(id)).toBe(expected.add(id));
          expect(directory.rowOf(id)).toBe(expected.rows.get(id));
        }
        const byRow = [...expected.rows].sort(([, a], [, b]) => a - b);
        expect([...directory.entries()]).toEqual(byRow);
        expect([directory.size, directory.capacity]).toEqual([expected.rows.size, expected.capacity]);
        for (const [id, row] of byRow) expect(directory.idOf(row)).toBe(id);
        for (const [a, rowA] of byRow.slice(0, 20))
          for (const [b, rowB] of byRow.slice(0, 20)) expect(directory.isBefore(rowA, rowB)).toBe(compareText(a, b) < 0);
      }),
    );
  });

  it("keeps ids that are longer than a block, and those around them", () => {
    const directory = new RowDirectory();
    const ids = Array.from({ length: 40 }, (_, i) => (i % 7 === 3 ? `${i}`.repeat(600_000) : `small ${i}`));
    for (const id of ids) directory.add(id);
    for (const id of ids.filter((_, i) => i % 3 === 0)) directory.release(id);
    for (const [i, id] of ids.entries()) {
      expect(directory.rowOf(id)).toBe(i % 3 === 0 ? undefined : i);
      expect(directory.idOf(i)).toBe(i % 3 === 0 ? undefined : id);
    }
  });

  it("keeps thirty thousand ids through ten times as many changes, and returns their memory", () => {
    const directory = new RowDirectory();
    const rows = new Map<string, number>();
    let seed = 1;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    let peak = 0;
    for (let step = 0; step < 300_000; step++) {
      const id = `rec_${random(30_000).toString(32).padStart(16, "0")}`;
      if (random(2) === 0) rows.set(id, directory.add(id));
      else if (directory.release(id) !== rows.delete(id)) throw new Error(`release of ${id} at step ${step}`);
      peak = Math.max(peak, directory.memoryBytes);
    }
    expect(directory.size).toBe(rows.size);
    for (const [id, row] of rows) if (directory.rowOf(id) !== row || directory.idOf(row) !== id) throw new Error(id);
    // 15,000 ids of 20 bytes: the space of deleted ones is reused.
    expect(peak).toBeLessThan(30_000 * 100);
  });

  it("takes about 50 bytes per id of 20", () => {
    const directory = new RowDirectory();
    for (let i = 0; i < 200_000; i++) directory.add(`rec_${i.toString(32).padStart(16, "0")}`);
    expect(directory.memoryBytes / 200_000).toBeLessThan(55);
  });

  it("is not misled by bytes that look like an id", () => {
    const directory = new RowDirectory();
    directory.add("�");
    directory.add("5");
    expect(directory.rowOf("\ud800")).toBeUndefined();
    expect(() => directory.rowOf(5 as unknown as string)).toThrow(TypeError);
    expect(() => directory.add("a\udc00")).toThrow(RangeError);
    expect(() => directory.add(5 as unknown as string)).toThrow(TypeError);
    expect(directory.size).toBe(2);
  });
});

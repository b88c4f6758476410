import { describe, expect, test } from "vitest";
import { FairTurns } from "../../src/fairness/fair-turns.ts";

/** Works that begin when they get a turn, and end when they are told to. */
class Works {
  readonly begun: string[] = [];
  readonly #turns: FairTurns;
  readonly #ends = new Map<string, () => void>();

  constructor(options: { places: number; placesPerGroup?: number; waitMs?: number }) {
    this.#turns = new FairTurns({ waitMs: 3_600_000, busy: () => "all are busy", ...options });
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  start(name: string, { caller = name, group, signal }: { caller?: string; group?: string; signal?: AbortSignal } = {}): Promise<string> {
    return this.#turns.run(
      caller,
      signal,
      () => {
        this.begun.push(name);
        return new Promise<string>((resolve) => this.#ends.set(name, () => resolve(name)));
      },
      { group },
    );
  }

  /** Resolves when whoever waited for the place has it. */
  async end(name: string): Promise<void> {
    this.#ends.get(name)!();
    await new Promise(setImmediate);
  }
}

const settled = (): Promise<void> => new Promise(setImmediate);

describe("FairTurns", () => {
  test("a group has its own bound, and who waits for it keeps no place from others", async () => {
    const works = new Works({ places: 4, placesPerGroup: 2 });
    for (const name of ["a1", "a2", "a3"]) void works.start(name, { group: "a" });
    await settled();
    expect(works.begun).toEqual(["a1", "a2"]);
    for (const name of ["b1", "none"]) void works.start(name, name === "b1" ? { group: "b" } : {});
    await settled();
    expect(works.begun).toEqual(["a1", "a2", "b1", "none"]);
    await works.end("a1");
    expect(works.begun.at(-1)).toBe("a3");
    expect(works.waiting).toBe(0);
  });

  test("what a caller sends to another group overtakes what it has waiting for a full one", async () => {
    const works = new Works({ places: 8, placesPerGroup: 1 });
    for (const [name, group] of ["a1 a", "a2 a", "b1 b"].map((text) => text.split(" ") as [string, string]))
      void works.start(name, { caller: "one", group });
    await settled();
    expect(works.begun).toEqual(["a1", "b1"]);
    await works.end("a1");
    expect(works.begun).toEqual(["a1", "b1", "a2"]);
  });

  test("one caller gets three quarters of a group at most, and a new one a place of it", async () => {
    const works = new Works({ places: 100, placesPerGroup: 4 });
    for (const name of ["1", "2", "3", "4"]) void works.start(name, { caller: "greedy", group: "g" });
    void works.start("polite", { group: "g" });
    await settled();
    expect(works.begun).toEqual(["1", "2", "3", "polite"]);
  });

  test("places of a group whose works have ended are free", async () => {
    const works = new Works({ places: 2, placesPerGroup: 1 });
    for (let round = 0; round < 5; round++) {
      const work = works.start(`${round}`, { caller: "one", group: "g" });
      await settled();
      await works.end(`${round}`);
      expect(await work).toBe(`${round}`);
    }
  });

  test("whoever leaves, or has waited for too long, is not begun, and takes no place", async () => {
    const leaving = new AbortController();
    const works = new Works({ places: 1, waitMs: 1 });
    const first = works.start("first");
    const left = works.start("left", { signal: leaving.signal });
    const late = works.start("late");
    leaving.abort(new Error("has left"));
    await expect(left).rejects.toThrow("has left");
    await expect(late).rejects.toMatchObject({ code: "OVERLOADED", message: "all are busy" });
    await works.end("first");
    await first;
    void works.start("next");
    await settled();
    expect(works.begun).toEqual(["first", "next"]);
  });
});

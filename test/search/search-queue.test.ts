import { describe, expect, test } from "vitest";
import { SearchQueue } from "../../src/search/search-queue.ts";

/** Work that ends when told to. */
function controlled() {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    started.push(name);
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
  };
  return { started, work, end: (name: string) => ends.get(name)!() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("the queue of searches", () => {
  test("sends two ahead and the rest in order", async () => {
    const queue = new SearchQueue();
    const { started, work, end } = controlled();
    const all = ["a", "b", "c", "d"].map((name) => queue.run("", undefined, work(name)));
    await settled();
    expect(started).toEqual(["a", "b"]);
    expect(queue.waiting).toBe(2);
    end("b");
    await settled();
    expect(started).toEqual(["a", "b", "c"]);
    end("a");
    await settled();
    end("c");
    end("d");
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d"]);
    const last = queue.run("", undefined, work("e"));
    await settled();
    end("e");
    expect(await last).toBe("e");
  });

  test("sends many small searches ahead, and no more once a large one is among them", async () => {
    const queue = new SearchQueue();
    const { started, work, end } = controlled();
    const MIB = 2 ** 20;
    const small = Array.from({ length: 20 }, (_, i) => `small${i}`);
    const all = small.map((name) => queue.run("", undefined, work(name), 15 * MIB));
    all.push(queue.run("", undefined, work("large"), 2 ** 40), queue.run("", undefined, work("last"), MIB));
    await settled();
    expect(started).toEqual(small.slice(0, 16));
    for (const name of small.slice(0, 15)) end(name);
    await settled();
    // As soon as there is any room, not when there is enough: it is its turn.
    expect(started).toEqual([...small, "large", "last"]);
    const more = queue.run("", undefined, work("larger"), 2 ** 40);
    const waiting = queue.run("", undefined, work("smallest"), 1);
    await settled();
    end("small15");
    await settled();
    expect(started.slice(-1)).toEqual(["larger"]);
    for (const name of [...small.slice(16), "large", "last", "larger"]) end(name);
    await settled();
    end("smallest");
    expect(await Promise.all([...all, more, waiting])).toHaveLength(24);
  });

  test("refuses what is too much, with the time to wait, and accepts more once there is room", async () => {
    const queue = new SearchQueue(2);
    const { started, work, end } = controlled();
    const all = ["a", "b", "c", "d"].map((name) => queue.run("", undefined, work(name)));
    await expect(queue.run("", undefined, work("e"))).rejects.toMatchObject({
      code: "OVERLOADED",
      message: "2 searches are waiting already; try again in 1 s.",
      retryAfterSeconds: 1,
    });
    end("a");
    await settled();
    const next = queue.run("", undefined, work("f"));
    for (const name of ["b", "c", "d", "f"]) {
      await settled();
      end(name);
    }
    expect(await Promise.all([...all, next])).toEqual(["a", "b", "c", "d", "f"]);
    expect(started).not.toContain("e");
  });

  test("lets go of a caller who gave up while waiting, and does not begin its work", async () => {
    const queue = new SearchQueue();
    const { started, work, end } = controlled();
    const controller = new AbortController();
    const [a, b] = [queue.run("", undefined, work("a")), queue.run("", undefined, work("b"))];
    const given = queue.run("", controller.signal, work("c"));
    const d = queue.run("", undefined, work("d"));
    controller.abort(new Error("gone"));
    await expect(given).rejects.toThrow("gone");
    expect(queue.waiting).toBe(1);
    for (const name of ["a", "b", "d"]) {
      await settled();
      end(name);
    }
    await Promise.all([a, b, d]);
    expect(started).toEqual(["a", "b", "d"]);
    await expect(queue.run("", controller.signal, work("e"))).rejects.toThrow("gone");
  });

  test("takes turns between callers, and keeps places for them", async () => {
    const queue = new SearchQueue(8);
    const { started, work, end } = controlled();
    const greedy = Array.from({ length: 8 }, (_, i) => queue.run("greedy", undefined, work(`g${i}`)));
    await expect(queue.run("greedy", undefined, work("g8"))).rejects.toMatchObject({ code: "OVERLOADED" });
    const modest = ["m0", "m1"].map((name) => queue.run("modest", undefined, work(name)));
    for (const name of ["g0", "g1"]) end(name);
    await settled();
    expect(started).toContain("m0");
    for (let count = 2; count < 10; count++) {
      end(started[count]!);
      await settled();
    }
    expect(started.indexOf("m1")).toBeLessThan(6);
    await Promise.all([...greedy, ...modest]);
  });

  test("searches for words, which may take seconds, have places of their own, and leave one to other callers", async () => {
    const queue = new SearchQueue();
    const { started, work, end } = controlled();
    const words = ["w0", "w1", "w2", "w3"].map((name) => queue.runWords("heavy", undefined, work(name)));
    const vectors = queue.run("other", undefined, work("v"));
    const short = queue.runWords("other", undefined, work("w"));
    await settled();
    expect(started).toEqual(["w0", "w1", "w2", "v", "w"]);
    expect(queue.waiting).toBe(1);
    for (const name of ["w0", "w1", "w2", "v", "w", "w3"]) {
      end(name);
      await settled();
    }
    await Promise.all([...words, vectors, short]);
  });

  test("continues after work that fails", async () => {
    const queue = new SearchQueue();
    const failures = Array.from({ length: 5 }, () => queue.run("", undefined, () => Promise.reject(new Error("no"))));
    for (const failure of failures) await expect(failure).rejects.toThrow("no");
    expect(await queue.run("", undefined, async () => 1)).toBe(1);
  });

  test("refuses waiting work when it is closed", async () => {
    const queue = new SearchQueue();
    const { work, end } = controlled();
    const [a, b, c] = ["a", "b", "c"].map((name) => queue.run("", undefined, work(name)));
    queue.close(new Error("closed"));
    await expect(c).rejects.toThrow("closed");
    end("a");
    end("b");
    await Promise.all([a, b]);
  });
});

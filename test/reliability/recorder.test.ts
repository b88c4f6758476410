import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Recorder } from "./workload/recorder.ts";

test.each([
  ["before the moment is settled: a read after it tells what was left", true],
  ["after the moment may still be carried out: no read tells what was left", false],
])("a request whose client gave up %s", async (_, isSettled) => {
  const recorder = new Recorder("many");
  const start = performance.now();
  await sleep(2);
  await recorder.record(0, "k", async () => ({ do: "create", value: 1 }));
  await sleep(2);
  recorder.settle(isSettled ? performance.now() : start);
  await sleep(2);
  await recorder.record(1, "k", async () => ({ do: "read", saw: null }));
  recorder.judge("k");
  expect([...recorder.retired]).toEqual(isSettled ? [["k", null]] : []);
  expect(recorder.faults).toEqual([]);
});

test.each([
  ["overlaps its last read and is answered first", 5, 10],
  ["overlaps its last read and is answered last", 10, 5],
])("a key's final state is unknown if a write %s", async (_, writeMs, readMs) => {
  const recorder = new Recorder("many");
  await Promise.all([
    recorder.record(0, "k", async () => {
      await sleep(writeMs);
      return { do: "put", value: 1, answer: { version: 0 } };
    }),
    sleep(2).then(() =>
      recorder.record(1, "k", async () => {
        await sleep(readMs);
        return { do: "read", saw: null };
      }),
    ),
  ]);
  recorder.judge("k");
  expect([...recorder.retired]).toEqual([]);
  expect(recorder.faults).toEqual([]);
});

test("a retired key that was written while writes were lost is judged again after the promotion; others stay as they were left", async () => {
  const recorder = new Recorder("many");
  const write = async (key: string): Promise<void> => {
    await recorder.record(0, key, async () => ({ do: "create", value: recorder.freshValue(), answer: { done: true } }));
    await sleep(2);
  };
  const retire = async (key: string, value: number | null): Promise<void> => {
    await sleep(2);
    await recorder.record(1, key, async () => ({ do: "read", saw: value === null ? null : { value, version: 0 } }));
    recorder.judge(key);
  };
  await write("left");
  const leftUntilMs = performance.now();
  await sleep(2);
  const lostFromMs = performance.now();
  await sleep(2);
  await write("lost");
  await retire("left", 1);
  await retire("lost", 2);
  expect([...recorder.retired.keys()]).toEqual(["left", "lost"]);
  await sleep(2);
  const cutOffMs = performance.now();
  // Read on the former primary: that does not tell what is left.
  await write("lost too");
  await recorder.record(1, "lost too", async () => ({ do: "read", saw: { value: 3, version: 0 } }));
  expect(recorder.promoted({ leftUntilMs, lostFromMs, cutOffMs, reachedMs: performance.now() })).toEqual(["lost"]);
  expect(recorder.lostWrites).toBe(1);
  recorder.judge("lost too");
  expect([...recorder.retired]).toEqual([["left", { value: 1, version: 0 }]]);
  recorder.whole();
  await retire("lost", null);
  expect(recorder.retired.get("lost")).toBe(null);
  expect(recorder.faults).toEqual([]);
});

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

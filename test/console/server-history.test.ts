/** The readings of a server's metrics that the page keeps. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import type { Reading } from "../../src/console/server/metrics.ts";

// The page's modules are only in its bundles.
const entry = fileURLToPath(new URL("../../src/console/server/metrics.ts", import.meta.url));
const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false });
const url = `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? "")}`;
const { parseMetrics, withReading } = (await import(/* @vite-ignore */ url)) as typeof import("../../src/console/server/metrics.ts");

const reading = (time: number, start = 1): Reading => ({ time, metrics: parseMetrics(`process_start_time_seconds ${start}`) });

describe("the history of a server", () => {
  it("reaches back to the first reading, the older the coarser, and is bounded", () => {
    let readings: readonly Reading[] = [];
    for (let time = 0; time < 5_000; time++) readings = withReading(readings, reading(time));
    const times = readings.map(({ time }) => time);
    expect(times.length).toBeLessThanOrEqual(150);
    expect(times[0]).toBe(0);
    expect(times.slice(-70)).toEqual(Array.from({ length: 70 }, (_, i) => 4_930 + i));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it("begins anew when the server has been restarted", () => {
    const readings = withReading([reading(1), reading(2)], reading(3, 2));
    expect(readings.map(({ time }) => time)).toEqual([3]);
  });
});

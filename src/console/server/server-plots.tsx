/** Which of the server's metrics are plotted. */
import type { JSX } from "preact";
import { sizeInWords } from "../parts/bytes.ts";
import { gauge, isFailure, isOthers, isRefused, isSearch, latency, type Reading, requestRate, type Series } from "./metric-series.ts";
import { Plot } from "./plot.tsx";

const rate = (value: number): string => `${shortly(value)}/s`;
const milliseconds = (value: number): string => `${shortly(value)} ms`;

interface PlotKind {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly lines: readonly { readonly label: string; readonly of: (readings: readonly Reading[]) => Series }[];
}

const gaugeLine = (label: string, metric: string, scale?: number): PlotKind["lines"][number] => ({
  label,
  of: (readings) => gauge(readings, metric, scale),
});

const PLOTS: readonly PlotKind[] = [
  {
    title: "Requests",
    format: rate,
    lines: [
      { label: "all", of: (readings) => requestRate(readings, isOthers) },
      { label: "searches", of: (readings) => requestRate(readings, isSearch) },
    ],
  },
  {
    title: "Latency",
    format: milliseconds,
    lines: [
      { label: "half below", of: (readings) => latency(readings, 0.5) },
      { label: "99 of 100 below", of: (readings) => latency(readings, 0.99) },
    ],
  },
  {
    title: "Refused and failed",
    format: rate,
    lines: [
      { label: "beyond capacity (429)", of: (readings) => requestRate(readings, isRefused) },
      { label: "failed (5xx)", of: (readings) => requestRate(readings, isFailure) },
    ],
  },
  {
    title: "Searches behind the records",
    format: milliseconds,
    lines: [
      gaugeLine("oldest change not seen", "lodestone_search_lag_seconds", 1000),
      gaugeLine("99 of 100 seen within", "lodestone_search_lag_p99_seconds", 1000),
    ],
  },
  {
    title: "Memory",
    format: sizeInWords,
    lines: [gaugeLine("process", "process_resident_memory_bytes"), gaugeLine("search", "lodestone_search_memory_bytes")],
  },
  {
    title: "Event loop",
    format: milliseconds,
    lines: [
      gaugeLine("mean wait", "nodejs_eventloop_lag_mean_seconds", 1000),
      gaugeLine("99 of 100 below", "nodejs_eventloop_lag_p99_seconds", 1000),
    ],
  },
];

export function ServerPlots({ readings }: { readings: readonly Reading[] }): JSX.Element {
  const times = readings.map(({ time }) => time);
  return (
    <div class="plots">
      {PLOTS.map(({ title, format, lines }) => (
        <Plot
          key={title}
          title={title}
          times={times}
          format={format}
          lines={lines.map(({ label, of }) => ({ label, values: of(readings) }))}
        />
      ))}
    </div>
  );
}

const shortly = (value: number): string =>
  value >= 100 || value === 0 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toPrecision(2);

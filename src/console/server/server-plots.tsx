/** Which of the server's metrics are plotted. */

import type { JSX } from "preact";
import type uPlot from "uplot";
import { sizeInWords } from "../parts/numbers.ts";
import { PlotFrame, type PlotLook } from "../parts/plot-frame.tsx";
import { gauge, isFailure, isOthers, isRefused, isSearch, latency, type Reading, requestRate, type Series } from "./metrics.ts";

const rate = (value: number): string => `${shortly(value)}/s`;
const milliseconds = (value: number): string => (value >= 1_000 ? `${shortly(value / 1_000)} s` : `${shortly(value)} ms`);

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
      { label: "p50", of: (readings) => latency(readings, 0.5) },
      { label: "p99", of: (readings) => latency(readings, 0.99) },
    ],
  },
  {
    title: "Errors",
    format: rate,
    lines: [
      { label: "429, at capacity", of: (readings) => requestRate(readings, isRefused) },
      { label: "5xx, failed", of: (readings) => requestRate(readings, isFailure) },
    ],
  },
  {
    title: "Search lag",
    format: milliseconds,
    lines: [gaugeLine("now", "lodestone_search_lag_seconds", 1000), gaugeLine("p99", "lodestone_search_lag_p99_seconds", 1000)],
  },
  {
    title: "Memory",
    format: sizeInWords,
    lines: [
      gaugeLine("RSS", "process_resident_memory_bytes"),
      gaugeLine("heap", "nodejs_heap_size_used_bytes"),
      gaugeLine("search", "lodestone_search_memory_bytes"),
    ],
  },
  {
    title: "Event loop lag",
    format: milliseconds,
    lines: [gaugeLine("mean", "nodejs_eventloop_lag_mean_seconds", 1000), gaugeLine("p99", "nodejs_eventloop_lag_p99_seconds", 1000)],
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

const shortly = (value: number): string => (value >= 10 ? value.toFixed(0) : String(Number(value.toPrecision(2))));

interface Line {
  readonly label: string;
  readonly values: Series;
}

interface PlotProps {
  title: string;
  /** Seconds since 1970, one for each value. */
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
}

const HEIGHT = 150;
/** Names of colours in base.css, and of classes in server.css. */
const COLORS = ["--accent", "--negative", "--bad"] as const;

/** A plot over time. The legend gives the latest values as text. */
function Plot({ title, times, lines, format }: PlotProps): JSX.Element {
  const data = [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  return (
    <section class="card plot" aria-label={title}>
      <h2>{title}</h2>
      <PlotFrame data={data} optionsOf={(look) => optionsOf(look, lines, format)} about={title} height={HEIGHT} />
      <ul class="legend">
        {lines.map(({ label, values }, i) => (
          <li key={label}>
            <span class={`line-sample line-${i}`} aria-hidden="true" />
            {label} <b>{latestOf(values, format)}</b>
          </li>
        ))}
      </ul>
    </section>
  );
}

function latestOf(values: Series, format: (value: number) => string): string {
  const latest = values.at(-1);
  return latest === null || latest === undefined ? "–" : format(latest);
}

/** "14:03:20", on one line. */
const timeOf = (seconds: number): string => new Date(seconds * 1000).toLocaleTimeString("en-GB");

function optionsOf({ color, axis }: PlotLook, lines: readonly Line[], format: (value: number) => string) {
  return {
    // From zero, so that the height of a line shows its size.
    scales: {
      y: { range: (_: uPlot, __: number, most: number): uPlot.Range.MinMax => [0, Math.max(most ?? 0, Number.MIN_VALUE) * 1.1 || 1] },
    },
    axes: [
      { ...axis, size: 28, space: 90, values: (_: uPlot, splits: number[]) => splits.map(timeOf) },
      { ...axis, size: 64, values: (_: uPlot, splits: number[]) => splits.map(format) },
    ],
    series: [
      {},
      ...lines.map(
        ({ label }, i): uPlot.Series => ({
          label,
          stroke: color(COLORS[i % COLORS.length] as string),
          width: 1.5,
          spanGaps: false,
          points: { show: false },
        }),
      ),
    ],
  };
}

/** Which of the server's metrics are plotted. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { sizeInWords } from "../parts/numbers.ts";
import { currentTheme } from "../state/theme.ts";
import { gauge, isFailure, isOthers, isRefused, isSearch, latency, type Reading, requestRate, type Series } from "./metrics.ts";

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

/** A plot over time, drawn by uPlot on a canvas. The legend gives the latest values as text. */
function Plot({ title, times, lines, format }: PlotProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data = [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  const labels = lines.map(({ label }) => label).join("\n");
  const theme = currentTheme();

  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    plot.current = new uPlot(optionsOf(element, lines, format), data, element);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [labels, theme]);

  useEffect(() => plot.current?.setData(data), [times]);

  return (
    <section class="card plot" aria-label={title}>
      <h2>{title}</h2>
      <div ref={frame} class="plot-frame" aria-hidden="true" />
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

function optionsOf(element: HTMLElement, lines: readonly Line[], format: (value: number) => string): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--muted"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    // From zero, so that the height of a line shows its size.
    scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, Number.MIN_VALUE) * 1.1 || 1] } },
    axes: [
      { ...axis, size: 28, space: 90, values: (_, splits) => splits.map(timeOf) },
      { ...axis, size: 64, values: (_, splits) => splits.map(format) },
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

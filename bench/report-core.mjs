/** What bench:report makes of a run of `npm run bench`: a headline for the README, all figures for docs/benchmarks.md, and a chart. */
import { barChart } from "./bar-chart.mjs";

const PLANS = ["C", "relaxed", "simd", "simd floats", "1 shard", "2 shards"];
const STYLES = { relaxed: "ours", simd: "ours-plain", "simd floats": "other", "1 shard": "shard", "2 shards": "shards" };

/** The README's rows: title, `what` and plan of the run. */
const HEADLINE = [
  ["one query, cosine", "cosineSimilarity", "relaxed"],
  ["one query, cosine, without relaxed SIMD", "cosineSimilarity", "simd"],
  ["one query, l2", "l2", "relaxed"],
  ["one query, l1", "l1", "relaxed"],
  ["cosine, filter selects 1 %", "cosine, filter 1 %", "relaxed"],
  ["two shards on two cores, cosine", "cosine, in workers, in a row", "2 shards"],
  ["100 queries at once, cosine, each", "100 queries, per query", "relaxed"],
];
const HEADLINE_SETS = ["random, 100000 × 768", "256 clusters, 100000 × 768"];

const spread = ({ median, low, high }) => `${median.toFixed(2)} <sub>${low.toFixed(2)}–${high.toFixed(2)}</sub>`;

export function reportCore({ machine, k, at, measured }) {
  const timed = measured.filter((entry) => entry.milliseconds);
  const find = (set, what, plan) => timed.find((entry) => entry.set === set && entry.what === what && entry.plan === plan);
  const where = `${machine.cpu}, Node ${machine.node}, ${at.slice(0, 10)}`;

  function headline() {
    const cell = (entry) => {
      if (entry === undefined) return "";
      const ratio = entry.ratio === undefined ? "" : ` (**${entry.ratio.toFixed(2)}**)`;
      return `${entry.milliseconds.median.toFixed(1)} ms${ratio}`;
    };
    const rows = HEADLINE.map(([title, what, plan]) => [title, HEADLINE_SETS.map((set) => cell(find(set, what, plan)))]).filter(
      ([, cells]) => cells.some(Boolean),
    );
    const yardstick = find(HEADLINE_SETS[0], "cosineSimilarity", "C");
    return [
      `100,000 × 768 vectors, exact top ${k}; in brackets the time ÷ that of a native C float32 scan${yardstick ? ` (${yardstick.milliseconds.median.toFixed(1)} ms)` : ""} in the same run. ${where}.`,
      "",
      "| | random directions | 256 clusters (nearer to real embeddings) |",
      "|---|---|---|",
      ...rows.map(([title, cells]) => `| ${title} | ${cells.join(" | ")} |`),
    ].join("\n");
  }

  /** One row for each (set, what), one column for each plan. */
  function table() {
    const plans = PLANS.filter((plan) => timed.some((entry) => entry.plan === plan));
    const rows = new Map();
    for (const entry of timed) {
      const key = `${entry.set} | ${entry.what}`;
      if (!rows.has(key)) rows.set(key, new Map());
      rows.get(key).set(entry.plan, entry);
    }
    const cell = (entry) => {
      if (entry === undefined) return "";
      const ratio = entry.ratio === undefined || entry.plan === "C" ? "" : `**${entry.ratio.toFixed(2)}** · `;
      return `${ratio}${spread(entry.milliseconds)}`;
    };
    return [
      `| data | search | ${plans.join(" | ")} |`,
      `|---|---|${plans.map(() => "---|").join("")}`,
      ...[...rows].map(([key, byPlan]) => `| ${key} | ${plans.map((plan) => cell(byPlan.get(plan))).join(" | ")} |`),
    ].join("\n");
  }

  function buildTable() {
    return [
      "| data | build | rows a second | memory ÷ float32 data |",
      "|---|---|---|---|",
      ...measured
        .filter((entry) => entry.rowsPerSecond)
        .map(
          ({ set, plan, rowsPerSecond, memoryRatio }) =>
            `| ${set} | ${plan} | ${Math.round(rowsPerSecond).toLocaleString("en")} | ${memoryRatio.toFixed(3)} |`,
        ),
    ].join("\n");
  }

  function chart() {
    const bars = timed.filter((entry) => entry.ratio !== undefined && entry.plan !== "C");
    return barChart({
      title: "Time of an exact search ÷ time of a native C float32 scan (medians of one run; shorter is faster)",
      description: `One bar for each data set, search and build of Lodestone; the dashed line at 1 is the C scan. All figures are in docs/benchmarks.md. ${where}.`,
      labelWidth: 420,
      bars: bars.map(({ set, what, plan, ratio }) => ({
        label: `${set}, ${what}, ${plan}`,
        value: ratio,
        text: ratio.toFixed(2),
        style: STYLES[plan] ?? "other",
      })),
      from: 0,
      to: Math.max(1.25, ...bars.map(({ ratio }) => Math.min(2, ratio))),
      ticks: [0, 0.25, 0.5, 0.75, 1],
      yardstick: { value: 1, label: "C scan" },
    });
  }

  const full = [
    `Milliseconds a query, median <sub>10th–90th percentile</sub>, before it in bold the ratio of medians to C; top ${k}, one thread. ${where}, yardstick ${machine.yardstick ?? "none"}.`,
    "",
    "![Time of an exact search relative to a native C scan](bench-core.svg)",
    "",
    table(),
    "",
    buildTable(),
  ].join("\n");
  return { headline: headline(), full, chart: chart() };
}

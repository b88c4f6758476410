/**
 * The part of bench:report for a run of `npm run bench`: a headline, all figures, and a chart.
 */
import { COLOURS, chart } from "./chart.mjs";
import { describeRun, isBusy, medianOf } from "./machine.mjs";

const PLANS = ["C", "relaxed", "simd", "other", "simd floats", "1 shard", "2 shards"];

/** The headline's rows: title, `what` and plan of the run. */
const HEADLINE = [
  ["one query, cosine", "cosineSimilarity", "relaxed"],
  ["one query, cosine, without relaxed SIMD", "cosineSimilarity", "simd"],
  ["one query, l2", "l2", "relaxed"],
  ["one query, l1", "l1", "relaxed"],
  ["cosine, filter selects 1 %", "cosine, filter 1 %", "relaxed"],
  ["two shards on two cores, cosine", "cosine, in workers, in a row", "2 shards"],
  ["100 queries at once, cosine, each", "100 queries, per query", "relaxed"],
];
/** The chart's rows. */
const CHARTED = HEADLINE.filter(([, what, plan]) => plan === "relaxed" && !what.includes("filter"));
/** The sets of the headline and the chart, beginning with those most like real data. */
const SETS = [
  ["LSA of text, 100000 × 768", "LSA of real text"],
  ["steep spectrum, 100000 × 768", "steep spectrum"],
  ["flat spectrum, 100000 × 768", "flat spectrum"],
  ["random, 100000 × 768", "random directions"],
  ["256 clusters, 100000 × 768", "256 clusters"],
];

const spread = ({ median, low, high }) => {
  const digits = median < 0.1 ? 3 : 2;
  return `${median.toFixed(digits)} <sub>${low.toFixed(digits)}–${high.toFixed(digits)}</sub>`;
};

/**
 * @returns {Promise<{headline: string, full: string, charts: Record<string, string>}>} Markdown, and SVG by
 *   the file's name.
 */
export async function reportCore(run) {
  const { machine, k, measured } = run;
  const timed = measured.filter((entry) => entry.milliseconds);
  const find = (set, what, plan) => timed.find((entry) => entry.set === set && entry.what === what && entry.plan === plan);
  const where = describeRun(run);
  const isTimed = !isBusy(machine, medianOf(run.loads ?? []));
  const sets = SETS.filter(([set]) => timed.some((entry) => entry.set === set));

  function headline() {
    const rows = HEADLINE.map(([title, what, plan]) => [title, sets.map(([set]) => find(set, what, plan))]);
    const bytes = rows.map(([title, entries]) => [`${title}: bytes`, entries.map((entry) => entry?.bytesRatio?.toFixed(3))]);
    const times = rows.map(([title, entries]) => [title, entries.map((entry) => entry && timeOf(entry))]);
    const yardsticks = sets.map(([set]) => find(set, "cosineSimilarity", "C")?.milliseconds.median).filter((ms) => ms !== undefined);
    const scan = [...new Set([Math.min(...yardsticks), Math.max(...yardsticks)].map((ms) => ms.toFixed(0)))].join(" to ");
    // One row of bytes is enough if there are times.
    const shown = isTimed ? [...bytes.slice(0, 1), ...times] : bytes.filter(([title]) => !title.includes("without relaxed"));
    const explained = isTimed
      ? `in brackets the time ÷ that of a native C float32 scan${yardsticks.length > 0 ? ` (${scan} ms)` : ""} in the same run`
      : "times are left out";
    return [
      "![An exact search relative to a native C scan](bench-core.svg)",
      "",
      `100,000 × 768 vectors, exact top ${k}; bytes of rows touched ÷ float32 bytes; ${explained}. ${where}.`,
      "",
      `| | ${sets.map(([, title]) => title).join(" | ")} |`,
      `|---|${sets.map(() => "---|").join("")}`,
      ...shown
        .filter(([, cells]) => cells.some(Boolean))
        .map(([title, cells]) => `| ${title} | ${cells.map((cell) => cell ?? "").join(" | ")} |`),
    ].join("\n");
  }

  function timeOf({ milliseconds, ratio }) {
    return `${milliseconds.median.toFixed(1)} ms${ratio === undefined ? "" : ` (**${ratio.toFixed(2)}**)`}`;
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
    const bytes = (byPlan) => byPlan.get("relaxed")?.bytesRatio?.toFixed(3) ?? "";
    return [
      `| data | search | bytes | ${plans.join(" | ")} |`,
      `|---|---|---|${plans.map(() => "---|").join("")}`,
      ...[...rows].map(([key, byPlan]) => `| ${key} | ${bytes(byPlan)} | ${plans.map((plan) => cell(byPlan.get(plan))).join(" | ")} |`),
    ].join("\n");
  }

  function buildTable() {
    const grouped = (value) => Math.round(value).toLocaleString("en");
    return [
      "| data | build | rows a second | with the first search | memory ÷ float32 data |",
      "|---|---|---|---|---|",
      ...measured
        .filter((entry) => entry.rowsPerSecond)
        .map(
          ({ set, plan, rowsPerSecond, rowsPerSecondToFirstAnswer, memoryRatio }) =>
            `| ${set} | ${plan} | ${grouped(rowsPerSecond)} | ${grouped(rowsPerSecondToFirstAnswer)} | ${memoryRatio.toFixed(3)} |`,
        ),
    ].join("\n");
  }

  const descriptions = measured.filter((entry) => entry.description).map(({ set, description }) => `- ${set}: ${description}.`);
  const full = [
    `Milliseconds per query, median <sub>10th–90th percentile</sub>, preceded in bold by the ratio of medians to C; *bytes* are those of rows that a search of the relaxed build touched ÷ those of the float32 data; top ${k}, one thread. ${where}, yardstick ${machine.yardstick ?? "none"}.`,
    "",
    ...descriptions,
    "",
    table(),
    "",
    buildTable(),
  ].join("\n");
  return { headline: headline(), full, charts: { "bench-core.svg": await coreChart(sets, find, { where, isTimed }) } };
}

function coreChart(sets, find, { where, isTimed }) {
  const TIME = "time ÷ time of the C scan";
  const BYTES = "bytes touched ÷ bytes of the float32 data";
  const values = sets.flatMap(([set, title]) =>
    CHARTED.flatMap(([search, what, plan]) => {
      const entry = find(set, what, plan);
      const [ratio, bytes] = [isTimed ? entry?.ratio : undefined, entry?.bytesRatio].map((value) => value ?? null);
      return ratio === null && bytes === null
        ? []
        : [{ set: title, search, ratio, bytes, end: Math.max(ratio, bytes), shown: ratio ?? bytes }];
    }),
  );
  const y = { field: "search", type: "nominal", sort: null, title: null };
  const most = Math.max(1, ...values.map(({ ratio }) => Math.ceil(10 * ratio + 0.5) / 10));
  const x = { type: "quantitative", scale: { domain: [0, most] }, title: null };
  const [names, colours] = isTimed
    ? [
        [TIME, BYTES],
        [COLOURS.ours, COLOURS.yardstick],
      ]
    : [[BYTES], [COLOURS.yardstick]];
  const color = { scale: { domain: names, range: colours } };
  const title = `Exact top 10 of 100,000 × 768 vectors${isTimed ? " beside a native C scan of all float32" : ": how much of the data is touched"} (less is better)`;
  const panel = ([, set]) => ({
    title: { text: set, fontSize: 12, offset: 4 },
    data: { values: values.filter((value) => value.set === set) },
    width: 520,
    height: { step: 19 },
    layer: [
      {
        transform: [{ filter: "isValid(datum.ratio)" }],
        mark: { type: "bar", height: 11, opacity: 1 },
        encoding: { y, x: { ...x, field: "ratio" }, color: { ...color, datum: TIME } },
      },
      {
        transform: [{ filter: "isValid(datum.bytes)" }],
        mark: { type: "tick", thickness: 3, size: 17, opacity: 1 },
        encoding: { y, x: { ...x, field: "bytes" }, color: { ...color, datum: BYTES } },
      },
      {
        mark: { type: "text", align: "left", dx: 6 },
        encoding: { y, x: { ...x, field: "end" }, text: { field: "shown", format: ".2f" } },
      },
    ],
  });
  return chart(
    { title, vconcat: sets.map(panel), spacing: 14 },
    {
      title,
      description: `${values.map(({ set, search, ratio, bytes }) => `${set}, ${search}:${ratio === null ? "" : ` time ${ratio.toFixed(2)}`}${bytes === null ? "" : ` bytes ${bytes.toFixed(2)}`}`).join("; ")}. Medians of one run; the C scan is at 1. ${where}.`,
    },
  );
}

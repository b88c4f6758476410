/**
 * The part of bench:report for the exact searches of `npm run bench:peers`: a headline, all figures, and a
 * chart of the largest set.
 */
import { COLOURS, chart } from "./chart.mjs";
import { describeRun } from "./machine.mjs";

/** Peers in the headline: the fastest ones. */
const HEADLINE_PEERS = 5;

const isOurs = ({ name }) => name.startsWith("Lodestone");
const milliseconds = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));
const ratioOf = ({ ratio }) => (ratio === undefined ? "" : ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(1));
const megabytes = (bytes) => (bytes == null ? "" : Math.round(bytes / 1e6).toLocaleString("en"));
const seconds = (ms) => (ms === undefined ? "" : (ms / 1000).toFixed(2));
const labelOf = ({ name }) => (name === "C" ? "native C float32 scan" : name);

/**
 * @returns {Promise<{headline: string, full: string, charts: Record<string, string>}>} Markdown, and SVG by
 *   the file's name.
 */
export async function reportPeers(run) {
  const { machine, k, kind, versions, tolerance, measured, skipped } = run;
  const sets = [...new Set(measured.map(({ set }) => set))];
  const largest = sets.at(-1);
  const rowsOf = (set, what) =>
    measured.filter((entry) => entry.set === set && entry.what === what).sort((a, b) => a.milliseconds.median - b.milliseconds.median);
  const whats = [...new Set(measured.map(({ what }) => what))];
  const where = describeRun(run);

  function headline() {
    const rows = rowsOf(largest, "one query");
    const ours = rows.find(isOurs);
    const fastest = rows.filter((row) => !isOurs(row) && row.name !== "C").slice(0, HEADLINE_PEERS);
    const shown = rows.filter((row) => row === ours || row.name === "C" || fastest.includes(row));
    return [
      "![Time of one exact search, Lodestone and its peers](bench-peers.svg)",
      "",
      `| exact, ${largest}, ${kind}, cosine, top ${k}, one thread each | ms a query | ÷ C | memory, MB | build, s |`,
      "|---|---|---|---|---|",
      ...shown.map((row) => {
        const name = isOurs(row) ? `**${row.name}**` : labelOf(row);
        return `| ${name} | ${milliseconds(row.milliseconds.median)} | ${ratioOf(row)} | ${megabytes(row.memoryBytes)} | ${seconds(row.buildMs)} |`;
      }),
      "",
      `The ${fastest.length} fastest peers; all of them are below. ${where}.`,
    ].join("\n");
  }

  function table(set, what) {
    return [
      `### ${set}, ${what}`,
      "",
      "| | ms, median <sub>10th–90th percentile</sub> | ÷ C | GB/s | memory, MB | build, s | turns | |",
      "|---|---|---|---|---|---|---|---|",
      ...rowsOf(set, what).map((row) => {
        const { median, low, high, count } = row.milliseconds;
        const time = `${milliseconds(median)} <sub>${milliseconds(low)}–${milliseconds(high)}</sub>`;
        return `| ${row.name} | ${time} | ${ratioOf(row)} | ${row.gigabytesPerSecond.toFixed(1)} | ${megabytes(row.memoryBytes)} | ${seconds(row.buildMs)} | ${count} | ${row.note ?? ""} |`;
      }),
      "",
    ];
  }

  const full = [
    `${where}, ${machine.cores} cores, ${machine.memoryGB} GB, yardstick ${machine.yardstick ?? "none"}; ${kind}. Peers' rows may differ from the oracle's where exact scores are within ${tolerance} (they add up in float32); the last column says so, and where a second thread was used.`,
    "",
    ...sets.flatMap((set) => whats.filter((what) => rowsOf(set, what).length > 0).flatMap((what) => table(set, what))),
    `Versions: ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")}.`,
    ...(skipped.length > 0 ? ["", "Not measured:", "", ...skipped.map(({ set, name, reason }) => `- ${name}, ${set}: ${reason}`)] : []),
  ].join("\n");
  const charts = { "bench-peers.svg": await peersChart(rowsOf(largest, "one query"), { largest, kind, k, where }) };
  return { headline: headline(), full, charts };
}

function peersChart(rows, { largest, kind, k, where }) {
  const medians = rows.map((row) => row.milliseconds.median);
  const from = 10 ** Math.floor(Math.log10(Math.min(...medians)));
  // Room for the label after the longest bar.
  const to = 10 ** Math.ceil(Math.log10(2 * Math.max(...medians)));
  const title = `Milliseconds of one exact search, ${largest}, cosine, top ${k}, one thread each`;
  const x = { type: "quantitative", scale: { type: "log", domain: [from, to] } };
  const y = { field: "label", type: "nominal", sort: null, title: null };
  const colourOf = (row) => (row.name === "Lodestone" ? COLOURS.ours : isOurs(row) ? COLOURS.oursPlain : COLOURS.other);
  const values = rows.map((row) => ({
    label: labelOf(row),
    ms: row.milliseconds.median,
    from,
    colour: colourOf(row),
    text: `${milliseconds(row.milliseconds.median)} ms${row.ratio === undefined || row.name === "C" ? "" : ` (${ratioOf(row)} × C)`}`,
  }));
  const yardstick = rows.find(({ name }) => name === "C");
  const layer = [
    {
      mark: { type: "bar", height: 15 },
      encoding: {
        y,
        x: {
          ...x,
          field: "from",
          axis: { title: "milliseconds, logarithmic; the dashed line is the C scan", tickCount: Math.log10(to / from) },
        },
        x2: { field: "ms" },
        color: { field: "colour", type: "nominal", scale: null },
      },
    },
  ];
  if (yardstick) {
    const mark = { type: "rule", strokeDash: [4, 3], color: COLOURS.yardstick };
    layer.push({ mark, encoding: { x: { ...x, datum: yardstick.milliseconds.median } } });
  }
  const label = { mark: { type: "text", align: "left", dx: 6 }, encoding: { y, x: { ...x, field: "ms" }, text: { field: "text" } } };
  layer.push(label);
  return chart(
    { title: { text: title, subtitle: `${kind}; shorter is faster` }, data: { values }, width: 460, height: { step: 22 }, layer },
    { title, description: `${values.map(({ label, text }) => `${label} ${text}`).join("; ")}. Medians of one run. ${where}.` },
  );
}

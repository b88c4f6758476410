/** What bench:report makes of a run of `npm run bench:peers`: a headline for the README, all figures for docs/benchmarks.md, and a chart of the largest set. */
import { barChart } from "./bar-chart.mjs";

/** Peers in the README's table: the fastest, as they are the ones to compare with. */
const HEADLINE_PEERS = 5;

const isOurs = ({ name }) => name.startsWith("Lodestone");
const milliseconds = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));
const ratioOf = ({ ratio }) => (ratio === undefined ? "" : ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(1));
const megabytes = (bytes) => (bytes == null ? "" : Math.round(bytes / 1e6).toLocaleString("en"));
const seconds = (ms) => (ms === undefined ? "" : (ms / 1000).toFixed(2));

export function reportPeers({ machine, k, partial, versions, tolerance, at, measured, skipped }) {
  const sets = [...new Set(measured.map(({ set }) => set))];
  const largest = sets.at(-1);
  const rowsOf = (set, what) =>
    measured.filter((entry) => entry.set === set && entry.what === what).sort((a, b) => a.milliseconds.median - b.milliseconds.median);
  const whats = [...new Set(measured.map(({ what }) => what))];
  const where = `${machine.cpu}, Node ${machine.node}, ${at.slice(0, 10)}${partial ? ", **not a full run** (`--only` or `--quick`)" : ""}`;

  function headline() {
    const rows = rowsOf(largest, "one query");
    const ours = rows.find(isOurs);
    const fastest = rows.filter((row) => !isOurs(row) && row.name !== "C").slice(0, HEADLINE_PEERS);
    const shown = rows.filter((row) => row === ours || row.name === "C" || fastest.includes(row));
    return [
      `![Time of one exact search, Lodestone and its peers](docs/bench-peers.svg)`,
      "",
      `| ${largest}, random directions, cosine, top ${k}, one thread each | ms a query | ÷ C | memory, MB | build, s |`,
      "|---|---|---|---|---|",
      ...shown.map((row) => {
        const name = isOurs(row) ? `**${row.name}**` : row.name === "C" ? "native C float32 scan" : row.name;
        return `| ${name} | ${milliseconds(row.milliseconds.median)} | ${ratioOf(row)} | ${megabytes(row.memoryBytes)} | ${seconds(row.buildMs)} |`;
      }),
      "",
      `The ${fastest.length} fastest peers; all of them are in [docs/benchmarks.md](docs/benchmarks.md). ${where}.`,
    ].join("\n");
  }

  function table(set, what) {
    const rows = rowsOf(set, what);
    return [
      `### ${set}, ${what}`,
      "",
      "| | ms, median <sub>10th–90th percentile</sub> | ÷ C | GB/s | memory, MB | build, s | turns | |",
      "|---|---|---|---|---|---|---|---|",
      ...rows.map((row) => {
        const { median, low, high, count } = row.milliseconds;
        const time = `${milliseconds(median)} <sub>${milliseconds(low)}–${milliseconds(high)}</sub>`;
        return `| ${row.name} | ${time} | ${ratioOf(row)} | ${row.gigabytesPerSecond.toFixed(1)} | ${megabytes(row.memoryBytes)} | ${seconds(row.buildMs)} | ${count} | ${row.note ?? ""} |`;
      }),
      "",
    ];
  }

  function chart() {
    const rows = rowsOf(largest, "one query");
    const yardstick = rows.find(({ name }) => name === "C");
    const medians = rows.map((row) => row.milliseconds.median);
    const from = 10 ** Math.floor(Math.log10(Math.min(...medians)));
    const to = 10 ** Math.ceil(Math.log10(Math.max(...medians)));
    const ticks = Array.from({ length: Math.round(Math.log10(to / from)) + 1 }, (_, i) => Number((from * 10 ** i).toPrecision(1)));
    return barChart({
      title: `Milliseconds of one exact search, ${largest}, cosine, top ${k}, one thread each (log scale; shorter is faster)`,
      description: `${rows.map((row) => `${row.name} ${milliseconds(row.milliseconds.median)} ms`).join("; ")}. Medians of one run. ${where}.`,
      labelWidth: 230,
      bars: rows.map((row) => ({
        label: row.name === "C" ? "native C float32 scan" : row.name,
        value: row.milliseconds.median,
        text: `${milliseconds(row.milliseconds.median)} ms${row.ratio === undefined || row.name === "C" ? "" : ` (${ratioOf(row)} × C)`}`,
        style: row.name === "Lodestone" ? "ours" : isOurs(row) ? "ours-plain" : "other",
      })),
      from,
      to,
      ticks,
      yardstick: yardstick && { value: yardstick.milliseconds.median, label: "C scan" },
      logarithmic: true,
    });
  }

  const full = [
    `${where}, ${machine.cores} cores, ${machine.memoryGB} GB, yardstick ${machine.yardstick ?? "none"}. Peers' rows may differ from the oracle's where exact scores are within ${tolerance} (they add up in float32); the last column says so, and where a second thread was used.`,
    "",
    "![Time of one exact search, Lodestone and its peers](bench-peers.svg)",
    "",
    ...sets.flatMap((set) => whats.filter((what) => rowsOf(set, what).length > 0).flatMap((what) => table(set, what))),
    `Versions: ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")}.`,
    ...(skipped.length > 0 ? ["", "Not measured:", "", ...skipped.map(({ set, name, reason }) => `- ${name}, ${set}: ${reason}`)] : []),
  ].join("\n");
  return { headline: headline(), full, chart: chart() };
}

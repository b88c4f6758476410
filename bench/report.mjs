/**
 * npm run bench:report: writes the table between `<!-- bench:core -->` and `<!-- /bench:core -->` of README.md, and the chart docs/bench-core.svg, from what the last
 * `npm run bench` left in bench/results/core.json. Figures of other runs are never mixed.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const BEGIN = "<!-- bench:core -->";
const END = "<!-- /bench:core -->";
const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

const file = path("results/core.json");
if (!existsSync(file)) {
  console.error("bench/results/core.json is not there; run `npm run bench` first.");
  process.exit(1);
}
const { machine, k, at, measured } = JSON.parse(readFileSync(file, "utf8"));
const timed = measured.filter((entry) => entry.milliseconds);
const builds = measured.filter((entry) => entry.rowsPerSecond);

/** One row for each (set, what), one column for each plan. */
function table() {
  const plans = ["C", "relaxed", "simd", "simd floats", "1 shard", "2 shards"].filter((plan) => timed.some((entry) => entry.plan === plan));
  const rows = new Map();
  for (const entry of timed) {
    const key = `${entry.set} | ${entry.what}`;
    if (!rows.has(key)) rows.set(key, new Map());
    rows.get(key).set(entry.plan, entry);
  }
  const cell = (entry) => {
    if (entry === undefined) return "";
    const { median, low, high } = entry.milliseconds;
    const ratio = entry.ratio === undefined || entry.plan === "C" ? "" : ` (**${entry.ratio.toFixed(2)}**)`;
    return `${median.toFixed(2)}${ratio} <sub>${low.toFixed(2)}–${high.toFixed(2)}</sub>`;
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
    ...builds.map(
      ({ set, plan, rowsPerSecond, memoryRatio }) =>
        `| ${set} | ${plan} | ${Math.round(rowsPerSecond).toLocaleString("en")} | ${memoryRatio.toFixed(3)} |`,
    ),
  ].join("\n");
}

const escapeXml = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** Bars of the ratio to C, shorter is faster; a line where C is. */
function chart() {
  const bars = timed.filter((entry) => entry.ratio !== undefined && entry.plan !== "C");
  const left = 420;
  const scale = 320;
  const height = 22;
  const widest = Math.max(1.25, ...bars.map((bar) => Math.min(2, bar.ratio)));
  const colours = { relaxed: "#1b7f5c", simd: "#3d9bd1", "simd floats": "#b9b9b9", "1 shard": "#8a6fc9", "2 shards": "#5b3fa8" };
  const lines = bars.map(({ set, what, plan, ratio }, i) => {
    const y = 40 + i * height;
    const label = escapeXml(`${set}, ${what}, ${plan}`);
    return [
      `<text x="${left - 8}" y="${y + 13}" text-anchor="end">${label}</text>`,
      `<rect x="${left}" y="${y}" width="${(Math.min(2, ratio) * scale).toFixed(1)}" height="${height - 6}" fill="${colours[plan] ?? "#777"}"/>`,
      `<text x="${(left + Math.min(2, ratio) * scale + 6).toFixed(1)}" y="${y + 13}">${ratio.toFixed(2)}</text>`,
    ].join("\n");
  });
  const width = left + widest * scale + 70;
  const total = 60 + bars.length * height;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${total}" viewBox="0 0 ${width} ${total}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="10" y="22" font-size="14">Time of an exact search ÷ time of a native C float32 scan (median of one run; shorter is faster)</text>
${lines.join("\n")}
<line x1="${left + scale}" x2="${left + scale}" y1="32" y2="${total - 18}" stroke="#c0392b" stroke-dasharray="4 3"/>
<text x="${left + scale}" y="${total - 6}" text-anchor="middle" fill="#c0392b">C = 1</text>
</svg>
`;
}

const text = [
  BEGIN,
  `Milliseconds a query, median <sub>10th–90th percentile</sub>, in brackets the ratio of medians to C; top ${k}, one thread. ${machine.cpu}, Node ${machine.node}, yardstick ${machine.yardstick ?? "none"}, ${at.slice(0, 10)}. Every answer was checked against the float64 oracle first. Made by \`npm run bench && npm run bench:report\`.`,
  "",
  "![Time of an exact search relative to a native C scan](docs/bench-core.svg)",
  "",
  table(),
  "",
  buildTable(),
  END,
].join("\n");

mkdirSync(path("../docs"), { recursive: true });
writeFileSync(path("../docs/bench-core.svg"), chart());
console.log("docs/bench-core.svg written.");
const readme = path("../README.md");
const before = existsSync(readme) ? readFileSync(readme, "utf8") : "";
const from = before.indexOf(BEGIN);
const to = before.indexOf(END);
if (from === -1 || to === -1) {
  console.log(`README.md has no ${BEGIN} … ${END}; the table:\n\n${text}`);
} else {
  writeFileSync(readme, before.slice(0, from) + text + before.slice(to + END.length));
  console.log("README.md written.");
}

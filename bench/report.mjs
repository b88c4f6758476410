/**
 * npm run bench:report: writes the results of the last `npm run bench` and `npm run bench:peers`
 * (bench/results) into docs/benchmarks.md, between `<!-- bench:core -->` and `<!-- /bench:core -->` (and
 * `bench:peers`, `bench:approximate`): chart and headline first, then all figures. A section without a run
 * stays as it is. Figures of several runs are never mixed in one section.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { reportApproximate } from "./report-approximate.mjs";
import { reportCore } from "./report-core.mjs";
import { reportPeers } from "./report-peers.mjs";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

const DOCUMENT = "docs/benchmarks.md";

function replaceSection(name, text) {
  const begin = `<!-- ${name} -->`;
  const end = `<!-- /${name} -->`;
  const before = readFileSync(path(`../${DOCUMENT}`), "utf8");
  const from = before.indexOf(begin);
  const to = before.indexOf(end);
  if (from === -1 || to < from) throw new Error(`${DOCUMENT} has no ${begin} … ${end}; put both where the figures belong.`);
  writeFileSync(path(`../${DOCUMENT}`), `${before.slice(0, from + begin.length)}\n${text}\n${before.slice(to)}`);
}

const REPORTS = [
  { run: "npm run bench", results: "results/core.json", section: "bench:core", report: reportCore },
  { run: "npm run bench:peers", results: "results/peers.json", section: "bench:peers", report: reportPeers },
  { run: "npm run bench:peers", results: "results/approximate.json", section: "bench:approximate", report: reportApproximate },
];

let written = 0;
for (const { run, results, section, report } of REPORTS) {
  if (!existsSync(path(results))) {
    console.error(`bench/${results} is not there, so ${section} stays as it was; run \`${run}\` first.`);
    continue;
  }
  const { headline, full, charts } = await report(JSON.parse(readFileSync(path(results), "utf8")));
  for (const [name, svg] of Object.entries(charts)) writeFileSync(path(`../docs/${name}`), svg);
  replaceSection(section, `${headline}\n\n${full}`);
  console.log(`${section}: ${DOCUMENT} and ${Object.keys(charts).join(", ")} written.`);
  written++;
}
if (written === 0) process.exit(1);

/**
 * Counts which lines, functions and branches of src/ a run of the tests executes: in the tests' own processes and
 * threads, in the servers and commands that they start (V8's own counters, NODE_V8_COVERAGE), and in the console's
 * pages. A branch is a side of an if, ?:, && or ||, a case of a switch, or a default value; those in functions that
 * never ran count as well.
 *
 *   npm run coverage                   all tests
 *   npm run coverage -- test/filter    a part: the arguments are vitest's
 *   npm run coverage -- --report       only counts what a run left that was cut short
 *
 * Prints a line for each folder of src/ and the largest pieces that never ran. build/coverage/index.html shows each
 * line, coverage-final.json is for tools. Not counted: what killed processes executed (crash tests), WebAssembly,
 * and threads that run a bundle (a shard's worker, the map's worker in a page).
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { mergeProcessCovs } from "@bcoe/v8-coverage";
import { convert } from "ast-v8-to-istanbul";
import coverage from "istanbul-lib-coverage";
import report from "istanbul-lib-report";
import reports from "istanbul-reports";
import { parseAst } from "vitest/node";
import { buildConsole } from "./console.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const output = `${root}build/coverage/`;
const raw = `${output}raw/`;

/** Files that are merged at a time: a test's process writes one to two megabytes. */
const BATCH = 16;
/** Of the pieces that never ran. */
const LISTED = 60;

const args = process.argv.slice(2);
const status = args[0] === "--report" ? 0 : await run();
const map = await istanbulMap(mappedScripts());
const context = report.createContext({ dir: output, coverageMap: map });
for (const kind of ["html", "json"]) reports.create(kind).execute(context);
print(map);
// With another build of the console they would be misread.
rmSync(raw, { recursive: true });
await buildConsole(root);
process.exitCode = status;

async function run() {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(raw, { recursive: true });
  const inherit = { cwd: root, stdio: "inherit" };
  if (spawnSync("npm", ["run", "--silent", "build"], inherit).status !== 0) process.exit(1);
  await buildConsole(root, { isMapped: true });
  // Ctrl-C ends the tests; what they executed until then is counted.
  process.on("SIGINT", () => {});
  return spawnSync("npx", ["vitest", "run", ...args], { ...inherit, env: { ...process.env, NODE_V8_COVERAGE: raw } }).status ?? 1;
}

/** The addresses of the scripts in dist/ whose source map leads to src/. What an earlier build left there has no source. */
function mappedScripts() {
  const paths = readdirSync(`${root}dist`, { recursive: true }).filter(
    (path) => path.endsWith(".js") && existsSync(`${root}dist/${path}.map`),
  );
  const current = paths.filter((path) => path.startsWith("console/") || existsSync(`${root}src/${path.slice(0, -3)}.ts`));
  return new Set(current.map((path) => pathToFileURL(`${root}dist/${path}`).href));
}

/** By address, the counts of these scripts, all processes together. */
function countsOf(scripts) {
  const files = readdirSync(raw);
  let sum = { result: [] };
  let cutOff = 0;
  for (let at = 0; at < files.length; at += BATCH) {
    const batch = files.slice(at, at + BATCH).flatMap((file) => {
      try {
        const { result } = JSON.parse(readFileSync(raw + file, "utf8"));
        return [{ result: result.filter(({ url }) => scripts.has(url)) }];
      } catch {
        cutOff++;
        return [];
      }
    });
    sum = mergeProcessCovs([sum, ...batch]);
  }
  if (cutOff > 0) console.error(`${cutOff} of ${files.length} files were cut off when their process was killed`);
  return new Map(sum.result.map((script) => [script.url, script.functions]));
}

/** The counts by the sources' own lines. */
async function istanbulMap(scripts) {
  const counts = countsOf(scripts);
  const map = coverage.createCoverageMap();
  for (const url of scripts) {
    const path = fileURLToPath(url);
    const code = readFileSync(path, "utf8");
    const neverLoaded = [{ functionName: "", isBlockCoverage: true, ranges: [{ startOffset: 0, endOffset: code.length, count: 0 }] }];
    const files = await convert({
      code,
      ast: parseAst(code),
      sourceMap: JSON.parse(readFileSync(`${path}.map`, "utf8")),
      coverage: { url, functions: counts.get(url) ?? neverLoaded },
    });
    // The console's scripts also contain packages, and modules of other folders, which have been counted in their own files.
    const from = path.startsWith(`${root}dist/console/`) ? `${root}src/console/` : `${root}src/`;
    for (const [source, file] of Object.entries(files)) if (source.startsWith(from)) map.merge({ [source]: file });
  }
  return map;
}

function print(map) {
  const rooms = new Map();
  for (const path of map.files()) {
    const room = relative(root, dirname(path));
    rooms.set(room, [...(rooms.get(room) ?? []), path]);
  }
  const line = (...cells) => console.log(cells.map((cell, n) => (n === 0 ? cell.padEnd(34) : cell.padStart(13))).join(""));
  const summarize = (name, paths) => {
    const sum = coverage.createCoverageSummary();
    for (const path of paths) sum.merge(map.fileCoverageFor(path).toSummary());
    const { lines, functions, branches } = sum.data;
    const percent = ({ covered, total }) => (total === 0 ? "–" : `${((100 * covered) / total).toFixed(1)} %`);
    line(name, percent(lines), percent(functions), percent(branches), `${branches.total - branches.covered} of ${branches.total}`);
  };
  console.log();
  line("", "lines", "functions", "branches", "never taken");
  for (const room of [...rooms.keys()].sort()) summarize(room, rooms.get(room));
  summarize("all", map.files());
  console.log("\nThe largest pieces that never ran, by their statements:\n");
  const gaps = map.files().flatMap((path) => gapsOf(map.fileCoverageFor(path).data));
  gaps.sort((a, b) => b.statements - a.statements || (a.where < b.where ? -1 : 1));
  for (const { statements, where, text } of gaps.slice(0, LISTED)) console.log(`${String(statements).padStart(5)}  ${where}  ${text}`);
}

/** Functions and branches of a file that never ran, without those inside others, and their number of statements. */
function gapsOf({ path, fnMap, f, branchMap, b, statementMap, s }) {
  const idle = Object.keys(s).filter((n) => s[n] === 0);
  const lines = readFileSync(path, "utf8").split("\n");
  const pieces = [
    ...Object.keys(f).flatMap((n) => (f[n] === 0 ? [fnMap[n].loc] : [])),
    ...Object.keys(b).flatMap((n) => branchMap[n].locations.filter((loc, arm) => b[n][arm] === 0 && loc.start.line !== undefined)),
  ].sort((one, other) => compare(one.start, other.start) || compare(other.end, one.end));
  let last;
  const outermost = pieces.filter((loc) => {
    if (last !== undefined && isWithin(loc, last)) return false;
    last = loc;
    return true;
  });
  return outermost
    .map((loc) => ({
      statements: idle.filter((n) => isWithin(statementMap[n], loc)).length,
      where: `${relative(root, path)}:${loc.start.line}-${loc.end.line}`,
      text: lines[loc.start.line - 1].trim().slice(0, 70),
    }))
    .filter(({ statements }) => statements > 0);
}

function isWithin(inner, outer) {
  return compare(outer.start, inner.start) <= 0 && compare(inner.end, outer.end) <= 0;
}

function compare(a, b) {
  return a.line - b.line || a.column - b.column;
}

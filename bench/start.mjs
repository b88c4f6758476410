/**
 * What a newcomer feels first, and how long a server is unavailable when it is restarted. Prints one table: a first
 * start until /readyz is 200, `--help`, the same with data (a table of vectors, from its snapshot and without it, from
 * the records alone), memory when idle, and what the server's package takes on disk. CPU is that of all threads,
 * user and system, and peak the largest resident set (Linux).
 *
 * Usage: npm run build && npm run bench:start [-- --against FOLDER --rounds 3 --rows 3000 --dimension 128
 * --idle-seconds 60 --ci --database-url postgres://… --keep]
 *   --against FOLDER   another checkout, built: both in turns, and the ratios of their medians
 *   --ci               also `npm ci` (install and build) in a clone of the commit, with npm's cache
 *   --database-url     the database gets a branch bench:main, which is dropped at the end; with --keep it stays, and
 *                      the next run with --keep (also of bench:parts) uses its records
 */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startProgress } from "../dist/cli/progress.js";
import { describeMachine, describeRun, loadNow, medianOf } from "./machine.mjs";
import { cpuSecondsOf, statusMb } from "./process.mjs";
import { readOptions } from "./read-options.mjs";
import { DATABASE, start, tablePath } from "./served.mjs";

const options = readOptions(import.meta.url, {
  against: { type: "string" },
  rounds: { type: "string", default: "3" },
  rows: { type: "string", default: "3000" },
  dimension: { type: "string", default: "128" },
  "idle-seconds": { type: "string", default: "60" },
  ci: { type: "boolean", default: false },
  keep: { type: "boolean", default: false },
  "database-url": { type: "string" },
});
const [rounds, rows, dimension, idleSeconds] = ["rounds", "rows", "dimension", "idle-seconds"].map((name) => Number(options[name]));
const databaseUrl = options["database-url"];
if (databaseUrl !== undefined && options.against !== undefined)
  throw new Error("--against needs databases of its own: not --database-url.");
const args = databaseUrl === undefined ? [] : ["--database-url", databaseUrl];
/** Rows inserted by one statement: well within the time limit of SQL over HTTP on the embedded database. */
const STATEMENT_ROWS = Math.max(1, Math.min(20_000, Math.floor(1_000_000 / dimension)));
/** Smaller branches have no snapshot (MIN_SNAPSHOT_VECTORS). */
const hasSnapshots = rows >= 1000;

const checkouts = [fileURLToPath(new URL("..", import.meta.url)), ...(options.against === undefined ? [] : [resolve(options.against)])];
/** By the name of a figure, for each checkout the values of all rounds. */
const figures = new Map();
const loads = [];
for (let round = 0; round < rounds; round++) {
  for (const [i, checkout] of checkouts.entries()) {
    const note = (name, value) => {
      if (value === undefined) return;
      if (!figures.has(name))
        figures.set(
          name,
          checkouts.map(() => []),
        );
      figures.get(name)[i].push(value);
    };
    await measure(checkout, note);
    // They do not differ from round to round.
    if (round === 0 && databaseUrl === undefined) note("server's package on disk, MB", packageMb(checkout));
    loads.push(loadNow());
  }
}
console.log(
  `${describeRun({ machine: describeMachine(), at: new Date().toISOString(), loads })}; ${rows} × ${dimension}, ${rounds} rounds`,
);
const width = Math.max(...[...figures.keys()].map((name) => name.length));
if (options.against !== undefined) console.log(`${"".padEnd(width)}  ${"this".padStart(8)} ${"other".padStart(8)} ${"ratio".padStart(8)}`);
for (const [name, values] of figures) {
  const medians = values.map(medianOf);
  const ratio = medians.length > 1 ? [`×${(medians[0] / medians[1]).toFixed(2)}`] : [];
  console.log(
    `${name.padEnd(width)}  ${[...medians.map((value) => Number(value.toFixed(2))), ...ratio].map((text) => String(text).padStart(8)).join(" ")}`,
  );
}

async function measure(checkout, note) {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-start-"));
  let server;
  const started = async (how) => {
    const beganAt = performance.now();
    server = await start({ checkout, directory, args });
    await untilReady(server);
    note(`${how}, s`, secondsSince(beganAt));
    note(`${how}, CPU s`, cpuSecondsOf(server.pid));
    note(`${how}, peak MB`, statusMb(server.pid, "VmHWM"));
  };
  const idle = async () => {
    await sleep(1000 * idleSeconds);
    note(`idle for ${idleSeconds} s, MB`, statusMb(server.pid, "VmRSS"));
  };
  const checked = async () => {
    const queryVector = Array.from({ length: dimension }, (_, i) => Math.sin(i + 1));
    const { totalCount } = await server.send("POST", `${tablePath("t")}/vectorSearch`, { column: "v", queryVector, size: 10 });
    if (totalCount !== rows) throw new Error(`${totalCount} of ${rows} rows were found.`);
  };
  try {
    if (options.ci) ciSeconds(checkout, directory, note);
    note("--help, CPU s", childSeconds(directory, [process.execPath, join(checkout, "dist/cli/main.js"), "--help"]).cpu);
    await started("first start");
    if (!options.keep || (await server.send("GET", "/readyz")).rows !== rows) {
      await server.send("PUT", DATABASE, {});
      await server.send("PUT", tablePath("t"), { columns: [{ name: "v", type: "vector", vector: { dimension } }] });
      const beganAt = performance.now();
      await fill(server);
      note("rows stored by SQL, /s", Math.round(rows / secondsSince(beganAt)));
      await untilReady(server);
    }
    // It is begun within seconds after everything was read.
    while (hasSnapshots && !hasSnapshot(directory)) await sleep(200);
    const beganAt = performance.now();
    await server.stop();
    note("stop, s", secondsSince(beganAt));
    if (hasSnapshots) {
      await started("with data, from the snapshot");
      await idle();
      await checked();
      await server.stop();
      rmSync(join(directory, "search"), { recursive: true, force: true });
    }
    await started("with data, from the records");
    if (!hasSnapshots) await idle();
    await checked();
    if (databaseUrl !== undefined && !options.keep) await server.send("DELETE", DATABASE);
  } finally {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function fill(server) {
  const progress = startProgress(rows, 0);
  for (let first = 0; first < rows; first += STATEMENT_ROWS) {
    const last = Math.min(rows, first + STATEMENT_ROWS) - 1;
    // The condition on n makes each row's array its own.
    await server.send("POST", `${DATABASE}/sql`, {
      statement: `INSERT INTO "t" (id, v) SELECT 'r' || n, ARRAY(SELECT random() - 0.5 FROM generate_series(1, $1::int) AS i WHERE i + n > n) FROM generate_series($2::int, $3::int) AS n`,
      params: [dimension, first, last],
    });
    progress.update(last + 1, last + 1);
  }
  progress.stop();
}

async function untilReady(server) {
  const isReady = () =>
    server.send("GET", "/readyz").then(
      () => true,
      () => false,
    );
  while (!(await isReady())) await sleep(20);
}

function hasSnapshot(directory) {
  const folder = join(directory, "search");
  return existsSync(folder) && readdirSync(folder).some((file) => file.endsWith(".snapshot"));
}

function ciSeconds(checkout, directory, note) {
  const clone = join(directory, "clone");
  execFileSync("git", ["-c", "advice.detachedHead=false", "clone", "--quiet", checkout, clone]);
  const { wall, cpu } = childSeconds(clone, ["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund"]);
  note("npm ci, s", wall);
  note("npm ci, CPU s", cpu);
  rmSync(clone, { recursive: true, force: true });
}

/** Packs what is in dist/packages/ and installs both tarballs into an empty folder. */
function packageMb(checkout) {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-bench-package-"));
  const npm = (...command) => execFileSync("npm", command, { cwd: folder, stdio: "pipe" });
  try {
    npm("pack", ...["library", "server"].map((name) => join(checkout, "dist/packages", name)));
    const tarballs = readdirSync(folder).map((name) => `./${name}`);
    npm("install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs);
    const installed = join(folder, "node_modules");
    return readdirSync(installed, { recursive: true }).reduce((sum, path) => sum + 512 * lstatSync(join(installed, path)).blocks, 0) / 1e6;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of a command and everything that it starts. */
function childSeconds(cwd, command) {
  const beganAt = performance.now();
  // The shell's second line is of its children: "0m1.25s 0m0.31s".
  const text = execFileSync("sh", ["-c", '"$@" >/dev/null 2>&1 || exit; times', "sh", ...command], { cwd, encoding: "utf8" });
  const times = [
    ...text
      .trim()
      .split("\n")[1]
      .matchAll(/(\d+)m([\d.]+)s/g),
  ];
  return { wall: secondsSince(beganAt), cpu: times.reduce((sum, [, minutes, seconds]) => sum + 60 * Number(minutes) + Number(seconds), 0) };
}

function secondsSince(beganAt) {
  return (performance.now() - beganAt) / 1000;
}

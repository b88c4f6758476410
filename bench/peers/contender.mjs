/**
 * Starts a contender's process (host.mjs, or a program that speaks its protocol) and communicates with it.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = (relative) => fileURLToPath(new URL(relative, import.meta.url));

const NODE_FLAGS = ["--expose-gc", "--max-old-space-size=8192"];
/** For the thread pools inside native peers; adapters/list.mjs has more for each peer. */
const ONE_THREAD = { OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", MKL_NUM_THREADS: "1" };

/** A contender that is silent for longer is considered hung. */
const PATIENCE_MS = 120_000;

const python = () => process.env.PYTHON ?? (existsSync(here(".venv/bin/python")) ? here(".venv/bin/python") : "python3");

/**
 * @returns {Record<string, string>} versions of the packages.
 * @throws when one is not installed.
 */
function installedVersions({ packages = [] }) {
  return Object.fromEntries(
    packages.map((name) => {
      const manifest = here(`node_modules/${name}/package.json`);
      if (!existsSync(manifest)) throw new Error(`${name} is not installed; npm ci --prefix bench/peers`);
      return [name, JSON.parse(readFileSync(manifest, "utf8")).version];
    }),
  );
}

/**
 * @returns {{ask(request: object, patienceMs?: number): Promise<object>, stop(): Promise<void>}} `ask` throws
 *   the contender's own error, or that it died.
 */
function startContender({ module, variant, program, env }) {
  const [command, args] = program
    ? [python(), [here(`adapters/${program}`)]]
    : [process.execPath, [...NODE_FLAGS, here("host.mjs"), JSON.stringify({ module, variant })]];
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...ONE_THREAD, ...env } });
  let complaint = "";
  child.stderr.on("data", (text) => {
    complaint = (complaint + text).slice(-2000);
  });
  child.stdin.on("error", () => {}); // a child that died is told by `exited`
  const exited = new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => resolve(`ended with ${signal ?? code}: ${complaint.trim().split("\n").at(-1)}`));
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  async function nextAnswer() {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the process ${await exited}`);
      if (value.startsWith("{")) return JSON.parse(value);
      complaint = (complaint + value).slice(-2000);
    }
  }

  return {
    async ask(request, patienceMs = PATIENCE_MS) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const impatience = setTimeout(() => {
        complaint += `\nno answer to "${request.op}" in ${patienceMs / 1000} s`;
        child.kill("SIGKILL");
      }, patienceMs);
      const answer = await nextAnswer().finally(() => clearTimeout(impatience));
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer;
    },
    async stop() {
      child.stdin.end();
      const impatience = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await exited;
      clearTimeout(impatience);
    },
  };
}

export const megabytes = (bytes) => (bytes == null ? "?" : (bytes / 1e6).toFixed(0));

/**
 * Starts the wanted contenders one after the other, so that each builds alone. One that fails is skipped.
 *
 * @param path  f32[rows + queries][dimension].
 * @returns {Promise<{contender, link, built}[]>}
 */
export async function startAll(run, set, path, contenders) {
  const started = [];
  for (const contender of contenders.filter(run.isWanted)) {
    let link;
    try {
      Object.assign(run.versions, installedVersions(contender));
      link = startContender(contender);
      await link.ask({ op: "load" });
      const { rows, dimension } = set;
      const graph = contender.buildPatienceMs && graphFile(run, set, contender);
      const built = await link.ask({ op: "build", path, rows, dimension, queries: run.queries, graph }, contender.buildPatienceMs);
      Object.assign(run.versions, built.versions);
      console.log(`${set.name}: built ${contender.name} in ${(built.buildMs / 1000).toFixed(2)} s, ${megabytes(built.memoryBytes)} MB`);
      started.push({ contender, link, built });
    } catch (error) {
      run.skip(set, contender, error);
      await link?.stop();
    }
  }
  return started;
}

/** Where a graph that took minutes to build is kept for the next run, if anywhere. */
function graphFile({ graphs }, { name, fingerprint }, contender) {
  return graphs && join(graphs, `${[name, contender.name, fingerprint].join(" ").replace(/[^\w.]+/g, "-")}.graph`);
}

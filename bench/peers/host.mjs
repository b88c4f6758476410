/**
 * One contender in a process of its own: its memory, its threads and its crash are its own, and times are taken
 * in here, without the way between processes. Protocol: a JSON object a line on stdin, one answered on stdout;
 * `error` in an answer says that it failed.
 *   {op: "load"} -> {}                                            imports the package
 *   {op: "build", path, rows, dimension, queries, graph} -> {buildMs, memoryBytes, batch, versions}
 *                                                                 path: f32[rows + queries][dimension]; batch: it has an API for many queries;
 *                                                                 graph: a file to keep what was built in, or to take it from, with its figures beside it
 *   {op: "search", query, k} -> {ms, cpuMs, answer}               cpuMs of all threads
 *   {op: "tune", ef} -> {}                                        of an approximate index: how many candidates its searches keep from now on
 *   {op: "many", k} -> {ms, cpuMs, answers}                       all queries in one call
 * An adapter's `open({dimension, rows, variant})` returns {add(firstRow, matrix), prepare(vector),
 * search(query, k), answerOf(result)}, and, as it has them, searchMany, prepareMany, answersOf, tune(ef),
 * save(file), load(file), versions, stop. Only add, search and searchMany are timed.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";

const BATCH_ROWS = 10_000;

const { module, variant } = JSON.parse(process.argv[2]);
let adapter;
let contender;
let queries;
let prepared;

/** @param position  in bytes; without it, behind what was read last. */
function readVectors(file, count, dimension, position = null) {
  const vectors = new Float32Array(count * dimension);
  const bytes = new Uint8Array(vectors.buffer);
  for (let at = 0; at < bytes.length; ) {
    const read = readSync(file, bytes, at, bytes.length - at, position === null ? null : position + at);
    if (read === 0) throw new Error("the file of vectors ended early");
    at += read;
  }
  return vectors;
}

async function residentBytes() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await setImmediate();
  }
  return process.memoryUsage.rss();
}

async function timed(run) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  const result = await run();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuMs: (user + system) / 1000, result };
}

/** @returns {Promise<{buildMs: number, buildCpuMs: number, memoryBytes: number}>} */
async function buildAnew(path, rows, dimension, before) {
  const file = openSync(path, "r");
  const { ms, cpuMs } = await addAll(file, rows, dimension);
  closeSync(file);
  return { buildMs: ms, buildCpuMs: cpuMs, memoryBytes: (await residentBytes()) - before };
}

/**
 * Rows come in batches that are dropped again, so that the growth of the process is what the contender keeps.
 */
async function addAll(file, rows, dimension) {
  const sum = { ms: 0, cpuMs: 0 };
  for (let first = 0; first < rows; first += BATCH_ROWS) {
    const matrix = readVectors(file, Math.min(BATCH_ROWS, rows - first), dimension);
    const { ms, cpuMs } = await timed(() => contender.add(first, matrix));
    sum.ms += ms;
    sum.cpuMs += cpuMs;
  }
  return sum;
}

const OPERATIONS = {
  async load() {
    adapter = await import(new URL(`adapters/${module}`, import.meta.url));
    return {};
  },

  async build({ path, rows, dimension, queries: count, graph }) {
    const before = await residentBytes();
    contender = await adapter.open({ dimension, rows, variant });
    const isKept = graph !== undefined && existsSync(`${graph}.json`);
    const figures = isKept ? JSON.parse(readFileSync(`${graph}.json`, "utf8")) : await buildAnew(path, rows, dimension, before);
    if (isKept) await contender.load(graph);
    else if (graph !== undefined) {
      await contender.save(graph);
      writeFileSync(`${graph}.json`, JSON.stringify(figures));
    }
    const file = openSync(path, "r");
    const matrix = readVectors(file, count, dimension, rows * dimension * 4);
    closeSync(file);
    queries = Array.from({ length: count }, (_, i) => matrix.slice(i * dimension, (i + 1) * dimension));
    prepared = queries.map((query) => contender.prepare(query));
    return { ...figures, batch: contender.searchMany !== undefined, versions: await contender.versions?.() };
  },

  async search({ query, k }) {
    const { ms, cpuMs, result } = await timed(() => contender.search(prepared[query], k));
    return { ms, cpuMs, answer: contender.answerOf(result) };
  },

  async tune({ ef }) {
    await contender.tune(ef);
    return {};
  },

  async many({ k }) {
    const together = contender.prepareMany ? contender.prepareMany(queries) : prepared;
    const { ms, cpuMs, result } = await timed(() => contender.searchMany(together, k));
    return { ms, cpuMs, answers: contender.answersOf ? contender.answersOf(result, k) : result.map(contender.answerOf) };
  },
};

console.log = console.error; // stdout is the protocol's
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await OPERATIONS[request.op](request);
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await contender?.stop?.();
process.exit(0);

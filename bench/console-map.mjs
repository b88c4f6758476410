/**
 * The console's map with many vectors, in Chromium: how it loads, whether the page stays responsive meanwhile, and
 * whether the ten nearest keep up with the pointer.
 *
 *     npm run bench:console-map [-- --rows 100000 --dimension 384]
 *
 * Random directions, the hardest case for a search. `--disable-gpu`: frames are drawn by the processor, so the map is
 * compared with a page that does nothing but clear a canvas of the map's size in each frame, which is the most that
 * this machine can show. `answers` are pictures with another ten nearest. CPU time is that of all threads of the
 * browser, per frame. Tasks are from a trace of the page's main thread. The library's answer is compared with the
 * server's before the pointer moves.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { launchChromium } from "../test/browser/launch.ts";
import { FINDERS } from "../test/support/finders.ts";
import { startServer } from "../test/support/server.ts";
import { createVectorTable } from "../test/support/vector-table.ts";
import { readOptions } from "./read-options.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "100000" },
  dimension: { type: "string", default: "384" },
});
const [rows, dimension] = [Number(options.rows), Number(options.dimension)];
const POINTER_MS = 5_000;
/** How often a mouse reports its position. */
const POINTER_HZ = 125;
const VIEWPORT = { width: 1440, height: 900 };
/** Of Linux, which counts processors' time in hundredths of a second. */
const TICK_MS = 10;

const server = await startServer();
const browser = await launchChromium(FINDERS.chromium());
try {
  await createVectorTable(server, rows, dimension);
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.goto(`${server.url}/console#/search/many:main/t`);
  const all = page.getByRole("button", { name: "Load all" });
  await all.waitFor();
  const beganMs = performance.now();
  const loading = await traced(page, async () => {
    await all.click();
    await page.locator(".results li").first().waitFor({ timeout: 300_000 });
    await page.getByText("this page found the same to the last bit").waitFor({ timeout: 60_000 });
  });
  print("loading", { seconds: ((performance.now() - beganMs) / 1000).toFixed(1), ...loading });
  print("memory", rendererMemory());
  const box = await page.locator(".map-frame").boundingBox();
  print("map", await framesOf(page, () => movePointer(page, box)));
  print("map, traced", await traced(page, () => movePointer(page, box)));
  await page.close();
  const plain = await browser.newPage({ viewport: VIEWPORT });
  await plain.evaluate(clearEachFrame, box);
  print("a cleared canvas alone", await framesOf(plain, () => movePointer(plain, box)));
} finally {
  await browser.close();
  await server.stop();
}

async function movePointer(page, box) {
  const untilMs = performance.now() + POINTER_MS;
  for (let i = 0; performance.now() < untilMs; i++) {
    const nextMs = performance.now() + 1000 / POINTER_HZ;
    const angle = i / 25;
    await page.mouse.move(box.x + box.width * (0.5 + 0.35 * Math.cos(angle)), box.y + box.height * (0.5 + 0.35 * Math.sin(1.3 * angle)));
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, nextMs - performance.now())));
  }
}

async function framesOf(page, work) {
  await page.evaluate(watchFrames);
  const beforeMs = browserCpuMs();
  await work();
  const spentMs = browserCpuMs() - beforeMs;
  const { intervals, pictures } = await page.evaluate(() => globalThis.seenFrames());
  const sorted = intervals.toSorted((a, b) => a - b);
  const totalMs = sorted.reduce((sum, ms) => sum + ms, 0);
  return {
    framesPerSecond: ((1000 * sorted.length) / totalMs).toFixed(1),
    answersPerSecond: ((1000 * pictures) / totalMs).toFixed(1),
    frameMs50: sorted[Math.floor(sorted.length * 0.5)].toFixed(1),
    frameMs95: sorted[Math.floor(sorted.length * 0.95)].toFixed(1),
    processorMsPerFrame: (spentMs / sorted.length).toFixed(1),
  };
}

/** How long each frame was, and how often a canvas was cleared to be redrawn. */
function watchFrames() {
  const intervals = [];
  let last = performance.now();
  let pictures = 0;
  const prototype = CanvasRenderingContext2D.prototype;
  const clear = prototype.clearRect;
  prototype.clearRect = function (...area) {
    pictures++;
    clear.apply(this, area);
  };
  const step = (now) => {
    intervals.push(now - last);
    last = now;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  globalThis.seenFrames = () => ({ intervals: intervals.slice(1), pictures });
}

function clearEachFrame({ width, height }) {
  const canvas = document.body.appendChild(document.createElement("canvas"));
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const step = (now) => {
    context.clearRect(0, 0, width, height);
    context.fillRect(now % width, 10, 20, 20);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

async function traced(page, work) {
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const main = traceEvents
    .filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain")
    .map(({ pid, tid }) => `${pid}:${tid}`);
  const tasks = traceEvents.filter(
    ({ name, pid, tid, dur }) => /RunTask$/.test(name) && dur !== undefined && main.includes(`${pid}:${tid}`),
  );
  const longest = tasks.toSorted((a, b) => b.dur - a.dur);
  return {
    tasks: tasks.length,
    tasksAbove50Ms: longest.filter(({ dur }) => dur > 50_000).length,
    longestMs: longest
      .slice(0, 3)
      .map(({ dur, tdur = 0 }) => `${(dur / 1000).toFixed(1)} (processor ${(tdur / 1000).toFixed(1)})`)
      .join(" "),
  };
}

/** CPU time so far of all processes that this one has started: the browser's, and the server's, which has nothing to do. */
function browserCpuMs() {
  const found = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [, parent, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      found.set(pid, { parent, ms: TICK_MS * (Number(fields[9]) + Number(fields[10])) });
    } catch {
      // It has ended.
    }
  }
  const isOurs = (pid) => pid !== undefined && (found.get(pid)?.parent === String(process.pid) || isOurs(found.get(pid)?.parent));
  return [...found].reduce((sum, [pid, { ms }]) => sum + (isOurs(pid) ? ms : 0), 0);
}

/** Of the process that holds the page and its worker, as the system counts it. */
function rendererMemory() {
  const lines = execFileSync("ps", ["-eo", "pid,rss,args"]).toString().split("\n");
  const renderers = lines.filter((line) => line.includes("--type=renderer")).map((line) => Number(line.trim().split(/\s+/)[1]));
  return { rendererMB: Math.round(Math.max(...renderers) / 1024) };
}

function print(name, figures) {
  console.log(
    `${name}: ${Object.entries(figures)
      .map(([key, value]) => `${key} ${value}`)
      .join(", ")}`,
  );
}

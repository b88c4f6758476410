/**
 * The console's map with many vectors, in Chromium: how it loads, whether the page stays free meanwhile, and whether the ten nearest keep up with the pointer.
 *
 *     npm run bench:console-map -- [rows=100000] [dimension=384]
 *
 * Random directions, for which a search has most to do. The figures are of a trace of the browser: tasks of the page's main thread while the map is loaded and
 * while the pointer moves, the frames of those seconds, and how many of them showed another answer of the library in the page. The library's answer
 * is compared with the server's before the pointer moves. `--disable-gpu`: frames are drawn by the processor.
 */
import { execFileSync } from "node:child_process";
import { launchChromium } from "../test/browser/launch.ts";
import { FINDERS } from "../test/support/finders.ts";
import { startServer } from "../test/support/server.ts";
import { seededRandom } from "./data.mjs";

const [rows = 100_000, dimension = 384] = process.argv.slice(2).map(Number);
const POINTER_MS = 5_000;
const CHUNK_ROWS = 1_000;

const server = await startServer();
const browser = await launchChromium(FINDERS.chromium());
try {
  await fill();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
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
  const frame = page.locator(".map-frame");
  const box = await frame.boundingBox();
  await page.evaluate(watchFrames);
  const moving = await traced(page, async () => {
    const untilMs = performance.now() + POINTER_MS;
    for (let i = 0; performance.now() < untilMs; i++) {
      const angle = i / 25;
      const x = box.x + box.width * (0.5 + 0.35 * Math.cos(angle));
      const y = box.y + box.height * (0.5 + 0.35 * Math.sin(1.3 * angle));
      await page.mouse.move(x, y);
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
  });
  print("pointer", { ...moving, ...(await page.evaluate(() => globalThis.seenFrames())) });
} finally {
  await browser.close();
  await server.stop();
}

/** Each element is a sum of three random numbers, near enough to a normal distribution for directions of all kinds. */
async function fill() {
  const random = seededRandom(1);
  await server.put("/db/many:main");
  await server.put("/db/many:main/tables/t", { columns: [{ name: "v", type: "vector", vector: { dimension } }] });
  for (let from = 0; from < rows; from += CHUNK_ROWS) {
    const count = Math.min(CHUNK_ROWS, rows - from);
    const records = Array.from({ length: count }, (_, i) => ({
      id: `r${from + i}`,
      v: Array.from({ length: dimension }, () => Math.round((random() + random() + random() - 1.5) * 1e4) / 1e4),
    }));
    const { status, text } = await server.post("/db/many:main/tables/t/bulk", { records });
    if (status !== 200) throw new Error(text);
  }
}

/** Each frame, and whether the list of results is another than in the frame before. */
function watchFrames() {
  const intervals = [];
  let last = performance.now();
  let changed = 0;
  let shown = "";
  const step = (now) => {
    intervals.push(now - last);
    last = now;
    const names = document.querySelector(".results ol")?.textContent ?? "";
    if (names !== shown) changed++;
    shown = names;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
  globalThis.seenFrames = () => {
    const sorted = intervals.slice(1).toSorted((a, b) => a - b);
    const total = sorted.reduce((sum, value) => sum + value, 0);
    return {
      framesPerSecond: (1000 * (sorted.length / total)).toFixed(1),
      frameMs95: sorted[Math.floor(sorted.length * 0.95)].toFixed(1),
      answersPerSecond: (1000 * (changed / total)).toFixed(1),
    };
  };
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
  const longest = tasks.map(({ dur }) => dur / 1000).toSorted((a, b) => b - a);
  return {
    tasks: tasks.length,
    tasksAbove50Ms: longest.filter((ms) => ms > 50).length,
    longestMs: longest
      .slice(0, 3)
      .map((ms) => ms.toFixed(1))
      .join(" "),
  };
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

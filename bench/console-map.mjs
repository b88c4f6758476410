/**
 * The console's map with many vectors, in Chromium: what it reads and holds, and what a person's hand costs it.
 *
 *     npm run bench:console-map [-- --rows 100000 --dimension 384]
 *
 * Random directions, the hardest case for a search. No time of a clock is reported, because it differs with what else the machine does:
 * bytes, memory, processor time (of the page's main thread, by the browser's own counters; of all its processes, by the system), and
 * ratios within one run. `--disable-gpu`: the processor draws, so the hand over the map is compared, in turns, with the same over a page
 * that clears a canvas of the map's size at every move. The library's answer is compared with the server's before the pointer moves.
 */
import { readdirSync, readFileSync } from "node:fs";
import { launchChromium } from "../test/browser/launch.ts";
import { FINDERS } from "../test/support/finders.ts";
import { startServer } from "../test/support/server.ts";
import { createVectorTable } from "../test/support/vector-table.ts";
import { rendererMb, tracedTasks } from "./page-trace.mjs";
import { readOptions } from "./read-options.mjs";

const options = readOptions(import.meta.url, {
  rows: { type: "string", default: "100000" },
  dimension: { type: "string", default: "384" },
});
const [rows, dimension] = [Number(options.rows), Number(options.dimension)];
const MOVES = 400;
const DRAGS = 40;
const ROUNDS = 3;
/** How often a mouse reports its position. */
const POINTER_HZ = 125;
const VIEWPORT = { width: 1440, height: 900 };
const MB = 1_000_000;
/** Of Linux, which counts processors' time in hundredths of a second. */
const TICK_MS = 10;

const server = await startServer();
const browser = await launchChromium(FINDERS.chromium());
try {
  await createVectorTable(server, rows, dimension);
  const page = await openPage();
  const counters = await countersOf(page);
  let bytes = 0;
  page.on("requestfinished", async (request) => {
    if (request.url().endsWith("/vectors")) bytes += (await request.sizes()).responseBodySize;
  });
  await page.goto(`${server.url}/console#/search/many:main/t`);
  const rest = page.getByRole("button", { name: /^Load / });
  await page.locator(".terms").waitFor();
  print("sample", { said: await page.locator(".map-rest span").innerText(), rendererMB: rendererMb(), ...(await counters()) });
  const loading = await traced(page, async () => {
    await rest.click();
    await page.locator(".map progress").waitFor({ state: "detached" });
  });
  const shown = Number(/^Map of (\d+)/.exec(await page.locator(".map-frame").getAttribute("aria-label"))[1]);
  if (shown === rows) await page.getByText("this page found the same to the last bit").waitFor();
  const held = shown * dimension * 4;
  const rendererMB = rendererMb();
  print("loaded", { rows: shown, vectorsMB: Math.round(held / MB), readPerVectorByte: (bytes / held).toFixed(3) });
  print("memory", { rendererMB, perVectorByte: ((rendererMB * MB) / held).toFixed(2), ...(await counters()) });
  print("loading, main thread", loading);

  const box = await page.locator(".map-frame").boundingBox();
  const plain = await openPage();
  const plainCounters = await countersOf(plain);
  await plain.evaluate(clearAtEachMove, box);
  const sums = { map: [0, 0, 0], plain: [0, 0, 0] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, shownPage, count] of [
      ["map", page, counters],
      ["plain", plain, plainCounters],
    ]) {
      await shownPage.bringToFront();
      await shownPage.evaluate(countPictures);
      const [before, beforeMs] = [await count(), browserCpuMs()];
      await movePointer(shownPage, box);
      const [after, afterMs] = [await count(), browserCpuMs()];
      const figures = [await shownPage.evaluate(() => globalThis.pictures), after.mainThreadMs - before.mainThreadMs, afterMs - beforeMs];
      figures.forEach((figure, i) => {
        sums[name][i] += figure;
      });
    }
  }
  const perMove = (sum) => (sum / ROUNDS / MOVES).toFixed(2);
  for (const [name, [pictures, mainThreadMs, allMs]] of Object.entries(sums))
    print(name === "map" ? "pointer over the map, per move" : "pointer over a cleared canvas, per move", {
      pictures: perMove(pictures),
      mainThreadMs: perMove(mainThreadMs),
      allProcessesMs: perMove(allMs),
    });
  print("ratio", { mainThread: (sums.map[1] / sums.plain[1]).toFixed(2), allProcesses: (sums.map[2] / sums.plain[2]).toFixed(2) });

  await page.bringToFront();
  print("dragged, main thread", await traced(page, () => drag(page, box)));
} finally {
  await browser.close();
  await server.stop();
}

async function openPage() {
  const page = await browser.newPage({ viewport: VIEWPORT });
  page.setDefaultTimeout(1_800_000);
  return page;
}

/** @returns a function that reads the processor time of the page's main thread so far, and what its scripts hold. */
async function countersOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const metric = (name) => metrics.find((found) => found.name === name).value;
    return { mainThreadMs: Math.round(1000 * metric("TaskDuration")), heapMB: (metric("JSHeapUsedSize") / MB).toFixed(1) };
  };
}

async function movePointer(page, box) {
  for (let i = 0; i < MOVES; i++) {
    const angle = i / 25;
    await page.mouse.move(box.x + box.width * (0.5 + 0.35 * Math.cos(angle)), box.y + box.height * (0.5 + 0.35 * Math.sin(1.3 * angle)));
    await new Promise((resolve) => setTimeout(resolve, 1000 / POINTER_HZ));
  }
}

async function drag(page, box) {
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let i = 1; i <= DRAGS; i++) await page.mouse.move(x + 3 * i, y + i);
  await page.mouse.up();
}

/** How often a canvas is cleared to be drawn again. */
function countPictures() {
  const prototype = CanvasRenderingContext2D.prototype;
  const isCounted = globalThis.pictures !== undefined;
  globalThis.pictures = 0;
  if (isCounted) return;
  const clear = prototype.clearRect;
  prototype.clearRect = function (...area) {
    globalThis.pictures++;
    clear.apply(this, area);
  };
}

function clearAtEachMove({ width, height }) {
  const canvas = document.body.appendChild(document.createElement("canvas"));
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  let asked = false;
  addEventListener("pointermove", ({ clientX }) => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      context.clearRect(0, 0, width, height);
      context.fillRect(clientX % width, 10, 20, 20);
    });
  });
}

/** The tasks of the main thread, by their processor time. */
async function traced(page, work) {
  const { cpuMs } = await tracedTasks(browser, page, work);
  return {
    tasks: cpuMs.length,
    allMs: Math.round(cpuMs.reduce((sum, ms) => sum + ms, 0)),
    tasksAbove50Ms: cpuMs.filter((ms) => ms > 50).length,
    longestMs: cpuMs
      .slice(0, 3)
      .map((ms) => ms.toFixed(1))
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

function print(name, figures) {
  console.log(
    `${name}: ${Object.entries(figures)
      .map(([key, value]) => `${key} ${value}`)
      .join(", ")}`,
  );
}

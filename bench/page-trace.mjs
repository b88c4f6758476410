/** What Chromium says of a page: the tasks of its main thread, and the memory of its process. */
import { execFileSync } from "node:child_process";

/**
 * The tasks of the main thread while `work` runs. A task is what a thread does at a stretch: people notice 50 ms. By
 * processor time, which is the task's length on an otherwise idle machine.
 *
 * @returns {Promise<{cpuMs: number[], wallMs: number[]}>} longest first, each by itself.
 */
export async function tracedTasks(browser, page, work) {
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const main = traceEvents
    .filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain")
    .map(({ pid, tid }) => `${pid}.${tid}`);
  const tasks = traceEvents.filter(
    ({ name, pid, tid, tdur }) => name.endsWith("RunTask") && tdur !== undefined && main.includes(`${pid}.${tid}`),
  );
  const longestFirst = (field) => tasks.map((task) => task[field] / 1000).sort((a, b) => b - a);
  return { cpuMs: longestFirst("tdur"), wallMs: longestFirst("dur") };
}

/** Resident set of the process that holds the page and its workers, in millions of bytes: the largest of all browsers that run. */
export function rendererMb() {
  const lines = execFileSync("ps", ["-eo", "pid,rss,args"]).toString().split("\n");
  const renderers = lines.filter((line) => line.includes("--type=renderer")).map((line) => Number(line.trim().split(/\s+/)[1]));
  return Math.round((Math.max(...renderers) * 1024) / 1e6);
}

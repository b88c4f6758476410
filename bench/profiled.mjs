/**
 * Preloaded into a server, and so into each of its threads (`node --import`): from one signal to the next, V8's CPU profile and the
 * garbage collections of each thread. So a profile has neither the start nor the warm-up in it.
 */

import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { join } from "node:path";
import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { BroadcastChannel, threadId } from "node:worker_threads";

const CHANNEL = "lodestone-profiled";
/** Microseconds between two samples. */
const INTERVAL = 200;
const LONGEST_WAIT_MS = 30_000;
/** A thread that has begun, and one that has ended, leave a file of this name in the folder. */
const [BEGUN, ENDED] = [".begun", ".cpuprofile"];
const filesOf = (folder, kind) => readdirSync(folder).filter((name) => name.endsWith(kind));

/** Arguments of node. @param folder  where each thread's profile is written. */
export function profiledInto(folder) {
  mkdirSync(folder, { recursive: true });
  const own = new URL(import.meta.url);
  // Not by the environment: the database's thread has none.
  own.search = new URLSearchParams({ folder }).toString();
  return ["--import", own.href];
}

/** From here on all threads of the process are profiled, but for one that never reads its messages. */
export async function beginProfile(pid, folder) {
  process.kill(pid, "SIGUSR2");
  await until(() => filesOf(folder, BEGUN).length > 0);
  // The others begin a moment later, each by itself.
  await sleep(500);
}

/** Resolves when all have written what they have seen. */
export async function endProfile(pid, folder) {
  process.kill(pid, "SIGUSR2");
  await until(() => filesOf(folder, BEGUN).length === 0);
}

async function until(isSo) {
  for (const endMs = performance.now() + LONGEST_WAIT_MS; !isSo(); await sleep(20))
    if (performance.now() > endMs) throw new Error("a thread of the server has not begun, or not ended, its profile.");
}

const folder = new URL(import.meta.url).searchParams.get("folder");
if (folder !== null) {
  const channel = new BroadcastChannel(CHANNEL);
  let end;
  const toggle = () => {
    if (end === undefined) end = begin(join(folder, String(threadId)));
    else end();
  };
  channel.onmessage = toggle;
  channel.unref();
  if (threadId === 0) {
    process.on("SIGUSR2", () => {
      channel.postMessage("");
      toggle();
    });
  }
}

/** @returns a function that ends it and writes the file. */
function begin(file) {
  const collections = [];
  const observer = new PerformanceObserver((list) => collections.push(...list.getEntries()));
  observer.observe({ entryTypes: ["gc"] });
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.setSamplingInterval", { interval: INTERVAL });
  session.post("Profiler.start");
  writeFileSync(file + BEGUN, "");
  return () => {
    session.post("Profiler.stop", (_error, { profile }) => {
      collections.push(...observer.takeRecords());
      observer.disconnect();
      session.disconnect();
      writeFileSync(file + BEGUN, JSON.stringify({ ...profile, collections: summary(collections) }));
      renameSync(file + BEGUN, file + ENDED);
    });
  };
}

function summary(collections) {
  const young = collections.filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MINOR);
  const ms = (of) => of.reduce((sum, { duration }) => sum + duration, 0);
  return { count: collections.length, young: young.length, ms: ms(collections), youngMs: ms(young) };
}

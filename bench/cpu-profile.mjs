/** Where the CPU time of a process goes: V8's profiles, one of each thread, as `node --cpu-prof` writes them when it ends. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Arguments of a node that is to write its profiles into the folder. */
export const profiledInto = (folder) => ["--cpu-prof", `--cpu-prof-dir=${folder}`];

/**
 * One line for each of the places that take most of each thread's own time, threads with most of it first.
 * @param requests  what the process has done: times are given for each of it, in microseconds.
 */
export function describeProfiles(folder, requests, { places = 14, leastShare = 0.02 } = {}) {
  const threads = readdirSync(folder)
    .filter((name) => name.endsWith(".cpuprofile"))
    .map((name) => selfTimes(JSON.parse(readFileSync(join(folder, name), "utf8"))))
    .sort((a, b) => b.busy - a.busy);
  const all = threads.reduce((sum, { busy }) => sum + busy, 0);
  return threads
    .filter(({ busy }) => busy >= leastShare * all)
    .flatMap(({ script, busy, byPlace }) => {
      const most = [...byPlace].sort(([, a], [, b]) => b - a).slice(0, places);
      const line = (place, time) =>
        `${(time / requests).toFixed(1).padStart(9)} µs  ${((100 * time) / busy).toFixed(1).padStart(5)} %  ${place}`;
      return [`${line(`thread of ${script}`, busy)}`, ...most.map(([place, time]) => `  ${line(place, time)}`)];
    });
}

/** Microseconds by function and file; `(program)` is code that is not JavaScript: sockets, files, the messages of threads. */
function selfTimes({ nodes, samples, timeDeltas }) {
  const placeOf = new Map(nodes.map(({ id, callFrame }) => [id, placeIn(callFrame)]));
  const byPlace = new Map();
  samples.forEach((id, i) => {
    const place = placeOf.get(id);
    if (place !== "(idle)") byPlace.set(place, (byPlace.get(place) ?? 0) + timeDeltas[i]);
  });
  const own = nodes.map(({ callFrame }) => callFrame.url).filter((url) => /\/dist\/|workers?[^/]*\.js$/.test(url));
  const script = own.length === 0 ? "no script of its own" : fileOf(own.find((url) => /worker|thread/.test(url)) ?? own[0]);
  return { script, busy: [...byPlace.values()].reduce((sum, time) => sum + time, 0), byPlace };
}

function placeIn({ functionName, url }) {
  if (functionName.startsWith("(")) return functionName;
  if (url.startsWith("wasm:")) return "WebAssembly";
  return `${functionName || "(anonymous)"} ${fileOf(url)}`;
}

function fileOf(url) {
  const path = url.startsWith("file:") ? fileURLToPath(url) : url;
  return path.replace(/^.*\/(dist|node_modules)\//, "");
}

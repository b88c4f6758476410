/** Where the CPU time of a process goes: V8's profiles, one of each thread, as profiled.mjs writes them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * One line for each of the places that take most of each thread's own time, threads with most of it first.
 * @param requests  what the process has done: times are given for each of it, in microseconds.
 */
export function describeProfiles(folder, requests, { places = 14, leastShare = 0.02 } = {}) {
  const threads = readThreads(folder, requests).sort((a, b) => b.busy - a.busy);
  const all = threads.reduce((sum, { busy }) => sum + busy, 0);
  return threads
    .filter(({ busy }) => busy >= leastShare * all)
    .flatMap(({ name, busy, byPlace, collections: { count, young, ms, youngMs } }) => {
      const most = [...byPlace].sort(([, a], [, b]) => b - a).slice(0, places);
      const line = (place, time) => `${micro(time)}  ${((100 * time) / busy).toFixed(1).padStart(5)} %  ${place}`;
      const collected =
        count === 0 ? "" : `; garbage collection: ${young} young, ${youngMs.toFixed(0)} ms; others ${(ms - youngMs).toFixed(0)} ms`;
      return [`${line(`thread of ${name}${collected}`, busy)}`, ...most.map(([place, time]) => `  ${line(place, time)}`)];
    });
}

/** The places of each thread where two servers differ most. @param profiles  of each: { folder, requests }. */
export function describeDifferences(profiles, { places = 20 } = {}) {
  const [threads, others] = profiles.map(({ folder, requests }) => readThreads(folder, requests));
  return threads.flatMap(({ name, busy, byPlace }) => {
    const other = others.find((thread) => thread.name === name);
    if (other === undefined) return [];
    const line = (place, time, otherTime) => `${micro(time)}  ${micro(otherTime)}  ${place}`;
    const most = [...new Set([...byPlace.keys(), ...other.byPlace.keys()])]
      .map((place) => [place, byPlace.get(place) ?? 0, other.byPlace.get(place) ?? 0])
      .sort((a, b) => Math.abs(b[1] - b[2]) - Math.abs(a[1] - a[2]))
      .slice(0, places);
    return [line(`thread of ${name}`, busy, other.busy), ...most.map(([place, ...times]) => `  ${line(place, ...times)}`)];
  });
}

/** The profile's own end. */
const INSPECTOR = "dispatch ";

const micro = (time) => `${time.toFixed(1).padStart(9)} µs`;

const readThreads = (folder, requests) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".cpuprofile"))
    .map((name) => selfTimes(JSON.parse(readFileSync(join(folder, name), "utf8")), name === "0.cpuprofile", requests));

/** Microseconds by function and file; `(program)` is code that is not JavaScript: sockets, files, the messages of threads. */
function selfTimes({ nodes, samples, timeDeltas, collections }, isMain, requests) {
  const placeOf = new Map(nodes.map(({ id, callFrame }) => [id, placeIn(callFrame)]));
  const byPlace = new Map();
  samples.forEach((id, i) => {
    const place = placeOf.get(id);
    if (place !== "(idle)" && place !== INSPECTOR) byPlace.set(place, (byPlace.get(place) ?? 0) + timeDeltas[i] / requests);
  });
  const own = nodes.map(({ callFrame }) => callFrame.url).filter((url) => /\/dist\/|workers?[^/]*\.js$/.test(url));
  const script = own.length === 0 ? "no script of its own" : fileOf(own.find((url) => /worker|thread/.test(url)) ?? own[0]);
  const busy = [...byPlace.values()].reduce((sum, time) => sum + time, 0);
  return { name: isMain ? "the process" : script, busy, byPlace, collections };
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

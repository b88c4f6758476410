/** What Linux says of a running process; undefined elsewhere. */
import { readFileSync } from "node:fs";

/** Seconds of all its threads, user and system; a tick is 10 ms. */
export function cpuSecondsOf(pid) {
  // utime and stime are fields 14 and 15; the second is a name in parentheses, which may hold spaces.
  const fields = readProcess(pid, "stat")
    .replace(/^.*\) /, "")
    .split(" ");
  return fields.length < 13 ? undefined : (Number(fields[11]) + Number(fields[12])) / 100;
}

/** @param field  as "VmRSS", the resident set, or "VmHWM", the largest that it was. */
export function statusMb(pid, field) {
  const [, kilobytes] = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readProcess(pid, "status")) ?? [];
  return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1024);
}

function readProcess(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

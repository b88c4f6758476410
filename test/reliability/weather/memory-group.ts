/** A memory control group (version 1 or 2), as a container has. Needs root. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface MemoryGroup {
  /** From now on the process and what it starts count; what it took before does not. */
  add(pid: number): void;
  remove(): void;
}

/** @returns undefined where this process may make none. */
export function makeMemoryGroup(name: string, megabytes: number): MemoryGroup | undefined {
  const isOld = existsSync("/sys/fs/cgroup/memory");
  const folder = join(isOld ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", name);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, isOld ? "memory.limit_in_bytes" : "memory.max"), String(megabytes * 2 ** 20));
  } catch {
    return undefined;
  }
  return {
    add: (pid) => writeFileSync(join(folder, "cgroup.procs"), String(pid)),
    remove: () => {
      try {
        rmdirSync(folder);
      } catch {
        // Its last process is still ending; an empty group left behind holds nothing.
      }
    },
  };
}

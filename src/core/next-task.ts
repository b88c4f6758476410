/** Long work in slices, between which a page paints and answers. */

/** Far below the 50 ms at which browsers speak of a long task. */
const SLICE_MS = 8;

interface Scheduler {
  yield?: () => Promise<void>;
}

/** Lets everything else that waits have its turn. */
function nextTask(): Promise<void> {
  const { scheduler, setImmediate } = globalThis as { scheduler?: Scheduler; setImmediate?: (callback: () => void) => void };
  if (typeof scheduler?.yield === "function") return scheduler.yield();
  return new Promise((resolve) => (setImmediate === undefined ? setTimeout(resolve) : setImmediate(resolve)));
}

/** Between two steps of work. */
export class Slices {
  #began = Date.now();

  /** Resolves at once while the slice lasts, else in a task of its own. */
  async pause(): Promise<void> {
    if (Date.now() - this.#began < SLICE_MS) return;
    await nextTask();
    this.#began = Date.now();
  }
}

/** Long work in slices, between which a page paints and answers. */

/** Far below the 50 ms at which browsers speak of a long task. */
const SLICE_MS = 8;

/**
 * Lets everything else that waits have its turn. Not by `scheduler.yield`, whose continuation comes before the timers of the page, nor by timers, which browsers
 * hold back for 4 ms when they follow each other.
 */
function nextTask(): Promise<void> {
  const { setImmediate, MessageChannel } = globalThis as Partial<Pick<typeof globalThis, "setImmediate" | "MessageChannel">>;
  return new Promise((resolve) => {
    if (setImmediate !== undefined) setImmediate(resolve);
    else if (MessageChannel !== undefined) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(undefined);
    } else setTimeout(resolve);
  });
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

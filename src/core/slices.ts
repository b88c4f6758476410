/** Runs long work in slices, so that a page can paint and respond in between. */

/** Far below 50 ms, from which browsers report a long task. */
const SLICE_MS = 8;

/**
 * Lets all other pending work run. `scheduler.yield` is no substitute, because its continuation runs before
 * the page's timers; nor are timers, which browsers delay by 4 ms when nested.
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

/** Call `pause` between two steps of work. */
export class Slices {
  #began = Date.now();

  /** Resolves at once while the current slice lasts, otherwise in a new task. */
  async pause(): Promise<void> {
    if (Date.now() - this.#began < SLICE_MS) return;
    await nextTask();
    this.#began = Date.now();
  }
}

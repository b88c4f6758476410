/** How often others were served while something was done, which does not depend on how fast the machine is. */

/**
 * Turns that the event loop made until `work` was done. Count only work that waits for nothing: whoever waits
 * leaves the event loop to the others anyway.
 */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  try {
    await work();
  } finally {
    isDone = true;
  }
  return turns;
}

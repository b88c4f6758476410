/**
 * Counts how often others were served during some work, which does not depend on the speed of the machine.
 */

/**
 * Turns of the event loop until `work` was done. Use it only for work that waits for nothing: waiting leaves
 * the event loop to others anyway.
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

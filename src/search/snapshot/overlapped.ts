/** Asynchronous work that goes on beside other work, within bounds. */

/** A bounded number of promises that are waited for later. */
export class Window {
  readonly #most: number;
  readonly #running: Promise<unknown>[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Waits for the oldest ones while there are too many. @throws what one of them was rejected with. */
  async begin(work: Promise<unknown>): Promise<void> {
    work.catch(() => {}); // told when it is waited for
    this.#running.push(work);
    while (this.#running.length > this.#most) await this.#running.shift();
  }

  /** Waits for all. @throws what the oldest of those that failed was rejected with. */
  async end(): Promise<void> {
    const failed = (await Promise.allSettled(this.#running.splice(0))).find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}

/** Passes each item to `take` when it has taken the one before, and asks for the next meanwhile. @throws what either of them throws. */
export async function overlapped<Item>(items: AsyncIterable<Item>, take: (item: Item) => Promise<void>): Promise<void> {
  const taking = new Window(1);
  try {
    for await (const item of items) {
      await taking.end();
      await taking.begin(take(item));
    }
  } finally {
    await taking.end();
  }
}

/** The items of both, alternately as long as both have some. */
export async function* inTurns<Item>(one: AsyncGenerator<Item, unknown>, other: AsyncGenerator<Item, unknown>): AsyncGenerator<Item, void> {
  const left = [one, other];
  try {
    for (let turn = 0; left.length > 0; turn++) {
      const i = turn % left.length;
      const { done, value } = await left[i]!.next();
      if (done) left.splice(i, 1);
      else yield value;
    }
  } finally {
    for (const items of left) await items.return(undefined);
  }
}

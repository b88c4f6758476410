/**
 * Interrupts the statements of one session from a thread of its own, which alone holds PostgreSQL's memory
 * besides the thread that runs PostgreSQL.
 *
 * Why not from the main thread: a memory is freed when the last heap that refers to it lets go. A thread's heap
 * goes with the thread. The main thread's is collected when V8 sees a need, and it sees none in a reference of a
 * few bytes to a memory of a GiB: the memories of ended sessions stayed until the process died of them.
 *
 * Invariant: after `resume` has returned, no flag is set until the next `interrupt` or `watch`.
 */
import { type MessagePort, Worker } from "node:worker_threads";
import { TEST_ENVIRONMENT } from "../../../files/fault-points.ts";

/** The words that both threads share. */
export const STATE = 0;
/** For how long PostgreSQL's thread has computed without looking whether it was interrupted. */
export const DEAF_MS = 1;
/** For how long it has computed since it is watched or interrupted. */
export const COMPUTED_MS = 2;
const WORDS = 3;

/** The states. */
export const IDLE = 0;
export const WANTED = 1;
/** The thread is setting PostgreSQL's flags at this moment. */
export const SETTING = 2;
const WATCHED = 3;

export interface InterrupterInput {
  readonly control: Int32Array;
}

/** It does next to nothing. */
const RESOURCE_LIMITS = { stackSizeMb: 1, maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 };
/** Setting the flags takes nanoseconds, unless the thread is suspended in between. */
const SETTING_LIMIT_MS = 1_000;

export class Interrupter {
  readonly #thread: Worker;
  readonly #control = new Int32Array(new SharedArrayBuffer(4 * WORDS));
  #hasEnded = false;
  /** Resolves when it can interrupt; rejects when its thread fails before that. */
  readonly ready: Promise<void>;

  /**
   * @param flagsPort  the thread that runs PostgreSQL sends one message to its other end: the InterruptFlags.
   * @param onFailure  called when the thread fails: from then on statements cannot be interrupted.
   */
  constructor(flagsPort: MessagePort, onFailure: (error: Error) => void) {
    this.#thread = new Worker(new URL("./interrupt-worker.js", import.meta.url), {
      workerData: { control: this.#control, flagsPort } satisfies InterrupterInput & { flagsPort: MessagePort },
      transferList: [flagsPort],
      resourceLimits: RESOURCE_LIMITS,
      argv: [],
      env: TEST_ENVIRONMENT,
    });
    this.ready = new Promise((resolve, reject) => {
      this.#thread.once("message", () => resolve());
      this.#thread.once("error", reject);
      this.#thread.once("exit", () => reject(new Error("the interrupting thread ended")));
    });
    this.ready.catch(() => {});
    this.#thread.on("error", onFailure);
  }

  /** Milliseconds; 0 unless it interrupts or watches. */
  get deafMs(): number {
    return Atomics.load(this.#control, DEAF_MS);
  }

  /** Milliseconds of PostgreSQL's thread on a processor since `watch` or `interrupt`. */
  get computedMs(): number {
    return Atomics.load(this.#control, COMPUTED_MS);
  }

  /** Makes the current statement fail at PostgreSQL's next check, and every further one until `resume`. */
  interrupt(): void {
    this.#become(WANTED);
  }

  /** Finds out for how long the current statement computes, and whether it could be interrupted, until `interrupt` or `resume`. */
  watch(): void {
    this.#become(WATCHED);
  }

  resume(): void {
    this.#become(IDLE);
    Atomics.store(this.#control, DEAF_MS, 0);
    Atomics.store(this.#control, COMPUTED_MS, 0);
  }

  #become(state: number): void {
    if (this.#hasEnded) return;
    const until = performance.now() + SETTING_LIMIT_MS; // a thread that has died sets nothing more
    for (let now = Atomics.load(this.#control, STATE); ; now = Atomics.load(this.#control, STATE)) {
      // Its thread sleeps, and need not be woken after every statement.
      if (now === state) return;
      if (now === SETTING && performance.now() < until) Atomics.wait(this.#control, STATE, SETTING, SETTING_LIMIT_MS);
      else if (Atomics.compareExchange(this.#control, STATE, now, state) === now) break;
    }
    Atomics.notify(this.#control, STATE);
  }

  /** Resolves when the thread is gone, and with it its reference to PostgreSQL's memory. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#thread.terminate();
  }
}

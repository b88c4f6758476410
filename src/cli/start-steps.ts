/**
 * Says what a start is doing: each step when it begins, and again every few seconds while it lasts, since a start can
 * take long: with little CPU, after a crash, with large indexes. In the log, and on a terminal whose log leaves it out.
 */
import type { Logger } from "pino";

const REPEAT_MS = 5_000;

/** Words for what is being done: "opening the database". A function is asked each time they are said. */
export type StepWords = string | (() => string);

export interface StartStepsOptions {
  /** Where lines for people go; undefined: nobody looks, or reads the log. */
  readonly terminal?: { write(line: string): unknown } | undefined;
  /** Default: 5 s. */
  readonly repeatMs?: number;
}

export class StartSteps {
  readonly #log: Logger;
  readonly #options: StartStepsOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Logger, options: StartStepsOptions = {}) {
    this.#log = log;
    this.#options = options;
  }

  /** Ends the step before. */
  begin(words: StepWords): void {
    this.end();
    const beganAt = performance.now();
    const say = (): void => {
      const step = typeof words === "string" ? words : words();
      const seconds = Math.round((performance.now() - beganAt) / 1000);
      this.#log.info({ seconds }, `starting: ${step}`);
      this.#options.terminal?.write(`Lodestone is starting: ${step}${seconds === 0 ? "" : `, for ${seconds} s`}\n`);
    };
    say();
    this.#timer = setInterval(say, this.#options.repeatMs ?? REPEAT_MS).unref();
  }

  /** Nothing is said until the next step begins. */
  end(): void {
    clearInterval(this.#timer);
  }
}

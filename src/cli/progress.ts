/**
 * Progress of a long command: a bar with rate and remaining time on a terminal, a plain line every few seconds
 * elsewhere (logs, pipes). Both on stderr.
 */
import { Presets, SingleBar } from "cli-progress";

const LINE_INTERVAL_MS = 5_000;

export interface Progress {
  /** @param done of `total`, in whatever unit the caller counts the way; @param records since the start of this run. */
  update(done: number, records: number): void;
  stop(): void;
}

export function startProgress(total: number, start: number, stream: NodeJS.WriteStream = process.stderr): Progress {
  return stream.isTTY ? new BarProgress(total, start, stream) : new LineProgress(total, start, stream);
}

class Rate {
  readonly #startedMs = performance.now();
  readonly #total: number;
  readonly #start: number;

  constructor(total: number, start: number) {
    this.#total = total;
    this.#start = start;
  }

  describe(done: number, records: number): { percent: string; perSecond: string; left: string } {
    const elapsedSeconds = Math.max(0.001, (performance.now() - this.#startedMs) / 1000);
    const percent = this.#total === 0 ? 100 : (100 * done) / this.#total;
    const speed = (done - this.#start) / elapsedSeconds;
    return {
      percent: `${percent.toFixed(1)} %`,
      perSecond: `${grouped(Math.round(records / elapsedSeconds))}/s`,
      left: speed > 0 ? duration((this.#total - done) / speed) : "?",
    };
  }
}

class BarProgress implements Progress {
  readonly #bar: SingleBar;
  readonly #rate: Rate;

  constructor(total: number, start: number, stream: NodeJS.WriteStream) {
    this.#rate = new Rate(total, start);
    this.#bar = new SingleBar(
      { stream, format: "{bar} {percent} | {records} records | {perSecond} | {left} left", hideCursor: true, fps: 5, gracefulExit: false },
      Presets.shades_classic,
    );
    this.#bar.start(Math.max(1, total), start, { records: "0", perSecond: "", left: "?", percent: "0 %" });
  }

  update(done: number, records: number): void {
    this.#bar.update(done, { records: grouped(records), ...this.#rate.describe(done, records) });
  }

  stop(): void {
    this.#bar.stop();
  }
}

class LineProgress implements Progress {
  readonly #rate: Rate;
  readonly #stream: NodeJS.WriteStream;
  #lastMs = performance.now();

  constructor(total: number, start: number, stream: NodeJS.WriteStream) {
    this.#rate = new Rate(total, start);
    this.#stream = stream;
  }

  update(done: number, records: number): void {
    if (performance.now() - this.#lastMs < LINE_INTERVAL_MS) return;
    this.#lastMs = performance.now();
    const { percent, perSecond, left } = this.#rate.describe(done, records);
    this.#stream.write(`${percent} | ${grouped(records)} records | ${perSecond} | ${left} left\n`);
  }

  stop(): void {}
}

export const grouped = (value: number): string => value.toLocaleString("en-US");

function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

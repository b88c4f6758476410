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
  const startedMs = performance.now();
  const describe = (done: number, records: number): { percent: string; records: string; perSecond: string; left: string } => {
    const elapsedSeconds = Math.max(0.001, (performance.now() - startedMs) / 1000);
    const percent = total === 0 ? 100 : (100 * done) / total;
    const speed = (done - start) / elapsedSeconds;
    return {
      percent: `${percent.toFixed(1)} %`,
      records: grouped(records),
      perSecond: `${grouped(Math.round(records / elapsedSeconds))}/s`,
      left: speed > 0 ? duration((total - done) / speed) : "?",
    };
  };
  if (!stream.isTTY) {
    let lastMs = startedMs;
    return {
      update(done, records) {
        if (performance.now() - lastMs < LINE_INTERVAL_MS) return;
        lastMs = performance.now();
        const said = describe(done, records);
        stream.write(`${said.percent} | ${said.records} records | ${said.perSecond} | ${said.left} left\n`);
      },
      stop() {},
    };
  }
  const bar = new SingleBar(
    { stream, format: "{bar} {percent} | {records} records | {perSecond} | {left} left", hideCursor: true, fps: 5, gracefulExit: false },
    Presets.shades_classic,
  );
  bar.start(Math.max(1, total), start, { records: "0", perSecond: "", left: "?", percent: "0 %" });
  return { update: (done, records) => bar.update(done, describe(done, records)), stop: () => bar.stop() };
}

export const grouped = (value: number): string => value.toLocaleString("en-US");

function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

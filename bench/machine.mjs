/** Describes the machine on which figures were measured. */
import { cpus, loadavg, totalmem } from "node:os";
import { YARDSTICK } from "./native-scan.mjs";

/** @param program  of compileNativeScan. */
export function describeMachine(program) {
  return {
    cpu: cpus()[0]?.model ?? "unknown CPU",
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    yardstick: program ? YARDSTICK : null,
  };
}

/** Number of programs that wanted a processor in the last minute, including the bench. */
export const loadNow = () => loadavg()[0];

/**
 * Machine, Node version and day for the documents, with what a reader must know to judge the figures.
 * `loads`: values of loadNow during the run.
 */
export function describeRun({ machine, at, partial, loads = [] }) {
  const load = medianOf(loads);
  return [
    `${machine.cpu}, Node ${machine.node}, ${at.slice(0, 10)}`,
    ...(partial ? ["**not a full run** (fewer turns or sets)"] : []),
    ...(isBusy(machine, load)
      ? [`**a busy machine** (load ${load.toFixed(0)} on ${machine.cores} cores: counts are exact, ratios rough, times unreliable)`]
      : []),
  ].join(", ");
}

/** The bench itself needs one processor, and part of another for the C scan. */
export const isBusy = ({ cores }, load) => load > cores + 1;

export const medianOf = (values) => (values.length === 0 ? 0 : [...values].sort((a, b) => a - b)[values.length >> 1]);

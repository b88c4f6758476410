/**
 * The thread that interrupts PostgreSQL's statements, on behalf of one session (interrupter.ts says why it is a
 * thread), and finds out whether they could be interrupted. It waits on a word that it shares with the main
 * thread, and never runs anything else.
 *
 * PostgreSQL clears InterruptPending whenever it looks at it. So a flag that is still set after a while shows
 * that it does not look, whether it was set with a request to cancel the statement or alone, which does nothing
 * else. The time is that of PostgreSQL's thread on a processor: on a busy machine, or while a disk is slow, a
 * thread that is not running can look at nothing.
 */
import { readFileSync } from "node:fs";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { COMPUTED_MS, DEAF_MS, IDLE, type InterrupterInput, SETTING, STATE, WANTED } from "./interrupter.ts";
import { type InterruptFlags, interruptStatement } from "./worker-messages.ts";

/**
 * An interruption is repeated, because PostgreSQL forgets one that comes between two messages of a statement.
 */
const EVERY_MS = 20;
/** Of Linux's clock in /proc: it is 100 per second in everything that user space sees. */
const TICK_MS = 10;

const { control, flagsPort } = workerData as InterrupterInput & { readonly flagsPort: MessagePort };

flagsPort.once("message", (flags: InterruptFlags) => {
  parentPort!.postMessage("ready");
  for (;;) {
    Atomics.wait(control, STATE, IDLE);
    const beganAtMs = processorMs(flags.threadPath);
    let heardAtMs = beganAtMs;
    for (let state = Atomics.load(control, STATE); state !== IDLE; state = Atomics.load(control, STATE)) {
      const now = processorMs(flags.threadPath);
      if (Atomics.compareExchange(control, STATE, state, SETTING) !== state) continue;
      if (Atomics.load(flags.memory, flags.interruptPending) === 0) heardAtMs = now;
      if (state === WANTED) interruptStatement(flags);
      else Atomics.store(flags.memory, flags.interruptPending, 1);
      Atomics.store(control, DEAF_MS, now - heardAtMs);
      Atomics.store(control, COMPUTED_MS, now - beganAtMs);
      Atomics.store(control, STATE, state);
      Atomics.notify(control, STATE);
      Atomics.wait(control, STATE, state, EVERY_MS);
    }
  }
});

/** Time that PostgreSQL's thread has had on a processor; that of the clock where nobody says. */
function processorMs(threadPath: string | null): number {
  if (threadPath === null) return performance.now();
  // "tid (name) state …": user and system time are the 12th and 13th fields after the name.
  const stat = readFileSync(`${threadPath}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return TICK_MS * (Number(fields[11]) + Number(fields[12]));
}

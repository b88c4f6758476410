/**
 * Loaded before a server (`--import`): says on stderr when a thread of the embedded database begins and ends, and how
 * many there are. Its maintenance, which looks every 15 s, looks every millisecond, as it would in a start that
 * takes long. "a hundred turns" is said again and again, as a clock that goes slower where everything does.
 */
import { writeSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import workerThreads from "node:worker_threads";

const say = (line) => writeSync(2, `${line}\n`);

if (workerThreads.isMainThread) {
  const { setInterval: setIntervalOf } = globalThis;
  globalThis.setInterval = (callback, ms, ...values) => {
    if (ms === 15_000) say("maintenance begins");
    return setIntervalOf(callback, ms === 15_000 ? 1 : ms, ...values);
  };
  let alive = 0;
  workerThreads.Worker = class extends workerThreads.Worker {
    constructor(url, options) {
      super(url, options);
      if (!String(url).includes("database-worker")) return;
      say(`database threads: ${++alive}`);
      this.once("exit", () => say(`database threads: ${--alive}`));
    }
  };
  syncBuiltinESMExports();
  let turns = 0;
  setIntervalOf(() => {
    if (++turns % 100 === 0) say("a hundred turns");
  }, 1).unref();
}

/**
 * Points at which tests end the process as a crash would (SIGKILL), or make a thread wait. Below every layer.
 * `LODESTONE_CRASH_AT=point` ends it when it first reaches that point, `LODESTONE_CRASH_AT=point:17` at the 17th
 * time. The variable is read once; without it a point costs an empty call. test/reliability/crash.test.ts kills a
 * server at each point and checks that what it had acknowledged is there.
 *
 * `LODESTONE_HOLD_AT=point:pipe`: a thread that reaches the point waits there in a system call, until somebody has
 * opened the named pipe for writing and closed it. Without the pipe nobody waits.
 */
import { readFileSync } from "node:fs";

export type CrashPoint =
  /**
   * A first start: while the new database is built, before it is put in its place, and before its marker is
   * written.
   */
  | "first-start-building"
  | "first-start-built"
  | "first-start-placed"
  /** A transaction's work is done, its COMMIT not yet sent. */
  | "before-commit"
  /** The embedded database has written a commit to its log, not yet synced it. */
  | "before-sync"
  /** It is written, and its sync put off; and nobody has been answered. */
  | "sync-deferred"
  /** It is synced; neither the record store nor the client knows. */
  | "after-sync"
  /** The record store knows; the answer has not been sent. */
  | "before-answer"
  /** The embedded database writes a checkpoint (its data files are synced one after the other). */
  | "checkpoint"
  /** The search store has applied some of a round's batches. */
  | "search-apply"
  /** A snapshot's file is partly written; and it is complete, but not yet renamed into place. */
  | "snapshot-write"
  | "snapshot-written"
  /** Files of vectors have what a snapshot refers to, which is not complete; and it is in place, but what only the one before needed is kept. */
  | "vectors-flushed"
  | "snapshot-placed"
  /** A journal has a message more; and it is on disk, but the feed has not been told that it may forget. */
  | "journal-write"
  | "journal-synced"
  /** A file that several processes change (the key file) is locked; and its new content is beside it. */
  | "file-locked"
  | "file-written";

/** The environment of threads that get no other: what tests set (fault points, and where coverage is written). */
export const TEST_ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  ["LODESTONE_CRASH_AT", "LODESTONE_HOLD_AT", "NODE_V8_COVERAGE"].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name] as string]],
  ),
);

const [wanted, count = "1"] = (TEST_ENVIRONMENT.LODESTONE_CRASH_AT ?? "").split(":");
let passagesLeft = Number(count);

export const crashPoint: (point: CrashPoint) => void =
  wanted === ""
    ? () => {}
    : (point) => {
        if (point !== wanted || --passagesLeft > 0) return;
        process.kill(process.pid, "SIGKILL");
        // The signal ends all threads at any moment; this one must not go on until then.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      };

export type HoldPoint =
  /** The thread of the embedded database, before it opens the directory. */
  | "session-opening"
  /** The same thread, asked to shut down, before it does. */
  | "session-closing";

const [heldPoint, pipe = ""] = (TEST_ENVIRONMENT.LODESTONE_HOLD_AT ?? "").split(/:(.*)/s);

export const holdPoint: (point: HoldPoint) => void =
  heldPoint === ""
    ? () => {}
    : (point) => {
        if (point !== heldPoint) return;
        try {
          readFileSync(pipe);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
        }
      };

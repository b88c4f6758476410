/** Checks a history, one key at a time. Each fault gets a name and the operations that show it. */
import { checkFollowers } from "./followers.ts";
import { type Action, describeOperation, type Fault, type FaultKind, type Operation, type Seen } from "./history.ts";
import { linearize } from "./linearizability.ts";
import { hasMade, isRead, type State, stateText } from "./record-model.ts";

export interface Verdict {
  readonly faults: readonly Fault[];
  readonly operations: number;
  readonly keys: number;
}

export function judge(history: readonly Operation[], options: { initial?: State; maxSteps?: number } = {}): Verdict {
  const byKey = new Map<string, Operation[]>();
  for (const operation of history) {
    const operations = byKey.get(operation.key);
    if (operations === undefined) byKey.set(operation.key, [operation]);
    else operations.push(operation);
  }
  const faults = [...byKey.values()].flatMap((operations) => judgeKey(operations, options.initial ?? null, options.maxSteps));
  return { faults, operations: history.length, keys: byKey.size };
}

/**
 * @param servers  "many": eventual searches went to servers that lag by different times, so they may go back.
 */
export function judgeKey(
  operations: readonly Operation[],
  initial: State = null,
  maxSteps?: number,
  servers: "one" | "many" = "one",
): Fault[] {
  const { key } = operations[0] ?? { key: "" };
  const result = linearize(operations, initial, maxSteps);
  if (result.outcome === "linearizable") return servers === "one" ? checkFollowers(operations) : [];
  if (result.outcome === "undecided") {
    return [{ kind: "undecided", key, message: `Gave up on ${key} after ${result.steps} steps over ${operations.length} operations.` }];
  }
  const named = nameFault(operations, initial);
  if (named !== undefined) return [{ ...named, key }];
  const message =
    `No order of the operations on ${key} explains all answers; ${result.placed} of ${operations.length} can be placed, then the key holds ` +
    `${stateText(result.state)}, and this cannot be: ${describeOperation(result.blocked)}`;
  return [{ kind: "not linearizable", key, message }];
}

/**
 * The simple faults, each shown by a read and one or two other operations. Only used when no order exists, to
 * name the fault.
 */
function nameFault(operations: readonly Operation[], initial: State): Omit<Fault, "key"> | undefined {
  const reads = operations.filter(({ action }) => isRead(action)).sort((a, b) => a.invokedMs - b.invokedMs);
  const writers = new Map<number, Operation>();
  for (const operation of operations) if ("value" in operation.action) writers.set(operation.action.value, operation);
  const counts = operations.some(({ action }) => action.do === "add");
  for (const read of reads) {
    const fault = nameReadFault(read, operations, writers, counts, initial);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function nameReadFault(
  read: Operation,
  operations: readonly Operation[],
  writers: ReadonlyMap<number, Operation>,
  counts: boolean,
  initial: State,
): Omit<Fault, "key"> | undefined {
  const saw = sawOf(read.action);
  const askedMs = read.action.do === "follow" ? read.invokedMs - read.action.lagLimitMs : read.invokedMs;
  const tell = (kind: FaultKind, sentence: string, ...others: Operation[]): Omit<Fault, "key"> => ({
    kind,
    message: `${sentence}: ${[...others, read].map(describeOperation).join("; ")}`,
  });
  if (saw === null) {
    const lost = operations.find((write) => hasMade(write.action) && write.returnedMs < askedMs && !deletedSince(write, read, operations));
    return lost && tell("lost", "A write that was acknowledged before the read began is not there, and no delete explains it", lost);
  }
  if (counts) return undefined; // values of a counter are not written by one operation alone
  const writer = writers.get(saw.value);
  if (writer === undefined) {
    return initial?.value === saw.value ? undefined : tell("phantom", "A read shows a value that nobody wrote");
  }
  if (wasRefused(writer.action)) return tell("phantom", "A read shows the value of a write that was refused", writer);
  if (writer.invokedMs > read.returnedMs) return tell("phantom", "A read shows a value before it was written", writer);
  const deletion = operations.find(
    ({ action, invokedMs, returnedMs }) =>
      action.do === "delete" && action.answer?.found === true && invokedMs > writer.returnedMs && returnedMs < askedMs,
  );
  if (deletion !== undefined) return tell("resurrected", "A read shows a record that an acknowledged delete had removed", writer, deletion);
  const successor = operations.find((write) => hasMade(write.action) && write.invokedMs > writer.returnedMs && write.returnedMs < askedMs);
  if (successor !== undefined)
    return tell("stale", "A read shows a value that was replaced, with an acknowledgement, before the read began", writer, successor);
  const earlier = operations.find((other) => {
    const seen = isRead(other.action) ? sawOf(other.action) : null;
    const newer = seen === null ? undefined : writers.get(seen.value);
    return newer !== undefined && other.returnedMs < askedMs && newer.invokedMs > writer.returnedMs;
  });
  return earlier && tell("non-monotonic", "A read shows an older state than a read that had ended before it began", writer, earlier);
}

function sawOf(action: Action): Seen | null {
  return action.do === "read" || action.do === "follow" ? action.saw : null;
}

function wasRefused(action: Action): boolean {
  return (action.do === "create" || action.do === "update") && action.answer?.done === false;
}

function deletedSince(write: Operation, read: Operation, operations: readonly Operation[]): boolean {
  return operations.some(
    ({ action, invokedMs, returnedMs }) =>
      action.do === "delete" && action.answer?.found !== false && returnedMs > write.invokedMs && invokedMs < read.returnedMs,
  );
}

/** Checks a history, one key at a time. Each fault gets a name and the operations that show it. */
import { checkFollowers } from "./followers.ts";
import { type Action, describeOperation, type Fault, type FaultKind, type Operation, type Promotion, type Seen } from "./history.ts";
import { type LinearizeOptions, linearize } from "./linearizability.ts";
import { hasMade, isRead, type State, stateText } from "./record-model.ts";
import { describeStep } from "./turning-points.ts";

export interface Verdict {
  readonly faults: readonly Fault[];
  readonly operations: number;
  readonly keys: number;
}

export interface JudgeOptions extends LinearizeOptions {
  /** "many": eventual searches went to servers that lag by different times, so they may go back. */
  readonly servers?: "one" | "many";
}

export function judge(history: readonly Operation[], options: JudgeOptions = {}): Verdict {
  const byKey = new Map<string, Operation[]>();
  for (const operation of history) {
    const operations = byKey.get(operation.key);
    if (operations === undefined) byKey.set(operation.key, [operation]);
    else operations.push(operation);
  }
  const faults = [...byKey.values()].flatMap((operations) => judgeKey(operations, options));
  return { faults, operations: history.length, keys: byKey.size };
}

export function judgeKey(operations: readonly Operation[], options: JudgeOptions = {}): Fault[] {
  const { key } = operations[0] ?? { key: "" };
  const { initial = null, promotions = [], servers = "one" } = options;
  const result = linearize(operations, options);
  // Searches may show what a promotion takes back, so their order is not checked around one.
  if (result.outcome === "linearizable")
    return promotions.length === 0 ? followersOf(operations, servers).flatMap((group) => checkFollowers(group)) : [];
  if (result.outcome === "undecided") {
    return [{ kind: "undecided", key, message: `Gave up on ${key} after ${result.steps} steps over ${operations.length} operations.` }];
  }
  const named = nameFault(operations, initial, promotions);
  if (named !== undefined) return [{ ...named, key }];
  const message =
    `No order of the operations on ${key} explains all answers; ${result.placed} of ${operations.length} can be placed, then the key holds ` +
    `${stateText(result.state)}, and this cannot be: ${describeStep(result.blocked)}`;
  return [{ kind: "not linearizable", key, message }];
}

/** The operations once for each follower, which sees the others' writes, but not their searches. */
function followersOf(operations: readonly Operation[], servers: "one" | "many"): Operation[][] {
  const followerOf = ({ action }: Operation): number | "server" | undefined =>
    action.do === "follow" ? (action.replica ?? "server") : undefined;
  const followers = new Set(operations.map(followerOf).filter((follower) => follower !== undefined));
  if (servers === "many") followers.delete("server");
  return [...followers].map((follower) => operations.filter((operation) => [undefined, follower].includes(followerOf(operation))));
}

interface Evidence {
  readonly operations: readonly Operation[];
  /** What happened while the state was to be lost accuses nobody, but may be an excuse. */
  readonly certain: readonly Operation[];
  /** By the value that they wrote. */
  readonly writers: ReadonlyMap<number, Operation>;
  readonly initial: State;
  readonly promotions: readonly Promotion[];
}

/**
 * The simple faults, each shown by a read and one or two other operations. Only used when no order exists, to
 * name the fault.
 */
function nameFault(operations: readonly Operation[], initial: State, promotions: readonly Promotion[]): Omit<Fault, "key"> | undefined {
  const certain = operations.filter(({ invokedMs, returnedMs }) =>
    promotions.every(({ leftUntilMs, reachedMs }) => returnedMs < leftUntilMs || invokedMs > reachedMs),
  );
  const writers = new Map<number, Operation>();
  // Values of a counter are not written by one operation alone.
  const counts = operations.some(({ action }) => action.do === "add");
  if (!counts) for (const operation of operations) if ("value" in operation.action) writers.set(operation.action.value, operation);
  const evidence = { operations, certain, writers, initial, promotions };
  for (const read of certain.filter(({ action }) => isRead(action)).sort((a, b) => a.invokedMs - b.invokedMs)) {
    const fault = nameReturn(read, evidence) ?? (counts && sawOf(read.action) !== null ? undefined : nameReadFault(read, evidence));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** A write that a promotion has lost, seen afterwards. */
function nameReturn(read: Operation, { writers, promotions }: Evidence): Omit<Fault, "key"> | undefined {
  const saw = sawOf(read.action);
  const writer = saw === null ? undefined : writers.get(saw.value);
  if (writer === undefined) return undefined;
  const isLost = promotions.some(
    ({ lostFromMs, cutOffMs, reachedMs, wholeMs }) =>
      writer.invokedMs > lostFromMs && writer.returnedMs < cutOffMs && read.invokedMs > (read.action.do === "follow" ? wholeMs : reachedMs),
  );
  if (!isLost) return undefined;
  const message = `A read shows a write that was lost with the former primary: ${[writer, read].map(describeOperation).join("; ")}`;
  return { kind: "resurrected", message };
}

function nameReadFault(read: Operation, { operations, certain, writers, initial }: Evidence): Omit<Fault, "key"> | undefined {
  const saw = sawOf(read.action);
  const askedMs = read.action.do === "follow" ? read.invokedMs - read.action.lagLimitMs : read.invokedMs;
  const tell = (kind: FaultKind, sentence: string, ...others: Operation[]): Omit<Fault, "key"> => ({
    kind,
    message: `${sentence}: ${[...others, read].map(describeOperation).join("; ")}`,
  });
  if (saw === null) {
    const lost = certain.find((write) => hasMade(write.action) && write.returnedMs < askedMs && !deletedSince(write, read, operations));
    return lost && tell("lost", "A write that was acknowledged before the read began is not there, and no delete explains it", lost);
  }
  const writer = writers.get(saw.value);
  if (writer === undefined) {
    return initial?.value === saw.value ? undefined : tell("phantom", "A read shows a value that nobody wrote");
  }
  if (wasRefused(writer.action)) return tell("phantom", "A read shows the value of a write that was refused", writer);
  if (writer.invokedMs > read.returnedMs) return tell("phantom", "A read shows a value before it was written", writer);
  const deletion = certain.find(
    ({ action, invokedMs, returnedMs }) =>
      action.do === "delete" && action.answer?.found === true && invokedMs > writer.returnedMs && returnedMs < askedMs,
  );
  if (deletion !== undefined) return tell("resurrected", "A read shows a record that an acknowledged delete had removed", writer, deletion);
  const successor = certain.find((write) => hasMade(write.action) && write.invokedMs > writer.returnedMs && write.returnedMs < askedMs);
  if (successor !== undefined)
    return tell("stale", "A read shows a value that was replaced, with an acknowledgement, before the read began", writer, successor);
  const earlier = certain.find((other) => {
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

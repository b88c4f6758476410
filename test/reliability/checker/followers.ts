/**
 * A search may lag behind, but it never shows an older state than a search that had ended before it.
 *
 * This is judged without a linearization, since there may be several. A pair of searches is a fault only if
 * time, or versions within one life of the record, prove that every write that can explain the later search
 * came before every write that can explain the earlier one. (linearizability.ts checks that each search by
 * itself shows a state within its limit.)
 */
import { type Action, describeOperation, type Fault, type Operation } from "./history.ts";
import { hasMade } from "./record-model.ts";

interface Search {
  readonly operation: Operation;
  /** The write whose value it shows; undefined if it shows no record. */
  readonly write: Operation | undefined;
  /**
   * Over all writes that can explain what it shows: when the first of them was sent, and when the last one
   * ended.
   */
  readonly earliestMs: number;
  readonly latestMs: number;
}

/**
 * @param operations  all operations on one key that is written only by `put`, `create`, `update` and
 *   `delete`.
 */
export function checkFollowers(operations: readonly Operation[]): Fault[] {
  const writers = new Map<number, Operation>();
  for (const operation of operations) if ("value" in operation.action) writers.set(operation.action.value, operation);
  const deletes = operations.filter(({ action }) => action.do === "delete" && action.answer?.found !== false);
  const makers = operations.filter(({ action }) => hasMade(action));
  const searches = operations.flatMap((operation) => {
    const { action } = operation;
    return action.do === "follow" ? [explain(operation, action, writers, deletes, makers)] : [];
  });
  const byEnd = [...searches].sort((a, b) => a.operation.returnedMs - b.operation.returnedMs);
  const faults: Fault[] = [];
  const ended: Search[] = [];
  const shown = new Set<Operation>();
  let furthest: Search | undefined;
  let next = 0;
  for (const search of searches.sort((a, b) => a.operation.invokedMs - b.operation.invokedMs)) {
    for (let other = byEnd[next]; other !== undefined && other.operation.returnedMs < search.operation.invokedMs; other = byEnd[++next]) {
      if (furthest === undefined || other.earliestMs > furthest.earliestMs) furthest = other;
      if (other.write === undefined || shown.has(other.write)) continue;
      shown.add(other.write);
      ended.push(other);
    }
    const isBehind = furthest !== undefined && search.latestMs < furthest.earliestMs;
    const ahead = isBehind ? furthest : ended.find((other) => isLaterVersion(other.write, search.write, deletes));
    if (ahead === undefined) continue;
    const pair = [ahead, search].map(({ operation }) => describeOperation(operation)).join("; ");
    const message = `A search shows an older state than one that had ended before it began: ${pair}`;
    faults.push({ kind: "non-monotonic", key: search.operation.key, message });
  }
  return faults;
}

function explain(
  operation: Operation,
  action: Extract<Action, { do: "follow" }>,
  writers: ReadonlyMap<number, Operation>,
  deletes: readonly Operation[],
  makers: readonly Operation[],
): Search {
  const write = action.saw === null ? undefined : writers.get(action.saw.value);
  if (write !== undefined) return { operation, write, earliestMs: write.invokedMs, latestMs: write.returnedMs };
  const askedMs = operation.invokedMs - action.lagLimitMs;
  const isOver = (sinceMs: number): boolean => makers.some((maker) => maker.invokedMs > sinceMs && maker.returnedMs < askedMs);
  const sources = deletes.filter(({ invokedMs, returnedMs }) => invokedMs <= operation.returnedMs && !isOver(returnedMs));
  const neverMade = !isOver(Number.NEGATIVE_INFINITY);
  return {
    operation,
    write: undefined,
    earliestMs: neverMade ? Number.NEGATIVE_INFINITY : Math.min(...sources.map(({ invokedMs }) => invokedMs)),
    latestMs: Math.max(...sources.map(({ returnedMs }) => returnedMs), Number.NEGATIVE_INFINITY),
  };
}

/** Versions give the order of writes as long as nobody deletes the record. */
function isLaterVersion(later: Operation | undefined, earlier: Operation | undefined, deletes: readonly Operation[]): boolean {
  if (later === undefined || earlier === undefined) return false;
  const [laterVersion, earlierVersion] = [versionOf(later.action), versionOf(earlier.action)];
  if (laterVersion === undefined || earlierVersion === undefined || laterVersion <= earlierVersion) return false;
  const fromMs = Math.min(earlier.invokedMs, later.invokedMs);
  const toMs = Math.max(earlier.returnedMs, later.returnedMs);
  return deletes.every(({ invokedMs, returnedMs }) => returnedMs < fromMs || invokedMs > toMs);
}

function versionOf(action: Action): number | undefined {
  return action.do === "put" || action.do === "update" ? action.answer?.version : undefined;
}

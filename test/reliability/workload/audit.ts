/**
 * Compares all records with what is known of them, and the search store with the records. For a server that
 * nobody else uses.
 */
import type { Fault, FaultKind, Seen } from "../checker/history.ts";
import type { RequestContext } from "./requests.ts";
import { BRANCH, ITEMS, memberIds, valueOfScore, vectorOf } from "./tables.ts";

const PAGE = 1_000;

/** @returns the items as they are; undefined: they could not be read. */
export async function audit(context: RequestContext): Promise<ReadonlyMap<string, Seen> | undefined> {
  const items = await readTable(context, "items");
  const extras = await readTable(context, "extras");
  const counters = await readTable(context, "counters");
  if (items === undefined || extras === undefined || counters === undefined) return undefined;
  const indexed = await readIndex(context, [...items.keys()].sort());
  if (indexed === undefined) return undefined;

  const { retired } = context.recorder;
  const faults: Fault[] = [];
  const compare = (key: string, where: string, expected: Seen | null, found: Seen | undefined): void => {
    if (expected?.value === found?.value && expected?.version === found?.version) return;
    const kind: FaultKind = expected === null ? "resurrected" : found === undefined ? "lost" : "stale";
    const message =
      `An audit finds ${JSON.stringify(found ?? null)} in ${where} where ${JSON.stringify(expected)} was left: ` +
      context.recorder.explain(key, found?.value);
    faults.push({ kind, key, message });
  };
  for (const [key, state] of retired) {
    if (key.startsWith("c")) compare(key, "counters", state, counters.get(key));
    else if (key.startsWith("r")) compare(key, "items", state, items.get(key));
    else {
      for (const id of memberIds(key)) compare(key, `items (${id})`, state, items.get(id));
      compare(key, "extras", state, extras.get(key));
    }
  }
  for (const id of [...items.keys(), ...extras.keys(), ...counters.keys()]) {
    const key = id.split(".")[0]!;
    if (!context.recorder.wasUsed(key))
      faults.push({ kind: "phantom", key, message: `An audit finds ${id}, which nobody can have written` });
  }
  for (const id of new Set([...items.keys(), ...indexed.keys()])) {
    const [record, vector] = [items.get(id), indexed.get(id)];
    if (record?.value === vector) continue;
    const kind: FaultKind = record === undefined ? "resurrected" : vector === undefined ? "lost" : "stale";
    faults.push({ kind, key: id, message: `The search store shows ${vector} for ${id}, the records ${JSON.stringify(record ?? null)}` });
  }
  context.recorder.faults.push(...faults);
  context.recorder.recordsAudited += items.size + extras.size + counters.size + indexed.size;
  return items;
}

async function readTable(context: RequestContext, table: string): Promise<Map<string, Seen> | undefined> {
  const rows = new Map<string, Seen>();
  const statement = `SELECT "id", "val", "xata.version" AS version FROM "${table}" WHERE "id" > $1 ORDER BY "id" LIMIT ${PAGE}`;
  for (let after = ""; ; ) {
    const reply = await context.send("POST", `${BRANCH}/sql`, { statement, params: [after] });
    if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
    for (const { id, val, version } of reply.body.records) rows.set(id, { value: Number(val), version: Number(version) });
    if (reply.body.records.length < PAGE) return rows;
    after = reply.body.records.at(-1).id;
  }
}

/**
 * The value that the index holds for each record, range after range of ids, as an offset may not be larger than
 * 10,000. The ranges cover all ids, so those that are in no record are found too.
 *
 * @param ids  of all records, sorted.
 */
async function readIndex(context: RequestContext, ids: readonly string[]): Promise<Map<string, number> | undefined> {
  const values = new Map<string, number>();
  const ends = ids.filter((_, i) => i % PAGE === PAGE - 1);
  for (const [i, after] of ["", ...ends].entries()) {
    const filter = { id: { $gt: after, ...(i < ends.length && { $le: ends[i] }) } };
    for (let offset = 0; ; offset += PAGE) {
      const query = { column: "embedding", queryVector: vectorOf(0), similarityFunction: "l2", size: PAGE, offset, filter };
      const reply = await context.send("POST", `${ITEMS}/vectorSearch`, { ...query, consistency: "strong" });
      if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
      for (const { id, score } of reply.body.results) values.set(id, valueOfScore(score));
      if (reply.body.results.length < PAGE) break;
    }
  }
  return values;
}

/**
 * Requests on a group: records of two tables that are only written together, by transactions and by SQL
 * statements with several parts.
 */
import { agree } from "../checker/group.ts";
import type { Action, Seen } from "../checker/history.ts";
import type { RequestContext } from "./requests.ts";
import { BRANCH, ITEMS, itemOf, memberIds, membersFound, searchBody, vectorOf } from "./tables.ts";

type Perform = (context: RequestContext, group: string) => Promise<Action | undefined>;

interface RecordShape {
  val?: number;
  xata?: { version: number };
}

const seen = ({ val, xata }: RecordShape): Seen | null =>
  val === undefined || xata === undefined ? null : { value: val, version: xata.version };

/**
 * The operations of a transaction on all records of the group, always in the same order, so that no two
 * transactions deadlock.
 */
const onEach = <Result>(group: string, make: (table: string, id: string) => Result): Result[] => [
  ...memberIds(group).map((id) => make("items", id)),
  make("extras", group),
];

const fieldsOf = (table: string, group: string, value: number): object =>
  table === "items" ? itemOf(group, value) : { grp: group, val: value };

/**
 * The one state that all members show. A group that shows two is recorded as torn, and counts as not read.
 */
function agreed(
  context: RequestContext,
  group: string,
  members: readonly (Seen | null)[],
  where: string,
): { saw: Seen | null } | undefined {
  const result = agree(group, members, where);
  if ("saw" in result) return result;
  context.recorder.faults.push(result.fault);
  return undefined;
}

const transaction = (context: RequestContext, operations: unknown[]) => context.send("POST", `${BRANCH}/transaction`, { operations });

const write: Perform = async (context, group) => {
  const value = context.recorder.freshValue();
  const operations = onEach(group, (table, id) => ({
    insert: { table, record: { id, ...fieldsOf(table, group, value) }, columns: ["val", "xata.version"] },
  }));
  const reply = await transaction(context, operations);
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "put", value } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  const written = agreed(
    context,
    group,
    reply.body.results.map((result: { columns: RecordShape }) => seen(result.columns)),
    "a writing transaction",
  );
  if (written !== undefined && written.saw?.value !== value)
    context.report(`transaction wrote ${value}, answered ${JSON.stringify(written)}`);
  return { do: "put", value, answer: { version: written?.saw?.version } };
};

const update: Perform = async (context, group) => {
  const value = context.recorder.freshValue();
  const operations = onEach(group, (table, id) => ({
    update: { table, id, fields: fieldsOf(table, group, value), columns: ["val", "xata.version"] },
  }));
  const reply = await transaction(context, operations);
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "update", value } : undefined;
  if (reply.status === 400 && /has no record with the id/.test(reply.body.errors?.[0]?.message)) {
    if (reply.body.errors[0].index !== 0) context.report(`half a group is there: ${JSON.stringify(reply.body)}`);
    return { do: "update", value, answer: { done: false } };
  }
  if (!context.expect(reply, 200)) return undefined;
  const written = agreed(
    context,
    group,
    reply.body.results.map((result: { columns: RecordShape }) => seen(result.columns)),
    "an updating transaction",
  );
  return { do: "update", value, answer: { done: true, version: written?.saw?.version } };
};

const remove: Perform = async (context, group) => {
  const reply = await transaction(
    context,
    onEach(group, (table, id) => ({ delete: { table, id } })),
  );
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "delete" } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  const rows = new Set(reply.body.results.map((result: { rows: number }) => result.rows));
  if (rows.size !== 1) context.report(`a transaction deleted half a group: ${JSON.stringify(reply.body)}`);
  return { do: "delete", answer: { found: rows.has(1) } };
};

/** Fails at one of its operations, in varying ways: nothing of it may ever be visible. */
const fail: Perform = async (context, group) => {
  const value = context.recorder.freshValue();
  const operations: object[] = onEach(group, (table, id) =>
    context.random.next() < 0.3 ? { delete: { table, id } } : { insert: { table, record: { id, ...fieldsOf(table, group, value) } } },
  );
  const faults = [
    { update: { table: "items", id: "nobody", fields: { val: value } } },
    { delete: { table: "items", id: "nobody", failIfMissing: true } },
    { insert: { table: "items", record: { id: `${group}.x`, note: null } } },
    { insert: { table: "items", record: { id: `${group}.x`, embedding: [1, 2, 3] } } },
    { insert: { table: "items", record: { id: `${group}.x`, val: value }, ifVersion: 7 } },
    { insert: { table: "nowhere", record: { id: `${group}.x` } } },
  ];
  operations.splice(context.random.below(operations.length + 1), 0, context.random.of(faults));
  const reply = await transaction(context, operations);
  if (reply.kind === "answered" && reply.status !== 404) context.expect(reply, 400);
  return undefined;
};

const sqlUpdate: Perform = async (context, group) => {
  const value = context.recorder.freshValue();
  const statement =
    'WITH i AS (UPDATE "items" SET "val" = $1, "embedding" = $2 WHERE "grp" = $3 RETURNING "val", "xata.version" AS version), ' +
    'e AS (UPDATE "extras" SET "val" = $1 WHERE "grp" = $3 RETURNING "val", "xata.version" AS version) ' +
    "SELECT * FROM i UNION ALL SELECT * FROM e";
  const reply = await context.send("POST", `${BRANCH}/sql`, { statement, params: [value, vectorOf(value), group] });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "update", value } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  const written = agreed(context, group, sqlMembers(reply.body.records, group), "an UPDATE of two tables");
  if (written === undefined) return undefined;
  return { do: "update", value, answer: { done: written.saw !== null, version: written.saw?.version } };
};

const sqlDelete: Perform = async (context, group) => {
  const statement =
    'WITH e AS (DELETE FROM "extras" WHERE "grp" = $1 RETURNING "id") DELETE FROM "items" WHERE "grp" = $1 RETURNING "id", (SELECT count(*) FROM e) AS extras';
  const reply = await context.send("POST", `${BRANCH}/sql`, { statement, params: [group] });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "delete" } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  const { records } = reply.body;
  if (records.length !== 0 && (records.length !== memberIds(group).length || Number(records[0].extras) !== 1))
    context.report(`a DELETE of two tables found half a group: ${JSON.stringify(reply.body)}`);
  return { do: "delete", answer: { found: records.length > 0 } };
};

function sqlMembers(records: { val: number; version: number }[], group: string): (Seen | null)[] {
  const members: (Seen | null)[] = records.map(({ val, version }) => ({ value: Number(val), version: Number(version) }));
  while (members.length < memberIds(group).length + 1) members.push(null);
  return members;
}

export const readGroupBySql: Perform = async (context, group) => {
  const statement =
    'SELECT "val", "xata.version" AS version FROM "items" WHERE "grp" = $1 UNION ALL SELECT "val", "xata.version" AS version FROM "extras" WHERE "grp" = $1';
  const reply = await context.send("POST", `${BRANCH}/sql`, { statement, params: [group] });
  if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
  const read = agreed(context, group, sqlMembers(reply.body.records, group), "a SELECT of two tables");
  return read && { do: "read", ...read };
};

const readByTransaction: Perform = async (context, group) => {
  const operations = onEach(group, (table, id) => ({ get: { table, id, columns: ["val", "xata.version"] } }));
  const reply = await transaction(context, operations);
  if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
  const read = agreed(
    context,
    group,
    reply.body.results.map((result: { columns: RecordShape }) => seen(result.columns)),
    "a reading transaction",
  );
  return read && { do: "read", ...read };
};

const readByQuery: Perform = async (context, group) => {
  const reply = await context.send("POST", `${ITEMS}/query`, { filter: { grp: group }, columns: ["val", "xata.version"] });
  if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
  const members: (Seen | null)[] = reply.body.records.map(seen);
  while (members.length < memberIds(group).length) members.push(null);
  const read = agreed(context, group, members, "a query");
  return read && { do: "read", ...read };
};

const readOne: Perform = async (context, group) => {
  const reply = await context.send("GET", `${ITEMS}/data/${context.random.of(memberIds(group))}`);
  if (reply.kind !== "answered") return undefined;
  if (reply.status === 404) return { do: "read", saw: null };
  if (!context.expect(reply, 200)) return undefined;
  return { do: "read", saw: seen(reply.body) };
};

export const searchGroup =
  (consistency: "strong" | "eventual"): Perform =>
  async (context, group) => {
    const reply = await context.send("POST", `${ITEMS}/vectorSearch`, searchBody(group, consistency));
    if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
    const members = membersFound(reply.body, memberIds(group));
    if (consistency === "eventual" && context.mayTear && "fault" in agree(group, members, "")) return undefined;
    const read = agreed(context, group, members, `a search (${consistency})`);
    if (read === undefined) return undefined;
    return consistency === "strong" ? { do: "read", ...read } : { do: "follow", lagLimitMs: context.lagLimitMs, ...read };
  };

/** What clients do to groups, and how often. */
export const GROUP_REQUESTS: readonly (readonly [weight: number, perform: Perform])[] = [
  [14, write],
  [10, update],
  [6, remove],
  [8, fail],
  [8, sqlUpdate],
  [4, sqlDelete],
  [8, readGroupBySql],
  [8, readByTransaction],
  [8, readByQuery],
  [6, readOne],
  [14, searchGroup("eventual")],
  [6, searchGroup("strong")],
];

/** Requests on single records, and on counters that many clients increment. */
import type { Action, Seen } from "../checker/history.ts";
import type { RequestContext } from "./requests.ts";
import { BRANCH, ITEMS, itemOf, membersFound, searchBody, vectorOf } from "./tables.ts";

type Perform = (context: RequestContext, id: string) => Promise<Action | undefined>;

interface RecordShape {
  val: number;
  xata: { version: number };
}

const seen = ({ val, xata }: RecordShape): Seen => ({ value: val, version: xata.version });
const pathOf = (id: string): string => `${ITEMS}/data/${id}`;

const putting =
  (method: "PUT" | "POST"): Perform =>
  async (context, id) => {
    const value = context.recorder.freshValue();
    const reply = await context.send(method, pathOf(id), itemOf(id, value));
    if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "put", value } : undefined;
    if (!context.expect(reply, 200, 201)) return undefined;
    const { version } = reply.body.xata;
    if ((reply.status === 201) !== (version === 0)) context.report(`${method} answers ${reply.status} with version ${version}`);
    return { do: "put", value, answer: { version } };
  };

const create: Perform = async (context, id) => {
  const value = context.recorder.freshValue();
  const reply = await context.send("PUT", `${pathOf(id)}?createOnly=true`, itemOf(id, value));
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "create", value } : undefined;
  if (!context.expect(reply, 201, 422)) return undefined;
  return { do: "create", value, answer: { done: reply.status === 201 } };
};

const bulkCreate: Perform = async (context, id) => {
  const value = context.recorder.freshValue();
  const reply = await context.send("POST", `${ITEMS}/bulk`, { records: [{ id, ...itemOf(id, value) }] });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "create", value } : undefined;
  if (!context.expect(reply, 200, 400)) return undefined;
  return { do: "create", value, answer: { done: reply.status === 200 } };
};

const updating =
  (guarded: boolean): Perform =>
  async (context, id) => {
    const value = context.recorder.freshValue();
    const ifVersion = guarded ? context.random.below(4) : undefined;
    const reply = await context.send("PATCH", `${pathOf(id)}${guarded ? `?ifVersion=${ifVersion}` : ""}`, itemOf(id, value));
    if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "update", value, ifVersion } : undefined;
    if (!(guarded ? context.expect(reply, 200, 404, 422) : context.expect(reply, 200, 404))) return undefined;
    const done = reply.status === 200;
    return { do: "update", value, ifVersion, answer: { done, version: done ? reply.body.xata.version : undefined } };
  };

const remove: Perform = async (context, id) => {
  const reply = await context.send("DELETE", pathOf(id));
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "delete" } : undefined;
  if (!context.expect(reply, 204, 404)) return undefined;
  return { do: "delete", answer: { found: reply.status === 204 } };
};

const sqlUpdate: Perform = async (context, id) => {
  const value = context.recorder.freshValue();
  const statement = 'UPDATE "items" SET "val" = $1, "embedding" = $2 WHERE "id" = $3 RETURNING "xata.version" AS version';
  const reply = await context.send("POST", `${BRANCH}/sql`, { statement, params: [value, vectorOf(value), id] });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "update", value } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  const done = reply.body.rowCount === 1;
  return { do: "update", value, answer: { done, version: done ? Number(reply.body.records[0].version) : undefined } };
};

const sqlDelete: Perform = async (context, id) => {
  const reply = await context.send("POST", `${BRANCH}/sql`, {
    statement: 'DELETE FROM "items" WHERE "id" IN ($1, $2)',
    params: [id, "nobody"],
  });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "delete" } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  return { do: "delete", answer: { found: reply.body.rowCount === 1 } };
};

const read: Perform = async (context, id) => {
  const reply = await context.send("GET", pathOf(id));
  if (reply.kind !== "answered" || !context.expect(reply, 200, 404)) return undefined;
  return { do: "read", saw: reply.status === 404 ? null : seen(reply.body) };
};

const searching =
  (consistency: "strong" | "eventual"): Perform =>
  async (context, id) => {
    const reply = await context.send("POST", `${ITEMS}/vectorSearch`, searchBody(id, consistency));
    if (reply.kind !== "answered" || !context.expect(reply, 200)) return undefined;
    const saw = membersFound(reply.body, [id])[0]!;
    return consistency === "strong" ? { do: "read", saw } : { do: "follow", lagLimitMs: context.lagLimitMs, saw };
  };

export const readRecord = read;
export const searchRecord = searching("strong");

export const RECORD_REQUESTS: readonly (readonly [weight: number, perform: Perform])[] = [
  [10, putting("PUT")],
  [6, putting("POST")],
  [6, create],
  [4, bulkCreate],
  [10, updating(false)],
  [6, updating(true)],
  [12, remove],
  [6, sqlUpdate],
  [4, sqlDelete],
  [14, read],
  [14, searching("eventual")],
  [8, searching("strong")],
];

const counterPath = (id: string): string => `${BRANCH}/tables/counters/data/${id}`;

const increment: Perform = async (context, id) => {
  const amount = 1 + context.random.below(3);
  const reply = await context.send("PATCH", `${counterPath(id)}?columns=val`, { val: { $increment: amount } });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "add", amount } : undefined;
  if (!context.expect(reply, 200, 404)) return undefined;
  return { do: "add", amount, answer: reply.status === 404 ? { done: false } : { done: true, saw: seen(reply.body) } };
};

const sqlIncrement: Perform = async (context, id) => {
  const amount = 1 + context.random.below(3);
  const statement = 'UPDATE "counters" SET "val" = "val" + $1 WHERE "id" = $2 RETURNING "val", "xata.version" AS version';
  const reply = await context.send("POST", `${BRANCH}/sql`, { statement, params: [amount, id] });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "add", amount } : undefined;
  if (!context.expect(reply, 200)) return undefined;
  const row = reply.body.records[0];
  return {
    do: "add",
    amount,
    answer: row === undefined ? { done: false } : { done: true, saw: { value: Number(row.val), version: Number(row.version) } },
  };
};

const startCounter: Perform = async (context, id) => {
  const reply = await context.send("PUT", `${counterPath(id)}?createOnly=true`, { val: 0 });
  if (reply.kind !== "answered") return reply.kind === "unknown" ? { do: "create", value: 0 } : undefined;
  if (!context.expect(reply, 201, 422)) return undefined;
  return { do: "create", value: 0, answer: { done: reply.status === 201 } };
};

export const readCounter: Perform = async (context, id) => {
  const reply = await context.send("GET", counterPath(id));
  if (reply.kind !== "answered" || !context.expect(reply, 200, 404)) return undefined;
  return { do: "read", saw: reply.status === 404 ? null : seen(reply.body) };
};

export const COUNTER_REQUESTS: readonly (readonly [weight: number, perform: Perform])[] = [
  [40, increment],
  [20, sqlIncrement],
  [10, startCounter],
  [20, readCounter],
];

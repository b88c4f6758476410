/** POST …/search, of a table and of a branch: finds the records, orders them, and reads one page of them. */

import type { SystemNaming } from "../../../filter/system-columns.ts";
import { SLICE_UNITS, Slices } from "../../../threads/event-loop.ts";
import type { Connection } from "../../engine/engine.ts";
import type { AnswerOptions, BranchSearchRequest, JsonObject, TextSearchRequest, TextSearchResponse } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { getRecords } from "../read/get-records.ts";
import { recordIdOf, withMetadata } from "../values/record-metadata.ts";
import { highlight } from "./highlight.ts";
import { searchTable, type TextMatch } from "./match-table.ts";
import { readScope, readTables, readTextQuery, type SearchPlan, type TablePlan } from "./text-search-request.ts";
import { TermMatcher } from "./words.ts";

export async function searchTableRecords(
  connection: Connection,
  branch: BranchInfo,
  table: TableInfo,
  request: TextSearchRequest,
  options: AnswerOptions = {},
): Promise<TextSearchResponse> {
  const plan = readTextQuery(request);
  return search(connection, branch, plan, [readScope(branch, table, request, "")], options);
}

export async function searchBranchRecords(
  connection: Connection,
  branch: BranchInfo,
  request: BranchSearchRequest,
  options: AnswerOptions = {},
): Promise<TextSearchResponse> {
  const plan = readTextQuery(request);
  return search(connection, branch, plan, readTables(branch, request.tables), options);
}

interface Hit extends TextMatch {
  readonly tablePlan: TablePlan;
}

async function search(
  connection: Connection,
  branch: BranchInfo,
  plan: SearchPlan,
  tables: readonly TablePlan[],
  options: AnswerOptions,
): Promise<TextSearchResponse> {
  const slices = new Slices(SLICE_UNITS, connection.budget?.caller);
  const matcher = new TermMatcher(plan.terms ?? []);
  const hits: Hit[] = [];
  let totalCount = 0;
  for (const tablePlan of tables) {
    const { total, best } = await searchTable(connection, branch, tablePlan, plan.terms, plan.offset + plan.size, slices);
    totalCount += total;
    for (const match of best) hits.push({ ...match, tablePlan });
  }
  // Stable: equal scores stay in the order of the tables, and of ids within.
  hits.sort((a, b) => b.score - a.score);
  const page = hits.slice(plan.offset, plan.offset + plan.size);
  const records = new Map<Hit, JsonObject>();
  for (const tablePlan of new Set(page.map((hit) => hit.tablePlan))) {
    const own = page.filter((hit) => hit.tablePlan === tablePlan);
    const read = await getRecords(
      connection,
      branch,
      tablePlan.table,
      own.map((hit) => hit.id),
      options,
    );
    const byId = new Map(read.map((record) => [recordIdOf(record, branch.systemNaming), record]));
    for (const hit of own) {
      const record = byId.get(hit.id);
      // Deleted since then.
      if (record !== undefined) records.set(hit, await complete(record, hit, plan, branch.systemNaming, matcher, slices));
    }
  }
  return { totalCount, records: page.map((hit) => records.get(hit)).filter((record) => record !== undefined) };
}

async function complete(
  record: JsonObject,
  hit: Hit,
  plan: SearchPlan,
  naming: SystemNaming,
  matcher: TermMatcher,
  slices: Slices,
): Promise<JsonObject> {
  const highlight = plan.highlight && plan.terms !== undefined ? await highlights(record, hit.tablePlan, plan, matcher, slices) : {};
  const found = { table: hit.tablePlan.table.name, score: hit.score };
  return withMetadata(record, naming, Object.keys(highlight).length > 0 ? { ...found, highlight } : found);
}

async function highlights(
  record: JsonObject,
  tablePlan: TablePlan,
  plan: SearchPlan,
  matcher: TermMatcher,
  slices: Slices,
): Promise<JsonObject> {
  const marked: [string, string[]][] = [];
  for (const { column } of tablePlan.targets) {
    let value: unknown = record;
    for (const step of column.name.split(".")) {
      value = typeof value === "object" && value !== null && Object.hasOwn(value, step) ? (value as JsonObject)[step] : undefined;
    }
    const fragments: string[] = [];
    for (const text of Array.isArray(value) ? value : [value]) {
      if (typeof text === "string") fragments.push(...(await highlight(text, matcher, plan.encodeHtml, slices)));
    }
    if (fragments.length > 0) marked.push([column.name, fragments]);
  }
  return Object.fromEntries(marked);
}

/** POST …/search, of a table and of a branch: finds the records, orders them, and reads one page of them. */
import type { AnswerBudget } from "../../budget/memory-budget.ts";
import type { SystemNaming } from "../../filter/system-columns.ts";
import { highlight } from "../../full-text/highlight.ts";
import { loadStemmers } from "../../full-text/stemmers.ts";
import { TermMatcher } from "../../full-text/terms.ts";
import { requireTable } from "../../records/catalog/branch-rows.ts";
import { recordIdOf, withMetadata } from "../../records/data/values/record-metadata.ts";
import type { RecordStore } from "../../records/record-store.ts";
import type { AnswerOptions, JsonObject } from "../../records/requests.ts";
import type { BranchRef, ColumnInfo } from "../../records/schema.ts";
import { SLICE_UNITS, Slices } from "../../threads/event-loop.ts";
import type { SearchStore } from "../search-store.ts";
import type { ReadTables } from "./found-text.ts";
import type { TextExplanation } from "./search-texts.ts";
import { readableJson } from "./table-texts.ts";
import {
  type BranchSearchRequest,
  readScope,
  readTables,
  readTextQuery,
  searchedLanguage,
  type TablePlan,
  type TextPlan,
  type TextQuery,
  type TextSearchRequest,
} from "./text-request.ts";

export interface TextSearchResponse {
  records: JsonObject[];
  totalCount: number;
  /**
   * With `vector`: pages with the same position are of the same state of the records. Left out where other servers or
   * another database hold the vectors, and records changed while both halves were searched.
   */
  position?: string;
}

/** Where a search is run, and for whom. */
export interface TextSearchContext {
  readonly records: Pick<RecordStore, "getRecords" | "branch">;
  readonly search: Pick<SearchStore, "textSearch">;
  readonly ref: BranchRef;
  readonly signal?: AbortSignal;
  readonly budget?: AnswerBudget;
  readonly options?: AnswerOptions;
}

export function searchTable(context: TextSearchContext, table: string, request: TextSearchRequest): Promise<TextSearchResponse> {
  return search(context, request, (info) => [readScope(info, requireTable(info, table), request, "")]);
}

/** The same over several tables; NOT_FOUND for one that does not exist. */
export function searchBranch(context: TextSearchContext, request: BranchSearchRequest): Promise<TextSearchResponse> {
  return search(context, request, (info) => readTables(info, request.tables));
}

interface Hit {
  readonly id: string;
  readonly score: number;
  readonly tablePlan: TablePlan;
  readonly explanation: TextExplanation | undefined;
}

async function search(context: TextSearchContext, request: TextQuery, tables: ReadTables): Promise<TextSearchResponse> {
  const { records, ref, signal, budget, options = {} } = context;
  const plan = readTextQuery(request);
  const found = await context.search.textSearch(ref, plan, tables, { ...(signal && { signal }), ...(budget && { budget }) });
  const hits: Hit[] = [];
  let totalCount = 0;
  for (const { totalCount: count, ids, scores, explanations, plan: tablePlan } of found) {
    totalCount += count;
    ids.forEach((id, i) => {
      hits.push({ id, score: scores[i]!, tablePlan, explanation: explanations?.[i] });
    });
  }
  // Stable: equal scores stay in the order of the tables, and of ids within.
  hits.sort((a, b) => b.score - a.score);
  const page = hits.slice(plan.offset, plan.offset + plan.size);
  const position = found[0]?.plan.vector === undefined || found[0].position === undefined ? {} : { position: found[0].position };
  if (page.length === 0) return { totalCount, records: [], ...position };
  const slices = new Slices(SLICE_UNITS, budget?.caller);
  const matcherOf = await matchers(plan, new Set(page.map((hit) => hit.tablePlan)));
  const { systemNaming } = await records.branch(ref);
  const complete = new Map<Hit, JsonObject>();
  for (const tablePlan of new Set(page.map((hit) => hit.tablePlan))) {
    const own = page.filter((hit) => hit.tablePlan === tablePlan);
    const read = await records.getRecords(
      ref,
      tablePlan.table.name,
      own.map((hit) => hit.id),
      options,
    );
    const byId = new Map(read.map((record) => [recordIdOf(record, systemNaming), record]));
    for (const hit of own) {
      const record = byId.get(hit.id);
      // Deleted since then.
      if (record !== undefined) complete.set(hit, await withFound(record, hit, plan, systemNaming, matcherOf, slices));
    }
  }
  return { totalCount, records: page.map((hit) => complete.get(hit)).filter((record) => record !== undefined), ...position };
}

type MatcherOf = (column: ColumnInfo) => TermMatcher;

/** What marks the words of a column: one for each language. */
async function matchers(plan: TextPlan, tables: ReadonlySet<TablePlan>): Promise<MatcherOf> {
  const languages = new Set([...tables].flatMap(({ targets }) => targets.map(({ column }) => searchedLanguage(plan, column))));
  const stemmers = await loadStemmers(languages);
  const made = new Map([...languages].map((language) => [language, new TermMatcher(plan.terms ?? [], stemmers.get(language))]));
  return (column) => made.get(searchedLanguage(plan, column))!;
}

async function withFound(
  record: JsonObject,
  { tablePlan, score, explanation }: Hit,
  plan: TextPlan,
  naming: SystemNaming,
  matcherOf: MatcherOf,
  slices: Slices,
): Promise<JsonObject> {
  const marked = plan.highlight && plan.terms !== undefined ? await highlights(record, tablePlan, plan, matcherOf, slices) : {};
  return withMetadata(record, naming, {
    table: tablePlan.table.name,
    score,
    ...(Object.keys(marked).length > 0 && { highlight: marked }),
    ...(explanation !== undefined && { explain: explanation as unknown as JsonObject }),
  });
}

async function highlights(
  record: JsonObject,
  tablePlan: TablePlan,
  plan: TextPlan,
  matcherOf: MatcherOf,
  slices: Slices,
): Promise<JsonObject> {
  const marked: [string, string[]][] = [];
  for (const { column } of tablePlan.targets) {
    let value: unknown = record;
    for (const step of column.name.split(".")) {
      value = typeof value === "object" && value !== null && Object.hasOwn(value, step) ? (value as JsonObject)[step] : undefined;
    }
    if (column.type === "json" && value !== undefined && value !== null && typeof value !== "string")
      value = readableJson(JSON.stringify(value));
    const fragments: string[] = [];
    const matcher = matcherOf(column);
    for (const text of Array.isArray(value) ? value : [value]) {
      if (typeof text === "string") fragments.push(...(await highlight(text, matcher, plan.encodeHtml, slices)));
    }
    if (fragments.length > 0) marked.push([column.name, fragments]);
  }
  return Object.fromEntries(marked);
}

/** POST …/search, of a table and of a branch: finds the records, orders them, and reads one page of them. */
import type { SystemNaming } from "../../../filter/system-columns.ts";
import { SLICE_UNITS, Slices } from "../../../threads/event-loop.ts";
import type { Connection } from "../../engine/engine.ts";
import type { AnswerOptions, BranchSearchRequest, JsonObject, TextSearchRequest, TextSearchResponse } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { getRecords } from "../read/read-records.ts";
import { recordIdOf, withMetadata } from "../values/record-metadata.ts";
import { searchTable, type TextMatch } from "./match-table.ts";
import { readScope, readTables, readTextQuery, type SearchPlan, type TablePlan } from "./text-search-request.ts";
import { TermMatcher, type Word, wordsIn } from "./words.ts";

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

const WHOLE_LENGTH = 200;
const AROUND_LENGTH = 70;
const MAX_FRAGMENTS = 3;

/** Where in a text its words were found: the text, or parts of a long one, with `<em>` around them. Empty when nothing of it matches. A long text is read no further than its last fragment. */
export async function highlight(text: string, matcher: TermMatcher, encodeHtml: boolean, slices: Slices): Promise<string[]> {
  const encode = encodeHtml ? encodeEntities : (part: string): string => part;
  const isWhole = text.length <= WHOLE_LENGTH;
  const fragments: string[] = [];
  let open: { readonly end: number; text: string; at: number } | undefined;
  const close = (): void => {
    if (open !== undefined) fragments.push(open.text + encode(text.slice(open.at, open.end)));
    open = undefined;
  };
  const mark = (word: Word): void => {
    if (open !== undefined && word.end > open.end) close();
    if (fragments.length === MAX_FRAGMENTS) return;
    open ??= {
      end: isWhole ? text.length : wordBoundary(text, word.end + AROUND_LENGTH),
      text: "",
      at: isWhole ? 0 : wordBoundary(text, word.start - AROUND_LENGTH),
    };
    open.text += `${encode(text.slice(open.at, word.start))}<em>${encode(text.slice(word.start, word.end))}</em>`;
    open.at = word.end;
  };
  for (const word of wordsIn(text)) {
    const isFound = matcher.match(word).length > 0;
    if (slices.spend(matcher.lastCost)) await slices.rest();
    if (isFound) mark(word);
    if (fragments.length === MAX_FRAGMENTS) return fragments;
  }
  close();
  return fragments;
}

/** The next white space on, so that no word and no surrogate pair is cut. */
function wordBoundary(text: string, position: number): number {
  if (position <= 0) return 0;
  const space = text.slice(position).search(/\s/);
  return space === -1 ? text.length : position + space;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function encodeEntities(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

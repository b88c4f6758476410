/** All records of a table, in the order of their ids, as the server answers them. */
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { BranchRef } from "../records/schema.ts";
import { elementsOf, membersOf } from "../text/json-scan.ts";
import { type ApiClient, ApiError, tablePath } from "./api-client.ts";

const PAGE_SIZE = 500;

interface Page {
  readonly records: readonly string[];
  readonly cursor: string;
  readonly more: boolean;
}

/**
 * Page by page, so that no record is missed or duplicated; records written meanwhile may or may not be included.
 * Pages that are too large for one answer are requested again with fewer records.
 *
 * @returns of each record its JSON, in one line and with every digit: JavaScript's numbers would lose some of
 *   what `json` and `int` columns hold.
 */
export async function* tableRecords(client: ApiClient, ref: BranchRef, table: string): AsyncGenerator<readonly string[], void, undefined> {
  let size = PAGE_SIZE;
  for (let after: string | undefined; ; ) {
    const request =
      after === undefined ? { columns: ["*"], sort: { id: "asc" }, page: { size } } : { columns: ["*"], page: { size, after } };
    let page: Page;
    try {
      page = readPage(await client.requestText("POST", `${tablePath(ref, table)}/query`, request));
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 413) || size === 1) throw error;
      size = Math.ceil(size / 8);
      continue;
    }
    size = Math.min(2 * size, PAGE_SIZE);
    yield page.records;
    if (!page.more) return;
    after = page.cursor;
  }
}

function readPage(answer: string): Page {
  const members = new Map(membersOf(answer, 0));
  const [records, meta] = [members.get("records"), members.get("meta")];
  if (records === undefined || meta === undefined) throw new LodestoneError("UNAVAILABLE", "The server's answer is not a page of records.");
  const { page } = JSON.parse(answer.slice(meta.begin, meta.end)) as { page: { cursor: string; more: boolean } };
  return { records: Array.from(elementsOf(answer, records.begin), ({ begin, end }) => answer.slice(begin, end)), ...page };
}

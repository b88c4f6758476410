/** What a search for words finds, as the search store answers it. */
import type { BranchInfo } from "../../records/schema.ts";
import type { TextTableAnswer } from "./search-texts.ts";
import type { TablePlan } from "./text-request.ts";

export interface FoundText extends TextTableAnswer {
  readonly plan: TablePlan;
  /** Of the feed: answers of one position are of the same records. undefined: records changed between its two halves. */
  readonly position: string | undefined;
}

/** Checks what is asked of the tables against the schema, which another server may have changed a moment ago. */
export type ReadTables = (info: BranchInfo) => TablePlan[];

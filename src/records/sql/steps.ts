/**
 * Counts the work of resolving one statement's names, and ends it when it is too much.
 *
 * Most of it is linear in the statement. What is not, by its nature: a name is looked up in every relation in
 * scope, and `*` repeats the columns of what it stands for, once for each query around it. Statements that
 * multiply these are refused at a count, not at a time, so that a statement is valid or not whatever else the
 * machine does.
 */
import { Refusal } from "./statement-tree.ts";

/** Some tenths of a second. A hundred tables in one FROM, whose columns are named ten thousand times: a million. */
export const MAX_STEPS = 2_000_000;

export class Steps {
  #taken = 0;

  get taken(): number {
    return this.#taken;
  }

  /** @throws {Refusal} beyond MAX_STEPS. */
  spend(steps: number): void {
    this.#taken += steps;
    if (this.#taken > MAX_STEPS)
      throw new Refusal(
        "the statement names columns of too many tables and subqueries at once: split it, or list the columns instead of *",
      );
  }
}

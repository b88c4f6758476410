/**
 * The part of the first wall of SQL over HTTP that depends on the branch and its database: tables, columns, names of functions, and
 * parameters.
 */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { SYSTEM_COLUMNS, systemColumnName } from "../../filter/system-columns.ts";
import { physicalNameOf } from "../identifiers.ts";
import type { BranchInfo } from "../schema.ts";
import type { StatementAnalysis } from "./analyse.ts";
import type { CatalogNames } from "./catalog-names.ts";

export function vet(analysis: StatementAnalysis, branch: BranchInfo, paramCount: number, names: CatalogNames): void {
  const tables = new Set([...branch.tables.values()].map((table) => table.physicalName));
  for (const name of analysis.tables) {
    if (!tables.has(physicalNameOf(name))) {
      throw new LodestoneError("INVALID", `table "${name}" does not exist in branch "${branch.ref.database}:${branch.ref.branch}".`);
    }
    // pg_catalog is searched before the branch, and all its relations begin with pg_.
    if (name.startsWith("pg_"))
      throw new LodestoneError("INVALID", `table "${name}" cannot be used in SQL: names that begin with pg_ are PostgreSQL's own.`);
  }
  const system = new Set(SYSTEM_COLUMNS.map((column) => systemColumnName(column, branch.systemNaming)));
  const id = systemColumnName("id", branch.systemNaming);
  for (const { table, column, by } of analysis.writes) {
    if (system.has(column) && !(by === "INSERT" && column === id)) {
      throw new LodestoneError(
        "INVALID",
        `column "${column}" of table "${table}" is written by the service alone; leave it out of the ${by}.`,
      );
    }
  }
  const call = analysis.dottedNames.find((name) => names.refusedAfterADot.has(name));
  if (call !== undefined)
    throw new LodestoneError(
      "INVALID",
      `"${call}" after a dot may be a call, or a cast, of that name, which is not allowed: write a column of that name without its table.`,
    );
  vetParameters(analysis.parameters, paramCount);
  if (analysis.misplacedParameter !== undefined)
    throw new LodestoneError(
      "INVALID",
      `syntax error at $${analysis.misplacedParameter}: a parameter cannot stand directly behind a name.`,
    );
}

function vetParameters(used: readonly number[], given: number): void {
  const highest = used.at(-1) ?? 0;
  if (highest > given) {
    throw new LodestoneError("INVALID", `the statement uses $${highest}, but params has ${given} ${given === 1 ? "value" : "values"}.`);
  }
  if (used.length === given) return; // ascending, each once, none higher than `given`
  const gap = used.findIndex((number, index) => number !== index + 1);
  const unused = (gap < 0 ? used.length : gap) + 1;
  // Begins with the retired service's text, because clients compare it.
  throw new LodestoneError(
    "INVALID",
    `invalid SQL: unused parameters: used ${used.length} of ${given} parameters; there is no $${unused}.`,
  );
}

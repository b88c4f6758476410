/**
 * A column that a request names: a column of the table, behind links (`team.name`), inside json
 * (`config->rank`), or a system column (`xata.version`).
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import { objectColumns, resolveName } from "../../../filter/column-path.ts";
import { rootPlace } from "../../../filter/fault.ts";
import { quoteIdentifier, quoteLiteral } from "../../identifiers.ts";
import type { BranchInfo, ColumnInfo, ColumnType, TableInfo } from "../../schema.ts";
import { relation } from "./statement-parts.ts";

export interface ColumnReference {
  /** Links to follow from the record, from the record's table on. */
  readonly links: readonly ColumnInfo[];
  /** In the table at the end of the links. */
  readonly column: string;
  readonly physicalName: string;
  /** Of the column; with `json` steps, the value there is json. */
  readonly type: ColumnType;
  /** Of a link: the table that it points into. */
  readonly target: string | undefined;
  /** Steps into a json column; empty: the column itself. */
  readonly json: readonly string[];
  /** False only for values that every record has. */
  readonly nullable: boolean;
}

/** @throws {LodestoneError} INVALID when there is no such column. */
export function resolveColumn(branch: BranchInfo, table: TableInfo, name: string, place: string): ColumnReference {
  const resolved = resolveName(name, { table, links: [], prefix: "", text: "" }, branch.tables, rootPlace(place));
  if ("object" in resolved) {
    const example = quoted(objectColumns(resolved.object)[0]!.text);
    throw new LodestoneError("INVALID", `${place}: ${quoted(name)} is an object; name one of its columns, such as ${example}.`);
  }
  const { type, column: path } = resolved;
  const links = path.links.map((step) => branch.tables.get(step.table)!.columns.get(step.column)!);
  const own = branch.tables.get(path.table)!.columns.get(path.column);
  return {
    links,
    column: path.column,
    physicalName: own?.physicalName ?? path.column,
    type,
    target: type === "link" ? own?.link?.table : undefined,
    json: path.json,
    nullable: links.length > 0 || path.json.length > 0 || (own !== undefined && own.notNull !== true),
  };
}

/**
 * Its value for the record's row named `alias`. Links are scalar subselects by primary key, so no row is lost
 * where a link is null.
 */
export function columnSql(branch: BranchInfo, reference: ColumnReference, alias: string): string {
  const path = (from: string, links: ColumnReference["links"], level: number): string => {
    const [link, ...rest] = links;
    if (link === undefined) return valueSql(reference, `${from}.${quoteIdentifier(reference.physicalName)}`);
    const target = branch.tables.get(link.link!.table)!;
    const next = `s${level}`;
    return `(SELECT ${path(next, rest, level + 1)} FROM ${relation(branch, target)} ${next} WHERE ${next}."id" = ${from}.${quoteIdentifier(link.physicalName)})`;
  };
  return path(alias, reference.links, 1);
}

/**
 * In json, an absent value and a JSON null are null. Everything else is ordered as jsonb is: texts before
 * numbers before booleans.
 */
function valueSql(reference: ColumnReference, column: string): string {
  if (reference.json.length === 0) return column;
  return `nullif(${column} #> ARRAY[${reference.json.map(quoteLiteral).join(", ")}]::text[], 'null'::jsonb)`;
}

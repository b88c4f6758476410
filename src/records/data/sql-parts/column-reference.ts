/** A column that a request names: of the table, behind links (`team.name`), inside json (`config->rank`), or of the service (`xata.version`). */
import { LodestoneError } from "../../../errors.ts";
import { SYSTEM_COLUMN_TYPES, systemColumnNamed } from "../../../filter/system-columns.ts";
import { quoteIdentifier, quoteLiteral } from "../../identifiers.ts";
import type { BranchInfo, ColumnInfo, ColumnType, TableInfo } from "../../schema.ts";
import { jsonSteps } from "../values/json-column-text.ts";
import { columnsBelow, unknownColumn } from "../values/sent-record.ts";
import { quoted } from "../values/show-value.ts";
import { relation } from "./sql-names.ts";

export interface ColumnReference {
  /** Links to follow from the record, from the record's table on. */
  readonly links: readonly ColumnInfo[];
  /** In the table at the end of the links. */
  readonly column: string;
  readonly physicalName: string;
  /** Of the column; with `json` steps, what lies there is a json value. */
  readonly type: ColumnType;
  /** Of a link: the table that it points into. */
  readonly target: string | undefined;
  /** Steps into a json column; empty: the column itself. */
  readonly json: readonly string[];
  /** False only for what is there in every record. */
  readonly nullable: boolean;
}

const MAX_LINKS = 8;

/** @throws {LodestoneError} INVALID when there is no such column. */
export function resolveColumn(branch: BranchInfo, table: TableInfo, name: string, place: string): ColumnReference {
  const links: ColumnInfo[] = [];
  const arrow = name.indexOf("->");
  const json = arrow === -1 ? [] : jsonSteps(name.slice(arrow + 2), place);
  let at = table;
  let rest = arrow === -1 ? name : name.slice(0, arrow);
  for (;;) {
    const own = at.columns.get(rest);
    if (own !== undefined) {
      if (json.length > 0) {
        if (own.type !== "json") {
          throw new LodestoneError(
            "INVALID",
            `${place}: column ${quoted(rest)} is of type ${own.type}; only json columns have paths with "->".`,
          );
        }
      }
      const nullable = links.length > 0 || json.length > 0 || own.notNull !== true;
      return { links, column: rest, physicalName: own.physicalName, type: own.type, target: own.link?.table, json, nullable };
    }
    const system = systemColumnNamed(rest);
    if (system !== undefined && json.length === 0) {
      const type = SYSTEM_COLUMN_TYPES[system];
      return { links, column: system, physicalName: system, type, target: undefined, json, nullable: links.length > 0 };
    }
    const step = followLink(branch, at, rest);
    if (step === undefined) {
      if (columnsBelow(at, rest).length > 0) {
        throw new LodestoneError(
          "INVALID",
          `${place}: ${quoted(rest)} is an object; name one of its columns, such as ${quoted(columnsBelow(at, rest)[0]!.name)}.`,
        );
      }
      throw unknownColumn(at, rest, place);
    }
    links.push(step.column);
    if (links.length > MAX_LINKS) throw new LodestoneError("INVALID", `${place} follows more than ${MAX_LINKS} links in a row.`);
    at = step.table;
    rest = step.rest;
  }
}

function followLink(
  branch: BranchInfo,
  table: TableInfo,
  name: string,
): { column: ColumnInfo; table: TableInfo; rest: string } | undefined {
  for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const column = table.columns.get(name.slice(0, dot));
    const target = column?.type === "link" ? branch.tables.get(column.link?.table ?? "") : undefined;
    if (column !== undefined && target !== undefined) return { column, table: target, rest: name.slice(dot + 1) };
  }
  return undefined;
}

/** Its value for the record's row called `alias`. Links are scalar subselects by primary key, so no row is lost where a link is null. */
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

/** In json, an absent value and a JSON null are null; the rest is ordered as jsonb is: texts before numbers before booleans. */
function valueSql(reference: ColumnReference, column: string): string {
  if (reference.json.length === 0) return column;
  return `nullif(${column} #> ARRAY[${reference.json.map(quoteLiteral).join(", ")}]::text[], 'null'::jsonb)`;
}

/**
 * The name that PostgreSQL gives a result column for which the statement gives none: FigureColname in its
 * parser (parse_target.c).
 */
import { strings, type Tree, unwrap } from "./statement-tree.ts";

const NO_NAME = "?column?";

const FIXED: ReadonlyMap<string, string> = new Map([
  ["GroupingFunc", "grouping"],
  ["A_ArrayExpr", "array"],
  ["RowExpr", "row"],
  ["CoalesceExpr", "coalesce"],
  ["JsonParseExpr", "json"],
  ["JsonScalarExpr", "json_scalar"],
  ["JsonSerializeExpr", "json_serialize"],
  ["JsonObjectConstructor", "json_object"],
  ["JsonArrayConstructor", "json_array"],
  ["JsonArrayQueryConstructor", "json_array"],
  ["JsonObjectAgg", "json_objectagg"],
  ["JsonArrayAgg", "json_arrayagg"],
]);

const JSON_FUNCTIONS: ReadonlyMap<string, string> = new Map([
  ["JSON_EXISTS_OP", "json_exists"],
  ["JSON_QUERY_OP", "json_query"],
  ["JSON_VALUE_OP", "json_value"],
]);

/** @param subqueryName  if the expression is a subquery, the name of its first column. */
export function columnName(expression: unknown, subqueryName?: string): string {
  return figure(expression, subqueryName).name ?? NO_NAME;
}

/** A strong name is kept when a cast is put around the expression. */
interface Figured {
  readonly name?: string | undefined;
  readonly isStrong?: boolean;
}

const strong = (name: string | undefined): Figured => (name === undefined ? {} : { name, isStrong: true });

function figure(wrapped: unknown, subqueryName: string | undefined): Figured {
  if (wrapped === undefined || Object.keys(wrapped as Tree).length === 0) return {};
  const [type, tree] = unwrap(wrapped);
  switch (type) {
    case "ColumnRef":
      return strong(strings(tree.fields).at(-1));
    case "A_Indirection": {
      const last = strings(tree.indirection).at(-1);
      return last === undefined ? figure(tree.arg, subqueryName) : strong(last);
    }
    case "FuncCall":
      return strong(strings(tree.funcname).at(-1));
    case "A_Expr":
      return tree.kind === "AEXPR_NULLIF" ? strong("nullif") : {};
    case "TypeCast": {
      const inner = figure(tree.arg, subqueryName);
      return inner.isStrong === true ? inner : { name: strings((tree.typeName as Tree).names).at(-1) };
    }
    case "CollateClause":
      return figure(tree.arg, subqueryName);
    case "CaseExpr": {
      const inner = figure(tree.defresult, subqueryName);
      return inner.isStrong === true ? inner : { name: "case" };
    }
    case "SubLink":
      if (tree.subLinkType === "EXISTS_SUBLINK") return strong("exists");
      if (tree.subLinkType === "ARRAY_SUBLINK") return strong("array");
      return tree.subLinkType === "EXPR_SUBLINK" ? strong(subqueryName) : {};
    case "MinMaxExpr":
      return strong(tree.op === "IS_LEAST" ? "least" : "greatest");
    case "SQLValueFunction":
      return strong(
        String(tree.op)
          .replace(/^SVFOP_|_N$/g, "")
          .toLowerCase(),
      );
    case "JsonFuncExpr":
      return strong(JSON_FUNCTIONS.get(String(tree.op)));
    default:
      return strong(FIXED.get(type));
  }
}

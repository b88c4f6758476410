/**
 * The part of PostgreSQL's grammar that users may write: an allow-list of parse-tree nodes and, for each, of
 * fields. Anything not listed is refused, so a node or field that a later grammar adds is refused until
 * somebody has considered it.
 *
 * "value": a scalar that needs no check. "nodes": one node, or a list of nodes, each wrapped as {Type:
 * {...}}. "=Type": a node that the grammar leaves unwrapped because the field has only one type.
 */
export type FieldRule = "value" | "nodes" | `=${string}`;

const value = "value" as const;
const nodes = "nodes" as const;

const ALWAYS = { location: value } as const;

const rules: Record<string, Record<string, FieldRule>> = {
  SelectStmt: {
    distinctClause: nodes,
    targetList: nodes,
    fromClause: nodes,
    whereClause: nodes,
    groupClause: nodes,
    groupDistinct: value,
    havingClause: nodes,
    windowClause: nodes,
    valuesLists: nodes,
    sortClause: nodes,
    limitOffset: nodes,
    limitCount: nodes,
    limitOption: value,
    withClause: "=WithClause",
    op: value,
    all: value,
    larg: "=SelectStmt",
    rarg: "=SelectStmt",
  },
  InsertStmt: {
    relation: "=RangeVar",
    cols: nodes,
    selectStmt: nodes,
    onConflictClause: "=OnConflictClause",
    returningClause: "=ReturningClause",
    withClause: "=WithClause",
    override: value,
  },
  UpdateStmt: {
    relation: "=RangeVar",
    targetList: nodes,
    whereClause: nodes,
    fromClause: nodes,
    returningClause: "=ReturningClause",
    withClause: "=WithClause",
  },
  DeleteStmt: {
    relation: "=RangeVar",
    usingClause: nodes,
    whereClause: nodes,
    returningClause: "=ReturningClause",
    withClause: "=WithClause",
  },
  ReturningClause: { options: nodes, exprs: nodes },
  ReturningOption: { option: value, value: value },
  OnConflictClause: { action: value, infer: "=InferClause", targetList: nodes, whereClause: nodes },
  InferClause: { indexElems: nodes, whereClause: nodes },
  IndexElem: { name: value, expr: nodes, ordering: value, nulls_ordering: value },
  WithClause: { ctes: nodes, recursive: value },
  CommonTableExpr: {
    ctename: value,
    aliascolnames: nodes,
    ctematerialized: value,
    ctequery: nodes,
    search_clause: "=CTESearchClause",
    cycle_clause: "=CTECycleClause",
  },
  CTESearchClause: { search_col_list: nodes, search_breadth_first: value, search_seq_column: value },
  CTECycleClause: {
    cycle_col_list: nodes,
    cycle_mark_column: value,
    cycle_mark_value: nodes,
    cycle_mark_default: nodes,
    cycle_path_column: value,
  },
  ResTarget: { name: value, indirection: nodes, val: nodes },
  ColumnRef: { fields: nodes },
  ParamRef: { number: value },
  A_Const: { ival: value, fval: value, boolval: value, sval: value, bsval: value, isnull: value },
  A_Expr: { kind: value, name: nodes, lexpr: nodes, rexpr: nodes, rexpr_list_start: value, rexpr_list_end: value },
  BoolExpr: { boolop: value, args: nodes },
  NullTest: { arg: nodes, nulltesttype: value, argisrow: value },
  BooleanTest: { arg: nodes, booltesttype: value },
  CaseExpr: { arg: nodes, args: nodes, defresult: nodes },
  CaseWhen: { expr: nodes, result: nodes },
  CoalesceExpr: { args: nodes },
  MinMaxExpr: { op: value, args: nodes },
  SubLink: { subLinkType: value, testexpr: nodes, operName: nodes, subselect: nodes },
  FuncCall: {
    funcname: nodes,
    args: nodes,
    agg_order: nodes,
    agg_filter: nodes,
    over: "=WindowDef",
    agg_within_group: value,
    agg_star: value,
    agg_distinct: value,
    func_variadic: value,
    funcformat: value,
  },
  NamedArgExpr: { arg: nodes, name: value, argnumber: value },
  WindowDef: {
    name: value,
    refname: value,
    partitionClause: nodes,
    orderClause: nodes,
    frameOptions: value,
    startOffset: nodes,
    endOffset: nodes,
  },
  SortBy: { node: nodes, sortby_dir: value, sortby_nulls: value, useOp: nodes },
  TypeCast: { arg: nodes, typeName: "=TypeName" },
  TypeName: { names: nodes, typmods: nodes, typemod: value, arrayBounds: nodes },
  CollateClause: { arg: nodes, collname: nodes },
  A_ArrayExpr: { elements: nodes, list_start: value, list_end: value },
  A_Indirection: { arg: nodes, indirection: nodes },
  A_Indices: { is_slice: value, lidx: nodes, uidx: nodes },
  A_Star: {},
  RowExpr: { args: nodes, row_format: value, colnames: nodes },
  List: { items: nodes },
  String: { sval: value },
  Integer: { ival: value },
  Float: { fval: value },
  Boolean: { boolval: value },
  JoinExpr: {
    jointype: value,
    isNatural: value,
    larg: nodes,
    rarg: nodes,
    usingClause: nodes,
    join_using_alias: "=Alias",
    quals: nodes,
    alias: "=Alias",
  },
  Alias: { aliasname: value, colnames: nodes },
  RangeVar: { relname: value, inh: value, relpersistence: value, alias: "=Alias" },
  RangeSubselect: { lateral: value, subquery: nodes, alias: "=Alias" },
  RangeFunction: { lateral: value, ordinality: value, is_rowsfrom: value, functions: nodes, alias: "=Alias", coldeflist: nodes },
  RangeTableSample: { relation: nodes, method: nodes, args: nodes, repeatable: nodes },
  ColumnDef: { colname: value, typeName: "=TypeName", is_local: value },
  GroupingSet: { kind: value, content: nodes },
  GroupingFunc: { args: nodes },
  SetToDefault: {},
  MultiAssignRef: { source: nodes, colno: value, ncolumns: value },
  SQLValueFunction: { op: value, typmod: value },
  JsonObjectConstructor: { exprs: nodes, output: "=JsonOutput", absent_on_null: value, unique: value },
  JsonArrayConstructor: { exprs: nodes, output: "=JsonOutput", absent_on_null: value },
  JsonArrayQueryConstructor: { query: nodes, output: "=JsonOutput", format: "=JsonFormat", absent_on_null: value },
  JsonAggConstructor: { output: "=JsonOutput", agg_filter: nodes, agg_order: nodes, over: "=WindowDef" },
  JsonObjectAgg: { constructor: "=JsonAggConstructor" as const, arg: "=JsonKeyValue", absent_on_null: value, unique: value },
  JsonArrayAgg: { constructor: "=JsonAggConstructor" as const, arg: "=JsonValueExpr", absent_on_null: value },
  JsonKeyValue: { key: nodes, value: "=JsonValueExpr" },
  JsonValueExpr: { raw_expr: nodes, formatted_expr: nodes, format: "=JsonFormat" },
  JsonFormat: { format_type: value, encoding: value },
  JsonOutput: { typeName: "=TypeName", returning: "=JsonReturning" },
  JsonReturning: { format: "=JsonFormat", typid: value, typmod: value },
  JsonIsPredicate: { expr: nodes, format: "=JsonFormat", item_type: value, unique_keys: value },
  JsonParseExpr: { expr: "=JsonValueExpr", output: "=JsonOutput", unique_keys: value },
  JsonScalarExpr: { expr: nodes, output: "=JsonOutput" },
  JsonSerializeExpr: { expr: "=JsonValueExpr", output: "=JsonOutput" },
  JsonFuncExpr: {
    op: value,
    column_name: value,
    context_item: "=JsonValueExpr",
    pathspec: nodes,
    passing: nodes,
    output: "=JsonOutput",
    on_empty: "=JsonBehavior",
    on_error: "=JsonBehavior",
    wrapper: value,
    quotes: value,
  },
  JsonBehavior: { btype: value, expr: nodes, coerce: value },
  JsonArgument: { val: "=JsonValueExpr", name: value },
};

/** The rule of a field; undefined if it is refused. */
export function fieldRule(type: string, field: string): FieldRule | undefined {
  if (!Object.hasOwn(rules, type)) return undefined;
  const fields = rules[type]!;
  if (Object.hasOwn(fields, field)) return fields[field];
  return Object.hasOwn(ALWAYS, field) ? value : undefined;
}

export const isKnownNode = (type: string): boolean => Object.hasOwn(rules, type);

/** Users' words for what they may not write. Everything else is named by its node. */
export const REFUSALS: ReadonlyMap<string, string> = new Map([
  ["SelectStmt.intoClause", "SELECT … INTO creates a table; create tables through the schema endpoints"],
  ["SelectStmt.lockingClause", "FOR UPDATE and FOR SHARE are not allowed; a statement is a transaction of its own"],
  ["RangeVar.schemaname", "tables are named without a schema; only tables of this branch can be reached"],
  ["RangeVar.catalogname", "tables are named without a database or schema; only tables of this branch can be reached"],
  ["TypeName.setof", "SETOF is not allowed"],
  ["TypeName.pct_type", "%TYPE is not allowed"],
  ["IndexElem.opclass", "operator classes are not allowed"],
  ["IndexElem.collation", "collations are not allowed in ON CONFLICT"],
  ["InferClause.conname", "ON CONFLICT ON CONSTRAINT is not allowed; name the columns instead"],
  ["XmlExpr", "XML functions are not allowed"],
  ["XmlSerialize", "XML functions are not allowed"],
  ["RangeTableFunc", "XMLTABLE is not allowed"],
  ["JsonTable", "JSON_TABLE is not allowed; use jsonb_to_recordset or jsonb_path_query"],
  ["CurrentOfExpr", "cursors are not allowed"],
  ["MergeStmt", "MERGE is not allowed; use INSERT … ON CONFLICT"],
  ["LockingClause", "locking clauses are not allowed"],
]);

// The form of libpg-query's parse trees: nodes are wrapped as {Type: {...}}, lists are arrays, and a location
// is a byte offset into the statement.

export type Tree = { readonly [field: string]: unknown };

/** A statement that is not allowed, or whose meaning cannot be known. */
export class Refusal extends Error {
  /** Byte offset of the fault; -1 if it has no place. */
  readonly location: number;
  constructor(message: string, location = -1) {
    super(message);
    this.location = location;
  }
}

export function unwrap(wrapped: unknown): [string, Tree] {
  const entries = Object.entries(wrapped as Tree);
  if (entries.length !== 1) throw new Refusal("the statement has a form that is not known");
  return [entries[0]![0], entries[0]![1] as Tree];
}

/** The strings of a list of String nodes; other nodes (A_Star, A_Indices) are left out. */
export function strings(list: unknown): string[] {
  return ((list ?? []) as unknown[]).flatMap((element) => {
    const [type, tree] = unwrap(element);
    return type === "String" ? [String(tree.sval ?? "")] : [];
  });
}

export function locationOf(tree: unknown): number {
  const location = (tree as { location?: unknown } | null | undefined)?.location;
  return typeof location === "number" ? location : -1;
}

/**
 * Compiles a filter tree to a boolean SQL expression for any WHERE. Links are scalar subselects by primary key,
 * so nothing has to be joined and nulls come out by themselves. Every value is bound. The three-valued logic
 * (see tree.ts) is PostgreSQL's own.
 *
 * It needs the function `fold(text)` (fold.ts) for `$iContains` and `$iPattern`.
 */
import { formatTimestamp } from "./datetime.ts";
import { likePattern } from "./pattern.ts";
import type { ColumnPath, FilterLeaf, FilterNode, Operand, RangeOperator, ValueKind } from "./tree.ts";

export interface SqlContext {
  /**
   * The name of the filtered relation in the statement, quoted if need be. No alias of a statement may begin
   * with `lodestone_`.
   */
  readonly alias: string;
  /** The number of the first parameter: `$1` is 1. */
  readonly firstParameter: number;
  /**
   * A column (or `id`, `xata.version` …) of `table` seen as `alias`: a quoted physical name, or any expression
   * without side effects.
   */
  column(alias: string, table: string, column: string): string;
  /** A table of the branch as a FROM item, quoted. */
  relation(table: string): string;
  /**
   * What datetime columns are: timestamptz, or microseconds since 1970 UTC as int8, as the change feed gives
   * them. Default timestamptz.
   */
  readonly datetimeType?: "timestamptz" | "int8";
  /** The schema that has the function `fold(text)` (fold.ts), quoted; default `lodestone`. */
  readonly foldSchema?: string;
}

export interface CompiledSql {
  readonly text: string;
  /** For the parameters from `firstParameter` on; strings and arrays of strings, each cast in the text. */
  readonly values: (string | string[])[];
}

export function compileToSql(node: FilterNode, context: SqlContext): CompiledSql {
  const compiler = new SqlCompiler(context);
  return { text: compiler.node(node), values: compiler.values };
}

const SQL_TYPES: Readonly<Record<Exclude<ValueKind, "vector" | "multiple" | "json" | "datetime">, string>> = {
  text: "text",
  int: "int8",
  float: "float8",
  bool: "bool",
};

const SQL_RANGES: Readonly<Record<RangeOperator, string>> = { lt: "<", le: "<=", gt: ">", ge: ">=" };

class SqlCompiler {
  readonly #context: SqlContext;
  readonly #datetimeType: "timestamptz" | "int8";
  readonly #foldSchema: string;
  readonly values: (string | string[])[] = [];
  #aliases = 0;
  /** The item that `includes` is looking at. */
  #item = "";

  constructor(context: SqlContext) {
    this.#context = context;
    this.#datetimeType = context.datetimeType ?? "timestamptz";
    this.#foldSchema = context.foldSchema ?? "lodestone";
  }

  node(node: FilterNode): string {
    switch (node.kind) {
      case "and":
        return node.nodes.length === 0 ? "TRUE" : `(${node.nodes.map((inner) => this.node(inner)).join(" AND ")})`;
      case "or":
        return node.nodes.length === 0 ? "FALSE" : `(${node.nodes.map((inner) => this.node(inner)).join(" OR ")})`;
      case "not":
        return `(NOT ${this.node(node.node)})`;
      default:
        return this.#leaf(node);
    }
  }

  #leaf(leaf: FilterLeaf): string {
    const { column } = leaf;
    if (leaf.kind === "constant") return `CASE WHEN ${this.#value(column)} IS NOT NULL THEN ${leaf.value ? "TRUE" : "FALSE"} END`;
    if (leaf.kind === "exists")
      return column.kind === "json" ? `(${this.#jsonText(column)} IS NOT NULL)` : `(${this.#value(column)} IS NOT NULL)`;
    if (leaf.kind === "includes") return this.#includes(leaf);
    if (column.kind === "json") return this.#jsonLeaf(leaf, column);
    const value = this.#value(column);
    switch (leaf.kind) {
      case "in": {
        const type = this.#type(column.kind);
        if (leaf.values.length === 1) return `(${value} = ${this.#bind(this.#operandText(leaf.values[0]!, column.kind))}::${type})`;
        return `(${value} = ANY (${this.#bind(leaf.values.map((operand) => this.#operandText(operand, column.kind)))}::${type}[]))`;
      }
      case "range":
        return this.#range(value, column.kind, leaf.operator, leaf.value);
      default:
        return this.#textLeaf(leaf, value);
    }
  }

  #range(value: string, kind: ValueKind, operator: RangeOperator, operand: Operand): string {
    const left = kind === "text" ? `${value} COLLATE "C"` : value;
    return `(${left} ${SQL_RANGES[operator]} ${this.#bind(this.#operandText(operand, kind))}::${this.#type(kind)})`;
  }

  #type(kind: ValueKind): string {
    return kind === "datetime" ? this.#datetimeType : SQL_TYPES[kind as keyof typeof SQL_TYPES];
  }

  #operandText(operand: Operand, kind: ValueKind): string {
    return kind === "datetime" && this.#datetimeType === "timestamptz" ? formatTimestamp(operand as bigint) : String(operand);
  }

  #textLeaf(leaf: Extract<FilterLeaf, { kind: "text" | "pattern" }>, value: string): string {
    const text = leaf.fold ? `${this.#foldSchema}.fold(${value})` : value;
    if (leaf.kind === "pattern") return `(${text} LIKE ${this.#bind(likePattern(leaf.parts))}::text ESCAPE '\\')`;
    const operand = `${this.#bind(leaf.operand)}::text`;
    switch (leaf.operator) {
      case "contains":
        return `(strpos(${text}, ${operand}) > 0)`;
      case "startsWith":
        return `starts_with(${text}, ${operand})`;
      case "endsWith":
        return `(right(${text}, char_length(${operand})) = ${operand})`;
    }
  }

  #includes(leaf: Extract<FilterLeaf, { kind: "includes" }>): string {
    const { quantifier, predicate } = leaf;
    const value = this.#value(leaf.column);
    // The most common kinds, in a form that an index can serve. Null for a null column as they stand.
    if (predicate.kind === "in") {
      const overlaps = `(${value} && ${this.#bind(predicate.values.map(String))}::text[])`;
      return quantifier === "any" ? overlaps : `(NOT ${overlaps})`;
    }
    const items = this.#alias();
    this.#item = `${items}.item`;
    const matches = this.node(predicate);
    this.#item = "";
    const found = `EXISTS (SELECT 1 FROM unnest(${value}) AS ${items}(item) WHERE ${matches})`;
    return `CASE WHEN ${value} IS NOT NULL THEN ${quantifier === "any" ? found : `NOT ${found}`} END`;
  }

  #jsonLeaf(leaf: Extract<FilterLeaf, { kind: "in" | "range" | "text" | "pattern" }>, column: ColumnPath): string {
    if (leaf.kind === "in") {
      const known = `NULLIF(${this.#jsonValue(column)}, 'null'::jsonb)`;
      const operands = leaf.values.map((operand) => (typeof operand === "object" ? operand.document : JSON.stringify(operand)));
      if (operands.length === 1) return `(${known} = ${this.#bind(operands[0]!)}::jsonb)`;
      return `(${known} = ANY (${this.#bind(operands)}::jsonb[]))`;
    }
    const isNumber = leaf.kind === "range" && typeof leaf.value === "number";
    const type = `jsonb_typeof(${this.#jsonValue(column)})`;
    let matches: string;
    if (leaf.kind !== "range") matches = this.#textLeaf(leaf, this.#jsonText(column));
    else if (isNumber) matches = `${this.#jsonValue(column)} ${SQL_RANGES[leaf.operator]} ${this.#bind(JSON.stringify(leaf.value))}::jsonb`;
    else matches = this.#range(this.#jsonText(column), "text", leaf.operator, leaf.value);
    return `CASE WHEN ${type} = '${isNumber ? "number" : "string"}' THEN ${matches} END`;
  }

  #jsonValue(column: ColumnPath): string {
    return column.json.length === 0 ? this.#value(column) : `(${this.#value(column)} #> ${this.#bind([...column.json])}::text[])`;
  }

  /** Null for a JSON null. */
  #jsonText(column: ColumnPath): string {
    return `(${this.#value(column)} #>> ${this.#bind([...column.json])}::text[])`;
  }

  #value(column: ColumnPath): string {
    if (column.item) return this.#item;
    const [first, ...others] = column.links;
    if (first === undefined) return this.#context.column(this.#context.alias, column.table, column.column);
    let alias = this.#alias();
    let from = `${this.#context.relation(first.target)} AS ${alias}`;
    const start = `${this.#context.column(alias, first.target, "id")} = ${this.#context.column(this.#context.alias, first.table, first.column)}`;
    for (const step of others) {
      const next = this.#alias();
      const link = this.#context.column(alias, step.table, step.column);
      from += ` JOIN ${this.#context.relation(step.target)} AS ${next} ON ${this.#context.column(next, step.target, "id")} = ${link}`;
      alias = next;
    }
    return `(SELECT ${this.#context.column(alias, column.table, column.column)} FROM ${from} WHERE ${start})`;
  }

  #alias(): string {
    return `lodestone_${++this.#aliases}`;
  }

  #bind(value: string | string[]): string {
    this.values.push(value);
    return `$${this.#context.firstParameter + this.values.length - 1}`;
  }
}

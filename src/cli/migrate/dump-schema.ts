/**
 * The tables that a dump creates, as tables of the API. Its statements are parsed by PostgreSQL's own grammar.
 * The type that a column had in the retired service is in its comment (`{"xata.type": "email"}`). A column whose
 * type the API does not have is kept exactly, as text, and reported.
 */
import { loadModule, parseSync } from "libpg-query";
import { MIN_COLUMN_DIMENSION } from "../../dimension.ts";
import { isUnderscored } from "../../filter/system-columns.ts";
import { TYPES_NOT_OFFERED } from "../../records/catalog/column-types.ts";
import { COLUMN_TRAITS } from "../../records/column-traits.ts";
import type { ColumnSchema, ColumnType } from "../../records/schema.ts";
import { OWN_ID } from "../import/hosted-columns.ts";

export interface DumpSchema {
  readonly tables: readonly { readonly name: string; readonly columns: readonly ColumnSchema[] }[];
  /** By table: columns of the dump that are not migrated. */
  readonly skipped: ReadonlyMap<string, readonly string[]>;
  readonly leftOut: readonly string[];
  readonly isUnderscored: boolean;
}

/** libpg-query's nodes: objects by type. */
// biome-ignore lint/suspicious/noExplicitAny: the grammar has hundreds of node types; what is not as expected is passed over
type Node = any;

interface DraftColumn {
  readonly name: string;
  readonly pgType: string;
  readonly isArray: boolean;
  notNull: boolean;
  unique: boolean;
  fallback: Node | undefined;
  references: string | undefined;
  comment: string | undefined;
}

const TYPES: Readonly<Record<string, ColumnType>> = {
  text: "text",
  varchar: "text",
  bpchar: "text",
  int2: "int",
  int4: "int",
  int8: "int",
  smallserial: "int",
  serial: "int",
  bigserial: "int",
  float4: "float",
  float8: "float",
  bool: "bool",
  timestamptz: "datetime",
  timestamp: "datetime",
  date: "datetime",
  json: "json",
  jsonb: "json",
};

export async function readDumpSchema(statements: readonly string[]): Promise<DumpSchema> {
  await loadModule();
  const drafts = new Map<string, DraftColumn[]>();
  for (const statement of statements) for (const { stmt } of parseSync(statement).stmts as Node[]) apply(stmt, drafts);
  const leftOut: string[] = [];
  const skipped = new Map<string, string[]>();
  let underscored = false;
  const tables = [...drafts].map(([name, columns]) => {
    const own = columns.filter((column) => !isUnderscored(column.name));
    if (own.length < columns.length) underscored = true;
    const kept = own.flatMap((column) => {
      const made = toColumn(name, column, drafts, leftOut);
      if (made === undefined) skipped.set(name, [...(skipped.get(name) ?? []), column.name]);
      return made ?? [];
    });
    return { name, columns: kept };
  });
  return { tables, skipped, leftOut, isUnderscored: underscored };
}

function apply(stmt: Node, drafts: Map<string, DraftColumn[]>): void {
  if (stmt.CreateStmt !== undefined) {
    const { relation, tableElts = [] } = stmt.CreateStmt;
    const columns: DraftColumn[] = [];
    drafts.set(relation.relname, columns);
    for (const element of tableElts as Node[]) {
      if (element.ColumnDef !== undefined) columns.push(draftOf(element.ColumnDef));
      else if (element.Constraint !== undefined) constrain(columns, element.Constraint);
    }
  } else if (stmt.AlterTableStmt !== undefined) {
    const columns = drafts.get(stmt.AlterTableStmt.relation.relname) ?? [];
    for (const { AlterTableCmd: command } of stmt.AlterTableStmt.cmds as Node[]) {
      const column = columns.find(({ name }) => name === command.name);
      if (command.subtype === "AT_AddConstraint") constrain(columns, command.def.Constraint);
      else if (command.subtype === "AT_ColumnDefault" && column !== undefined) column.fallback = command.def;
      else if (command.subtype === "AT_SetNotNull" && column !== undefined) column.notNull = true;
    }
  } else if (stmt.CommentStmt?.objtype === "OBJECT_COLUMN") {
    const names = namesOf(stmt.CommentStmt.object.List.items);
    const column = drafts.get(names.at(-2) ?? "")?.find(({ name }) => name === names.at(-1));
    if (column !== undefined) column.comment = stmt.CommentStmt.comment;
  } else if (stmt.IndexStmt?.unique === true && stmt.IndexStmt.whereClause === undefined) {
    const [element, ...more] = stmt.IndexStmt.indexParams as Node[];
    const column = drafts.get(stmt.IndexStmt.relation.relname)?.find(({ name }) => name === element?.IndexElem?.name);
    if (column !== undefined && more.length === 0) column.unique = true;
  }
}

function draftOf({ colname, typeName, constraints = [] }: Node): DraftColumn {
  const column: DraftColumn = {
    name: colname,
    pgType: namesOf(typeName.names).at(-1) ?? "",
    isArray: typeName.arrayBounds !== undefined,
    notNull: false,
    unique: false,
    fallback: undefined,
    references: undefined,
    comment: undefined,
  };
  for (const { Constraint: constraint } of constraints as Node[]) {
    if (constraint.contype === "CONSTR_DEFAULT") column.fallback = constraint.raw_expr;
    else
      constrain([column], {
        ...constraint,
        keys: constraint.keys ?? [{ String: { sval: colname } }],
        fk_attrs: [{ String: { sval: colname } }],
      });
    if (constraint.contype === "CONSTR_NOTNULL") column.notNull = true;
  }
  return column;
}

/** Constraints over several columns do not exist here; they are dropped. */
function constrain(columns: readonly DraftColumn[], { contype, keys = [], fk_attrs = [], pktable, pk_attrs = [] }: Node): void {
  const only = (names: readonly string[]): DraftColumn | undefined =>
    names.length === 1 ? columns.find(({ name }) => name === names[0]) : undefined;
  if (contype === "CONSTR_UNIQUE" || contype === "CONSTR_PRIMARY") {
    const column = only(namesOf(keys));
    if (column !== undefined) column.unique = true;
  }
  if (contype === "CONSTR_FOREIGN") {
    const column = only(namesOf(fk_attrs));
    // A link is the record's id, which is what a key without columns refers to.
    if (column !== undefined && ["xata_id", undefined].includes(namesOf(pk_attrs)[0])) column.references = pktable.relname;
  }
}

function toColumn(table: string, draft: DraftColumn, drafts: ReadonlyMap<string, unknown>, leftOut: string[]): ColumnSchema | undefined {
  const place = `${table}.${draft.name}`;
  if (/^xata_file(?:_array)?$/.test(draft.pgType)) {
    leftOut.push(`${place}: ${TYPES_NOT_OFFERED[draft.isArray || draft.pgType.endsWith("_array") ? "file[]" : "file"]}`);
    return undefined;
  }
  if (draft.name === "id") leftOut.push(`${place} is called ${OWN_ID} here, because "id" is the name of every record's id.`);
  const hint = hintOf(draft.comment);
  const link = hint.link ?? draft.references;
  const column: { -readonly [Key in keyof ColumnSchema]: ColumnSchema[Key] } = {
    name: draft.name === "id" ? OWN_ID : draft.name,
    type: "text",
  };
  if (link !== undefined && drafts.has(link)) {
    column.type = "link";
    column.link = { table: link };
  } else if (hint.dimension !== undefined) {
    column.type = "vector";
    column.vector = { dimension: hint.dimension };
  } else if (draft.isArray) {
    column.type = "multiple";
    if (!/^(?:text|varchar|bpchar)$/.test(draft.pgType)) leftOut.push(`${place}, a list of ${draft.pgType}, is kept as a list of texts.`);
  } else {
    const known = TYPES[draft.pgType];
    column.type = known ?? "text";
    if (known === "text" && (hint.type === "email" || hint.type === "string")) column.type = hint.type;
    if (known === undefined) leftOut.push(`${place}, of PostgreSQL's type ${draft.pgType}, is kept as text.`);
    if (draft.pgType === "timestamp" || draft.pgType === "date") leftOut.push(`${place}, a ${draft.pgType}, is kept as a datetime in UTC.`);
  }
  if (draft.notNull) column.notNull = true;
  if (draft.unique && COLUMN_TRAITS[column.type].canBeUnique) column.unique = true;
  if (draft.comment !== undefined && hint.isOurs !== true) column.comment = draft.comment;
  if (draft.fallback !== undefined) {
    const value = defaultOf(draft.fallback);
    if (value !== undefined) column.defaultValue = value;
    else
      leftOut.push(`${place}: its default is an SQL expression, which is not migrated; the application must set a value in new records.`);
  }
  return column;
}

/** What the retired service noted in a column's comment. */
function hintOf(comment: string | undefined): { type?: string; link?: string; dimension?: number; isOurs?: boolean } {
  if (comment === undefined || !comment.startsWith("{")) return {};
  try {
    const noted: Record<string, unknown> = JSON.parse(comment);
    const { "xata.type": type, "xata.link": link, "xata.search.dimension": dimension } = noted;
    return {
      isOurs: Object.keys(noted).every((key) => key.startsWith("xata.")),
      ...(typeof type === "string" ? { type } : {}),
      ...(typeof link === "string" ? { link } : {}),
      ...(Number.isInteger(Number(dimension)) && Number(dimension) >= MIN_COLUMN_DIMENSION ? { dimension: Number(dimension) } : {}),
    };
  } catch {
    return {};
  }
}

/** As PostgreSQL prints it, which the server reads; undefined for what is computed. */
function defaultOf(expression: Node): string | undefined {
  const constant = (expression.TypeCast?.arg ?? expression).A_Const;
  if (constant !== undefined) {
    if (constant.isnull === true) return "NULL::text";
    if (constant.boolval !== undefined) return constant.boolval.boolval === true ? "true" : "false";
    if (constant.ival !== undefined) return String(constant.ival.ival ?? 0);
    if (constant.fval !== undefined) return String(constant.fval.fval);
    if (constant.sval !== undefined) return `'${String(constant.sval.sval ?? "").replaceAll("'", "''")}'::text`;
  }
  const called = namesOf(expression.FuncCall?.funcname ?? []).at(-1);
  return called === "now" || expression.SQLValueFunction?.op === "SVFOP_CURRENT_TIMESTAMP" ? "now()" : undefined;
}

function namesOf(list: readonly Node[]): string[] {
  return list.map((item) => String(item.String?.sval ?? ""));
}

/**
 * What TypeScript derives from the types of an index's columns: the values that a record takes, those that come
 * back, and filters. Types alone: nothing of it is in a program. Types that are known only when the program runs
 * (`Record<string, ColumnType>`) leave all of this open.
 */
import type { ColumnFilter, RowValues } from "../core/row-columns.ts";
import type { ColumnType } from "./stored-value.ts";

/** Types of columns by name. */
export type ColumnTypes = Readonly<Record<string, ColumnType>>;

/** What `upsert` takes; null, undefined or absent: no value. */
export type ColumnInput<Types extends ColumnTypes> = string extends keyof Types
  ? RowValues
  : { readonly [Name in keyof Types]?: Taken[Types[Name]] | null | undefined };

/** What `getColumns` and results give; null: no value. An int beyond 2^53 is a bigint. */
export type ColumnOutput<Types extends ColumnTypes> = { -readonly [Name in keyof Types]-?: Given[Types[Name]] | null };

/** A filter over the columns and the id; "column->path" reaches into json, which may have anything in it. */
export type TypedFilter<Types extends ColumnTypes> = string extends keyof Types ? ColumnFilter : Expression<Types>;

interface Taken {
  string: string;
  int: number | bigint;
  float: number;
  bool: boolean;
  datetime: Date | string;
  multiple: readonly string[];
  json: unknown;
}

interface Given {
  string: string;
  int: number | bigint;
  float: number;
  bool: boolean;
  datetime: string;
  multiple: string[];
  json: unknown;
}

type NameOf<Types, Type extends ColumnType> = { [Name in keyof Types]: Types[Name] extends Type ? Name : never }[keyof Types] & string;
type JsonPath<Types> = `${NameOf<Types, "json">}->${string}`;
type Exists<Types> = (keyof Types & string) | "id" | JsonPath<Types>;

// Not interfaces: these could not be given where a ColumnFilter is expected.
type Expression<Types extends ColumnTypes> = { readonly [Name in keyof Types]?: Condition<Types[Name]> | undefined } & {
  readonly [Path in JsonPath<Types>]?: unknown;
} & {
  readonly id?: Condition<"string"> | undefined;
  readonly $any?: Expression<Types> | readonly Expression<Types>[] | undefined;
  readonly $all?: Expression<Types> | readonly Expression<Types>[] | undefined;
  readonly $none?: Expression<Types> | readonly Expression<Types>[] | undefined;
  readonly $not?: Expression<Types> | readonly Expression<Types>[] | undefined;
  readonly $exists?: Exists<Types> | undefined;
  readonly $notExists?: Exists<Types> | undefined;
};

/** A value, any of several, or operators. */
type Condition<Type extends ColumnType> = Type extends "json" ? unknown : OneCondition<Type> | readonly OneCondition<Type>[];
type OneCondition<Type extends ColumnType> = Operand<Type> | Operators<Type>;
/** An item of a list is compared with a text. */
type Operand<Type extends ColumnType> = Type extends "multiple" ? string : Taken[Type];

type Operators<Type extends ColumnType> = {
  readonly $is?: Operand<Type> | readonly Operand<Type>[] | undefined;
  readonly $isNot?: Operand<Type> | readonly Operand<Type>[] | undefined;
  readonly $any?: Condition<Type> | undefined;
  readonly $all?: Condition<Type> | undefined;
  readonly $none?: Condition<Type> | undefined;
  readonly $not?: Condition<Type> | undefined;
} & (Type extends "bool" | "multiple" ? unknown : Ranges<Operand<Type>>) &
  (Type extends "string" ? Texts : unknown) &
  (Type extends "multiple" ? Includes : unknown);

type Ranges<Value> = { readonly [Operator in "$lt" | "$le" | "$lte" | "$gt" | "$ge" | "$gte"]?: Value | undefined };
type Texts = {
  readonly [Operator in "$contains" | "$iContains" | "$startsWith" | "$endsWith" | "$pattern" | "$iPattern"]?: string | undefined;
};
type Includes = {
  readonly [Operator in "$includes" | "$includesAny" | "$includesAll" | "$includesNone"]?: Condition<"string"> | undefined;
};

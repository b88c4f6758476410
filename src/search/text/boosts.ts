/** What boosters add to the scores of records. */

import { hasBit } from "../../filter/bit-mask.ts";
import { resolveName } from "../../filter/column-path.ts";
import { rootPlace } from "../../filter/fault.ts";
import { compileToMask } from "../../filter/mask.ts";
import type { MaskTable } from "../../filter/mask-table.ts";
import { parseFilter } from "../../filter/parse.ts";
import type { ColumnPath, LinkStep } from "../../filter/tree.ts";
import type { FollowedSchema, FollowedTable } from "../followed-schema.ts";

export type Modifier = "none" | "log" | "log1p" | "ln" | "ln1p" | "square" | "sqrt" | "reciprocal";

/** A booster of a request, checked against the schema. */
export type Booster = {
  readonly column: string;
  readonly factor: number;
  readonly filter: unknown;
  /** `boosters[0].valueBooster`, for messages. */
  readonly place: string;
} & (
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "numeric"; readonly modifier: Modifier }
  | { readonly kind: "date"; readonly originMs: number; readonly scaleMs: number; readonly decay: number }
);

interface Tables {
  table(name: string): MaskTable;
}

/**
 * The sum of all boosts, by row of the table.
 *
 * @throws {LodestoneError} INVALID for a filter, or a column that is not there.
 */
export function boostsOf(boosters: readonly Booster[], table: FollowedTable, schema: FollowedSchema, tables: Tables): Float64Array {
  const data = tables.table(table.name);
  const boosts = new Float64Array(data.capacity);
  for (const booster of boosters) {
    const maskOf = (filter: unknown, place: string): Uint32Array =>
      compileToMask(parseFilter(filter, table, schema, place), table.name, tables);
    const applies = maskOf(booster.filter, `${booster.place}.ifMatchesFilter`);
    const add = (row: number, value: number): void => {
      const added = booster.factor * value;
      // No number where a record has none, or the modifier has none for it.
      if (Number.isFinite(added)) boosts[row]! += added;
    };
    if (booster.kind === "value") {
      const matches = maskOf({ [booster.column]: { $is: booster.value } }, `${booster.place}.value`);
      for (let row = 0; row < data.capacity; row++) if (hasBit(applies, row) && hasBit(matches, row)) add(row, 1);
      continue;
    }
    const values = numbersOf(booster.column, booster.place, table, schema, tables);
    for (let row = 0; row < data.capacity; row++) {
      if (!hasBit(applies, row)) continue;
      const value = values[row]!;
      add(
        row,
        booster.kind === "date"
          ? booster.decay ** (Math.abs(value - booster.originMs) / booster.scaleMs)
          : MODIFIERS[booster.modifier](value),
      );
    }
  }
  return boosts;
}

const MODIFIERS: Readonly<Record<Modifier, (x: number) => number>> = {
  none: (x) => x,
  log: Math.log10,
  log1p: (x) => Math.log10(1 + x),
  ln: Math.log,
  ln1p: Math.log1p,
  square: (x) => x * x,
  sqrt: Math.sqrt,
  reciprocal: (x) => 1 / x,
};

/** The numbers of a column by row, of a time its milliseconds since 1970; NaN where there is none. */
function numbersOf(name: string, place: string, table: FollowedTable, schema: FollowedSchema, tables: Tables): Float64Array {
  const resolved = resolveName(name, { table, links: [], prefix: "", text: "" }, schema, rootPlace(`${place}.column`));
  if (!("column" in resolved)) throw new TypeError(`${name} is no column.`);
  const { column } = resolved;
  let values = ownNumbers(column, tables.table(column.table));
  for (let i = column.links.length - 1; i >= 0; i--) values = throughLink(values, column.links[i]!, tables);
  return values;
}

function ownNumbers(path: ColumnPath, table: MaskTable): Float64Array {
  const column = table.column(path.column);
  const values = new Float64Array(table.capacity).fill(Number.NaN);
  if (column.kind === "float") {
    for (let row = 0; row < values.length; row++) if (hasBit(column.present, row)) values[row] = column.values[row]!;
  } else if (column.kind === "int" || column.kind === "datetime") {
    const wide = new BigInt64Array(column.words.buffer, column.words.byteOffset, column.words.length >> 1);
    const unit = column.kind === "int" ? 1 : 1_000;
    for (let row = 0; row < values.length; row++) if (hasBit(column.present, row)) values[row] = Number(wide[row]!) / unit;
  }
  return values;
}

function throughLink(values: Float64Array, step: LinkStep, tables: Tables): Float64Array {
  const source = tables.table(step.table);
  const target = tables.table(step.target);
  const link = source.column(step.column);
  if (link.kind !== "text") throw new TypeError(`Column ${step.column} is not a link.`);
  const ofLink = Float64Array.from(link.dictionary.values, (id) => {
    const row = id === undefined ? undefined : target.rowOf(id);
    return row === undefined ? Number.NaN : values[row]!;
  });
  return Float64Array.from({ length: source.capacity }, (_, row) => ofLink[link.codes[row]!] ?? Number.NaN);
}

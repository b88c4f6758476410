/**
 * Compiles a filter tree to a bit mask over the rows of a table, a column at a time.
 *
 * A node is asked either "where is it true?" or "where is it false?"; what is in neither is unknown. AND, OR
 * and NOT of three-valued logic are then plain set operations (De Morgan holds in it), and no third mask is
 * needed. A leaf behind links is found in the table that has its column, and carried back link by link.
 */
import { complement, hasBit, intersect, isEmpty, maskWords, setBit, unite } from "./bit-mask.ts";
import { valueNotKept } from "./fault.ts";
import type { BoolColumn, CodedColumn, Dictionary, FloatColumn, MaskTable, MultipleColumn, Omitting, WideColumn } from "./mask-table.ts";
import { type ContentLeaf, itemPredicate, jsonPredicate, textPredicate } from "./predicate.ts";
import type { ColumnPath, FilterLeaf, FilterNode, LinkStep } from "./tree.ts";

export interface MaskTables {
  /** The root is the filtered table; links lead to the others. */
  table(name: string): MaskTable;
}

/**
 * @returns Rows of `table` for which the node is true: `ceil(capacity / 32)` words, no bit beyond the rows that
 *   are live.
 * Cost: a pass over one column per leaf; text leaves test each distinct value once.
 */
export function compileToMask(node: FilterNode, table: string, tables: MaskTables): Uint32Array {
  return intersect(nodeMask(node, true, tables.table(table), tables), tables.table(table).live);
}

/** Rows where the node is `wanted` (true or false). */
function nodeMask(node: FilterNode, wanted: boolean, table: MaskTable, tables: MaskTables): Uint32Array {
  switch (node.kind) {
    case "and":
    case "or": {
      const isIntersection = (node.kind === "and") === wanted;
      let result: Uint32Array | undefined;
      for (const inner of node.nodes) {
        if (result === undefined) result = nodeMask(inner, wanted, table, tables);
        else if (isIntersection) {
          if (isEmpty(result)) break;
          intersect(result, nodeMask(inner, wanted, table, tables));
        } else unite(result, nodeMask(inner, wanted, table, tables));
      }
      if (result !== undefined) return result;
      const none = new Uint32Array(maskWords(table.capacity));
      return isIntersection ? complement(none, table.live) : none;
    }
    case "not":
      return nodeMask(node.node, !wanted, table, tables);
    case "exists": {
      // Never unknown: a link that leads nowhere makes it false, not null.
      const exists = carryBack(presentMask(node.column, tables.table(node.column.table)), node.column, tables);
      return wanted ? exists : complement(exists, table.live);
    }
    default:
      return carryBack(
        leafMask(node as Exclude<FilterLeaf, { kind: "exists" }>, wanted, tables.table(node.column.table)),
        node.column,
        tables,
      );
  }
}

/** From rows of the table that has the column to rows of the table where the path begins. */
function carryBack(mask: Uint32Array, column: ColumnPath, tables: MaskTables): Uint32Array {
  let result = mask;
  for (let i = column.links.length - 1; i >= 0; i--) result = followLink(result, column.links[i]!, tables);
  return result;
}

/** Rows whose link points to a row of the mask. */
function followLink(mask: Uint32Array, step: LinkStep, tables: MaskTables): Uint32Array {
  const source = tables.table(step.table);
  const target = tables.table(step.target);
  const link = source.column(step.column);
  if (link.kind !== "text") throw new TypeError(`Column ${step.column} is not a link.`);
  const { values } = link.dictionary;
  const points = new Uint8Array(values.length + 1);
  for (let code = 0; code < values.length; code++) {
    const id = values[code];
    const row = id === undefined ? undefined : target.rowOf(id);
    if (row !== undefined && hasBit(mask, row)) points[code + 1] = 1;
  }
  return scatter(link.codes, points, source.capacity);
}

/** Masks of single leaves over the table that has their column: one tight loop per type. */
type Wide = WideColumn<"int"> | WideColumn<"datetime">;

/** Rows that have a value, at the column's own table. */
function presentMask(column: ColumnPath, table: MaskTable): Uint32Array {
  if (column.column === "id") return table.live.slice(0, maskWords(table.capacity));
  const data = table.column(column.column);
  if (data.kind === "text") return withOmitted(scatter(data.codes, presence(data.dictionary), table.capacity), data);
  if (data.kind === "json") {
    requireAll(data, column, table);
    return dictionaryMask(data, table, jsonPredicate({ kind: "exists", column }), true);
  }
  if (data.kind === "multiple")
    return withOmitted(
      itemsMask(data, table.capacity, () => true),
      data,
    );
  return data.present.slice(0, maskWords(table.capacity));
}

function withOmitted(mask: Uint32Array, { omitted }: Omitting): Uint32Array {
  for (const row of omitted ?? []) setBit(mask, row);
  return mask;
}

/** @throws {LodestoneError} INVALID when some value is not kept. */
function requireAll({ omitted }: Omitting, { column }: ColumnPath, table: MaskTable): void {
  for (const row of omitted ?? []) {
    throw valueNotKept(column, table.idOf(row) ?? "");
  }
}

/** Rows where the leaf is `wanted`; where the value is null it is neither true nor false. */
function leafMask(leaf: Exclude<FilterLeaf, { kind: "exists" }>, wanted: boolean, table: MaskTable): Uint32Array {
  if (leaf.column.column === "id") return idMask(leaf as ContentLeaf, wanted, table);
  if (leaf.kind === "constant") {
    return leaf.value === wanted ? presentMask(leaf.column, table) : new Uint32Array(maskWords(table.capacity));
  }
  const data = table.column(leaf.column.column);
  if (data.kind === "json" || data.kind === "multiple" || (data.kind === "text" && leaf.kind !== "in"))
    requireAll(data, leaf.column, table);
  if (leaf.kind === "includes") return includesMask(leaf, wanted, data as MultipleColumn, table.capacity);
  switch (data.kind) {
    case "text":
      return textMask(leaf, wanted, data, table);
    case "json":
      return dictionaryMask(data, table, jsonPredicate(leaf), wanted);
    case "int":
    case "datetime":
      return orDenied(wideMask(leaf, data, table.capacity), wanted, data.present);
    case "float":
      return orDenied(floatMask(leaf, data, table.capacity), wanted, data.present);
    case "bool":
      return orDenied(boolMask(leaf, data, table.capacity), wanted, data.present);
    default:
      throw new TypeError(`A ${data.kind} column has no ${leaf.kind}; the parser lets none through.`);
  }
}

/** A mask of where a leaf is true, as it is or turned to where it is false. */
function orDenied(mask: Uint32Array, wanted: boolean, present: Uint32Array): Uint32Array {
  return wanted ? mask : complement(mask, present);
}

/** Rows selected by `truth` of their codes: truth[code + 1], truth[0] for null. */
function scatter(codes: Int32Array, truth: Uint8Array, capacity: number): Uint32Array {
  const mask = new Uint32Array(maskWords(capacity));
  for (let word = 0, row = 0; row < capacity; word++) {
    const end = Math.min(row + 32, capacity);
    let bits = 0;
    for (let bit = 0; row < end; row++, bit++) bits |= truth[codes[row]! + 1]! << bit;
    mask[word] = bits;
  }
  return mask;
}

function presence(dictionary: Dictionary): Uint8Array {
  return new Uint8Array(dictionary.values.length + 1).fill(1, 1);
}

function textMask(leaf: ContentLeaf, wanted: boolean, data: CodedColumn<"text">, table: MaskTable): Uint32Array {
  if (leaf.kind !== "in") return dictionaryMask(data, table, textPredicate(leaf), wanted);
  const { dictionary } = data;
  const truth = wanted ? new Uint8Array(dictionary.values.length + 1) : presence(dictionary);
  for (const value of leaf.values) {
    const code = dictionary.codeOf(value as string);
    if (code !== undefined) truth[code + 1] = wanted ? 1 : 0;
  }
  const mask = scatter(data.codes, truth, table.capacity);
  // None of the operands, which are shorter, is the value.
  return wanted ? mask : withOmitted(mask, data);
}

function dictionaryMask(
  data: CodedColumn<"text"> | CodedColumn<"json">,
  table: MaskTable,
  predicate: (value: string) => boolean | null,
  wanted: boolean,
): Uint32Array {
  const { values } = data.dictionary;
  const truth = new Uint8Array(values.length + 1);
  for (let code = 0; code < values.length; code++) {
    const value = values[code];
    if (value !== undefined && predicate(value) === wanted) truth[code + 1] = 1;
  }
  return scatter(data.codes, truth, table.capacity);
}

function idMask(leaf: ContentLeaf, wanted: boolean, table: MaskTable): Uint32Array {
  const mask = new Uint32Array(maskWords(table.capacity));
  if (leaf.kind === "in") {
    for (const id of leaf.values) {
      const row = table.rowOf(id as string);
      if (row !== undefined) setBit(mask, row);
    }
  } else {
    const predicate = textPredicate(leaf);
    for (let row = 0; row < table.capacity; row++) {
      const id = table.idOf(row);
      if (id !== undefined && predicate(id)) setBit(mask, row);
    }
  }
  return orDenied(mask, wanted, table.live);
}

function includesMask(
  leaf: Extract<FilterLeaf, { kind: "includes" }>,
  wanted: boolean,
  data: MultipleColumn,
  capacity: number,
): Uint32Array {
  const predicate = itemPredicate(leaf.predicate);
  const { values } = data.dictionary;
  const truth = new Uint8Array(values.length + 1);
  truth[0] = predicate(null) === true ? 1 : 0;
  for (let code = 0; code < values.length; code++) {
    const value = values[code];
    if (value !== undefined && predicate(value) === true) truth[code + 1] = 1;
  }
  const found = leaf.quantifier === "any";
  return itemsMask(data, capacity, (items) => {
    for (let i = 0; i < items.length; i++) if (truth[items[i]! + 1] === 1) return found === wanted;
    return found !== wanted;
  });
}

function itemsMask(data: MultipleColumn, capacity: number, test: (items: Int32Array) => boolean): Uint32Array {
  const mask = new Uint32Array(maskWords(capacity));
  for (let row = 0; row < capacity; row++) {
    const items = data.items[row];
    if (items !== undefined && test(items)) setBit(mask, row);
  }
  return mask;
}

/** Values below the bound, or equal to one of several: int8 compared as a signed high and an unsigned low word. */
function wideMask(leaf: ContentLeaf, data: Wide, capacity: number): Uint32Array {
  if (leaf.kind === "in") return wideEquals(leaf.values as readonly bigint[], data, capacity);
  if (leaf.kind !== "range") throw new TypeError(`A number has no ${leaf.kind}; the parser lets none through.`);
  const bound = leaf.value as bigint;
  // x <= b is x < b + 1, of which the largest int8 has none; x > b and x >= b are the rest.
  const isInclusive = leaf.operator === "le" || leaf.operator === "gt";
  const below =
    isInclusive && bound === 2n ** 63n - 1n
      ? data.present.slice(0, maskWords(capacity))
      : wideBelow(isInclusive ? bound + 1n : bound, data, capacity);
  return leaf.operator === "lt" || leaf.operator === "le" ? below : complement(below, data.present);
}

function wideBelow(bound: bigint, { words, present }: Wide, capacity: number): Uint32Array {
  const high = Number(BigInt.asIntN(32, bound >> 32n));
  const low = Number(BigInt.asUintN(32, bound));
  const mask = new Uint32Array(maskWords(capacity));
  for (let word = 0, row = 0; row < capacity; word++) {
    const end = Math.min(row + 32, capacity);
    let bits = 0;
    for (let bit = 0; row < end; row++, bit++) {
      const top = words[2 * row + 1]!;
      if (top < high || (top === high && words[2 * row]! >>> 0 < low)) bits |= 1 << bit;
    }
    mask[word] = bits;
  }
  return intersect(mask, present);
}

function wideEquals(values: readonly bigint[], { words, present }: Wide, capacity: number): Uint32Array {
  const mask = new Uint32Array(maskWords(capacity));
  if (values.length === 1) {
    const high = Number(BigInt.asIntN(32, values[0]! >> 32n));
    const low = Number(BigInt.asIntN(32, values[0]!));
    for (let row = 0; row < capacity; row++) if (words[2 * row] === low && words[2 * row + 1] === high) setBit(mask, row);
    return intersect(mask, present);
  }
  // Low words first: few rows share one with a wanted value, and only for those both words are compared.
  const highsByLow = new Map<number, Set<number>>();
  for (const value of values) {
    const low = Number(BigInt.asIntN(32, value));
    const highs = highsByLow.get(low) ?? new Set();
    highsByLow.set(low, highs.add(Number(BigInt.asIntN(32, value >> 32n))));
  }
  for (let row = 0; row < capacity; row++) if (highsByLow.get(words[2 * row]!)?.has(words[2 * row + 1]!)) setBit(mask, row);
  return intersect(mask, present);
}

function floatMask(leaf: ContentLeaf, { values, present }: FloatColumn, capacity: number): Uint32Array {
  if (leaf.kind === "in") {
    const wanted = new Set(leaf.values);
    // A Set takes -0 for 0, as SQL does; an operand is never NaN.
    return fromTest(values, capacity, (value) => wanted.has(value), present);
  }
  if (leaf.kind !== "range") throw new TypeError(`A number has no ${leaf.kind}; the parser lets none through.`);
  const bound = leaf.value as number;
  // NaN is above everything: it is not below, and so in the complement.
  const isStrict = leaf.operator === "lt" || leaf.operator === "ge";
  const below = fromTest(values, capacity, isStrict ? (value) => value < bound : (value) => value <= bound, present);
  return leaf.operator === "lt" || leaf.operator === "le" ? below : complement(below, present);
}

function fromTest(values: Float64Array, capacity: number, test: (value: number) => boolean, present: Uint32Array): Uint32Array {
  const mask = new Uint32Array(maskWords(capacity));
  for (let word = 0, row = 0; row < capacity; word++) {
    const end = Math.min(row + 32, capacity);
    let bits = 0;
    for (let bit = 0; row < end; row++, bit++) if (test(values[row]!)) bits |= 1 << bit;
    mask[word] = bits;
  }
  return intersect(mask, present);
}

function boolMask(leaf: ContentLeaf, { values, present }: BoolColumn, capacity: number): Uint32Array {
  if (leaf.kind !== "in") throw new TypeError(`A bool has no ${leaf.kind}; the parser lets none through.`);
  const mask = new Uint32Array(maskWords(capacity));
  for (let word = 0; word < mask.length; word++) {
    let bits = 0;
    if (leaf.values.includes(true)) bits |= values[word]!;
    if (leaf.values.includes(false)) bits |= ~values[word]!;
    mask[word] = bits & present[word]!;
  }
  return mask;
}

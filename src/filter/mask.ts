/**
 * Compiles a filter tree to a bit mask over the rows of a table, a column at a time.
 *
 * A node is asked either "where is it true?" or "where is it false?"; what is in neither is unknown. AND, OR
 * and NOT of three-valued logic are then plain set operations (De Morgan holds in it), and no third mask is
 * needed. A leaf behind links is found in the table that has its column, and carried back link by link.
 */
import { complement, hasBit, intersect, isEmpty, maskWords, unite } from "./bit-mask.ts";
import { leafMask, presentMask, scatter } from "./mask-leaf.ts";
import type { MaskTable } from "./mask-table.ts";
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

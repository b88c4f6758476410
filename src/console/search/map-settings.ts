/** How the map is shown, kept in the address: its colours, sizes and layout, and whether it has captions. */
import type { Layout } from "../map/messages.ts";
import { type Params, route, tell } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";

export interface MapSettings {
  /** A column, or PLAIN; undefined: the one that is guessed. */
  readonly color: string | undefined;
  /** A column; undefined: all are of one size. */
  readonly sizes: string | undefined;
  readonly layout: Layout;
  readonly hasCaptions: boolean;
}

/** No column is called like this. */
export const PLAIN = "*plain";

const COLOR_TYPES: readonly string[] = ["string", "bool", "int"];
const NUMBER_TYPES: readonly string[] = ["int", "float"];

const namesOf = (columns: readonly ColumnSchema[], types: readonly string[]): readonly string[] =>
  columns.filter(({ type }) => types.includes(type)).map(({ name }) => name);

export const colorColumnsOf = ({ columns }: TableSchema): readonly string[] => namesOf(columns, COLOR_TYPES);
export const sizeColumnsOf = ({ columns }: TableSchema): readonly string[] => namesOf(columns, NUMBER_TYPES);

/** An address may name columns that are no more. */
export function mapSettingsOf({ color, sizes, layout, captions }: Params, table: TableSchema): MapSettings {
  const isColor = color === PLAIN || colorColumnsOf(table).includes(color ?? "");
  return {
    color: isColor ? color : undefined,
    sizes: sizeColumnsOf(table).includes(sizes ?? "") ? sizes : undefined,
    layout: layout === "neighbors" ? layout : "plane",
    hasCaptions: captions === "yes",
  };
}

/** Back leads past it: only the picture is another one. */
export function setMap(part: Partial<MapSettings>, table: TableSchema): void {
  const { color, sizes, layout, hasCaptions } = { ...mapSettingsOf(route.peek().params, table), ...part };
  tell({ color, sizes, layout: layout === "plane" ? undefined : layout, captions: hasCaptions ? "yes" : undefined }, true);
}

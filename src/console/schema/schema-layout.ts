/** Where the tables of a schema and their links stand in its picture. */
import { Graph, layout } from "@dagrejs/dagre";
import type { TableSchema } from "../state/server-content.ts";

export const BOX_WIDTH = 196;
export const HEAD_HEIGHT = 34;
export const LINE_HEIGHT = 21;
/** Columns shown in a box; of more, the others are counted. */
const MAX_LINES = 8;

/** How many of a table's columns its box shows. */
export const linesOf = ({ columns }: TableSchema): number => (columns.length > MAX_LINES + 1 ? MAX_LINES : columns.length);

/** More tables are not drawn: the picture would show nothing useful, and take long to lay out. */
export const MAX_DRAWN = 200;

const GAP = 32;
const LAYER_GAP = 54;
const MARGIN = 12;
const LOOP_WIDTH = 18;
const ROW_WIDTH = 4 * (BOX_WIDTH + GAP);

export interface Box {
  readonly table: TableSchema;
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly column: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

interface Picture {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly arrows: readonly Arrow[];
}

const boxHeight = ({ columns }: TableSchema): number =>
  HEAD_HEIGHT + Math.min(columns.length, MAX_LINES + 1) * LINE_HEIGHT + (columns.length === 0 ? 0 : 8);

interface Link {
  readonly from: string;
  readonly to: string;
  readonly column: string;
}

/** Linked tables are in layers, in the direction of the links; tables without links are in rows below. */
export function drawSchema(all: readonly TableSchema[]): Picture {
  const tables = all.slice(0, MAX_DRAWN);
  const names = new Set(tables.map(({ name }) => name));
  const links = tables.flatMap(({ name, columns }) =>
    columns.flatMap(({ name: column, link }): Link[] =>
      link !== undefined && names.has(link.table) ? [{ from: name, to: link.table, column }] : [],
    ),
  );
  const linked = new Set(links.flatMap(({ from, to }) => [from, to]));
  const layers = layOut(
    tables.filter(({ name }) => linked.has(name)),
    links,
  );
  return withRows(
    layers,
    tables.filter(({ name }) => !linked.has(name)),
  );
}

function layOut(tables: readonly TableSchema[], links: readonly Link[]): Picture {
  if (tables.length === 0) return { width: 0, height: 0, boxes: [], arrows: [] };
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: GAP, ranksep: LAYER_GAP, marginx: MARGIN, marginy: MARGIN });
  for (const table of tables) graph.setNode(table.name, { width: BOX_WIDTH, height: boxHeight(table) });
  for (const { from, to, column } of links) if (from !== to) graph.setEdge(from, to, {}, column);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const boxes = tables.map((table): Box => {
    const node = graph.node(table.name) as { x: number; y: number; height: number };
    return { table, x: node.x - BOX_WIDTH / 2, y: node.y - node.height / 2, height: node.height };
  });
  const arrows = links.map(({ from, to, column }): Arrow => {
    const start = boxes.find(({ table }) => table.name === from) as Box;
    const end = boxes.find(({ table }) => table.name === to) as Box;
    if (from === to) return { from, to, column, points: loopOf(start, column) };
    const { points } = graph.edge({ v: from, w: to, name: column }) as { points: Arrow["points"] };
    const between = points.slice(1, -1);
    // Against the direction of the layers it leaves at the left.
    const [first, last] = [between[0] ?? end, between.at(-1) ?? start];
    const begin = { x: sideNear(start, first.x), y: heightOf(start, column) };
    return { from, to, column, points: [begin, ...between, { x: sideNear(end, last.x), y: end.y + HEAD_HEIGHT / 2 }] };
  });
  // A loop extends beyond the last layer.
  return { width: width + LOOP_WIDTH - MARGIN, height, boxes, arrows };
}

/** The left or the right side of a box. */
const sideNear = ({ x }: Box, toX: number): number => (toX < x + BOX_WIDTH / 2 ? x : x + BOX_WIDTH);

/** Of the line of a column; of those that are counted, that of their number. */
function heightOf({ table, y }: Box, column: string): number {
  const line = Math.min(
    table.columns.findIndex(({ name }) => name === column),
    linesOf(table),
  );
  return y + HEAD_HEIGHT + (line + 0.5) * LINE_HEIGHT + 2;
}

/** The arrow of a table that links to itself: out at the column, and in again at its name. */
function loopOf(box: Box, column: string): Arrow["points"] {
  const right = box.x + BOX_WIDTH;
  const from = heightOf(box, column);
  const to = box.y + HEAD_HEIGHT / 2;
  return [
    { x: right, y: from },
    { x: right + LOOP_WIDTH, y: from },
    { x: right + LOOP_WIDTH, y: to },
    { x: right, y: to },
  ];
}

function withRows(layers: Picture, single: readonly TableSchema[]): Picture {
  const boxes = [...layers.boxes];
  const most = Math.max(layers.width, ROW_WIDTH);
  let [x, y, width, rowHeight] = [MARGIN, layers.height + MARGIN, layers.width, 0];
  for (const table of single) {
    if (x + BOX_WIDTH > most) [x, y, rowHeight] = [MARGIN, y + rowHeight + GAP, 0];
    const height = boxHeight(table);
    boxes.push({ table, x, y, height });
    width = Math.max(width, x + BOX_WIDTH + MARGIN);
    rowHeight = Math.max(rowHeight, height);
    x += BOX_WIDTH + GAP;
  }
  return { width, height: single.length === 0 ? layers.height : y + rowHeight + MARGIN, boxes, arrows: layers.arrows };
}

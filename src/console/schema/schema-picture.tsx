/**
 * Tables and their links as a picture. Each table is itself a hyperlink, so that the keyboard can reach and
 * choose it.
 */

import { Graph, layout } from "@dagrejs/dagre";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Place } from "../api/client.ts";
import { counted } from "../parts/numbers.ts";
import { hrefOf } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { typeInWords } from "./schema-operation.ts";

interface SchemaPictureProps {
  place: Place;
  tables: readonly TableSchema[];
  chosen: string | undefined;
}

const NAME_CHARACTERS = 21;
/** Of a column, beside its type. */
const COLUMN_CHARACTERS = 15;

export function SchemaPicture({ place, tables, chosen }: SchemaPictureProps): JSX.Element {
  const picture = useMemo(() => drawSchema(tables), [tables]);
  return (
    <div class="card schema-picture">
      <div class="schema-scroll" role="region" tabIndex={0} aria-label="Picture of the tables">
        <svg width={picture.width} height={picture.height} role="group" aria-label="Tables and their links">
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
              <path d="M0 0 8 4 0 8z" />
            </marker>
          </defs>
          <g>
            {picture.arrows.map((arrow) => (
              <path
                key={`${arrow.from}\n${arrow.column}`}
                class={`arrow${arrow.from === chosen || arrow.to === chosen ? " chosen" : ""}`}
                d={pathOf(arrow)}
                marker-end="url(#arrow)"
              />
            ))}
          </g>
          {picture.boxes.map((box) => (
            <TableBox key={box.table.name} place={place} box={box} isChosen={box.table.name === chosen} />
          ))}
        </svg>
      </div>
      {tables.length > MAX_DRAWN && (
        <p class="muted small">
          The first {MAX_DRAWN} of {tables.length} tables are drawn. All can be chosen above.
        </p>
      )}
    </div>
  );
}

function TableBox({ place, box: { table, x, y, height }, isChosen }: { place: Place; box: Box; isChosen: boolean }): JSX.Element {
  const { name, columns } = table;
  const lines = columns.slice(0, columns.length > MAX_LINES + 1 ? MAX_LINES : MAX_LINES + 1);
  const links = columns.flatMap(({ link }) => (link === undefined ? [] : [link.table]));
  const said = `${name}, ${counted(columns.length, "column")}${links.length === 0 ? "" : `, links to ${links.join(", ")}`}`;
  return (
    <g class={`table-box${isChosen ? " chosen" : ""}`}>
      <a href={hrefOf("schema", place, name)} aria-label={said} aria-current={isChosen ? "true" : undefined}>
        <title>{name}</title>
        <rect x={x} y={y} width={BOX_WIDTH} height={height} rx="9" />
        <text class="box-name" x={x + 12} y={y + 22}>
          {cut(name, NAME_CHARACTERS)}
        </text>
      </a>
      {lines.length > 0 && <line x1={x} x2={x + BOX_WIDTH} y1={y + HEAD_HEIGHT} y2={y + HEAD_HEIGHT} />}
      {lines.map((column, i) => (
        <ColumnLine key={column.name} column={column} x={x} y={y + HEAD_HEIGHT + (i + 1) * LINE_HEIGHT - 3} />
      ))}
      {lines.length < columns.length && (
        <text class="box-type" x={x + 12} y={y + HEAD_HEIGHT + (lines.length + 1) * LINE_HEIGHT - 3}>
          {columns.length - lines.length} more
        </text>
      )}
    </g>
  );
}

function ColumnLine({ column, x, y }: { column: ColumnSchema; x: number; y: number }): JSX.Element {
  return (
    <>
      <text class={column.type === "vector" ? "box-column vector" : "box-column"} x={x + 12} y={y}>
        {cut(column.name, COLUMN_CHARACTERS)}
      </text>
      <text class="box-type" x={x + BOX_WIDTH - 12} y={y} text-anchor="end">
        {column.link === undefined ? typeInWords(column) : "link"}
      </text>
    </>
  );
}

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** A smooth line through the points. */
function pathOf({ points }: Arrow): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  const parts = [`M${first.x} ${first.y}`];
  for (const [i, point] of rest.entries()) {
    const next = rest[i + 1];
    if (next === undefined) parts.push(`L${point.x} ${point.y}`);
    else parts.push(`Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`);
  }
  return parts.join("");
}

const BOX_WIDTH = 196;
const HEAD_HEIGHT = 34;
const LINE_HEIGHT = 21;
/** Columns shown in a box; the others are counted. */
const MAX_LINES = 8;

/** More tables are not drawn: the picture would show nothing useful, and take long to lay out. */
const MAX_DRAWN = 200;

const GAP = 32;
const LAYER_GAP = 54;
const MARGIN = 12;
const LOOP_WIDTH = 18;
const ROW_WIDTH = 4 * (BOX_WIDTH + GAP);

interface Box {
  readonly table: TableSchema;
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

interface Arrow {
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
function drawSchema(all: readonly TableSchema[]): Picture {
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
    if (from === to) return { from, to, column, points: loopOf(boxes.find(({ table }) => table.name === from) as Box) };
    const { points } = graph.edge({ v: from, w: to, name: column }) as { points: Arrow["points"] };
    return { from, to, column, points };
  });
  // A loop extends beyond the last layer.
  return { width: width + LOOP_WIDTH - MARGIN, height, boxes, arrows };
}

/** The arrow of a table that links to itself: out at the top of its right side, and in again below. */
function loopOf({ x, y }: Box): Arrow["points"] {
  const right = x + BOX_WIDTH;
  return [
    { x: right, y: y + 8 },
    { x: right + LOOP_WIDTH, y: y + 8 },
    { x: right + LOOP_WIDTH, y: y + HEAD_HEIGHT - 8 },
    { x: right, y: y + HEAD_HEIGHT - 8 },
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

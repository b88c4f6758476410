/**
 * Tables and their links as a picture, which can be zoomed and searched. Each table is itself a hyperlink, so that the
 * keyboard can reach and choose it.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Place } from "../api/client.ts";
import { submitting, TextField } from "../parts/form.tsx";
import { counted } from "../parts/numbers.ts";
import { go, hrefOf } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { type Arrow, BOX_WIDTH, type Box, drawSchema, HEAD_HEIGHT, LINE_HEIGHT, linesOf, MAX_DRAWN } from "./schema-layout.ts";
import { typeInWords } from "./schema-operation.ts";

interface SchemaPictureProps {
  place: Place;
  tables: readonly TableSchema[];
  chosen: string | undefined;
}

const NAME_CHARACTERS = 21;
/** Of a column, beside its type. */
const COLUMN_CHARACTERS = 15;
const ZOOM_STEP = 1.25;
const LEAST_ZOOM = 0.02;
const MOST_ZOOM = 3;
/** Of the frame around the picture, and how much of the window's height it takes at most (schema.css). */
const PADDING = 8;
const FRAME_SHARE = 0.76;

export function SchemaPicture({ place, tables, chosen }: SchemaPictureProps): JSX.Element {
  const picture = useMemo(() => drawSchema(tables), [tables]);
  const frame = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [wanted, setWanted] = useState("");
  const looked = wanted.trim().toLowerCase();
  const found = picture.boxes.filter(({ table }) => looked !== "" && isIn(table, looked));
  const shown = found[0]?.table.name ?? chosen;
  const zoomTo = (next: number): void => setZoom(Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, next)));

  // What is chosen, or else found, is in view.
  useEffect(() => {
    const box = picture.boxes.find(({ table }) => table.name === shown);
    if (frame.current !== null && box !== undefined) bringIntoView(frame.current, box, zoom);
  }, [picture, shown, zoom]);

  function fit(): void {
    const { clientWidth } = frame.current as HTMLDivElement;
    zoomTo(Math.min(1, (clientWidth - 2 * PADDING) / picture.width, (innerHeight * FRAME_SHARE - 2 * PADDING) / picture.height));
  }

  return (
    <div class="card schema-picture">
      <form
        class="schema-tools"
        role="search"
        onSubmit={submitting(() => {
          if (found[0] !== undefined) go("schema", place, found[0].table.name);
        })}
      >
        <TextField
          label="Find a table or a column"
          hint={looked === "" ? undefined : `In ${found.length} of ${counted(picture.boxes.length, "table")}`}
          type="search"
          value={wanted}
          onInput={setWanted}
        />
        <div class="actions" role="group" aria-label="Zoom">
          <button type="button" aria-label="Zoom out" onClick={() => zoomTo(zoom / ZOOM_STEP)}>
            −
          </button>
          <button type="button" aria-label={`Zoom ${Math.round(zoom * 100)} %, back to 100 %`} onClick={() => setZoom(1)}>
            {Math.round(zoom * 100)} %
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => zoomTo(zoom * ZOOM_STEP)}>
            +
          </button>
          <button type="button" onClick={fit}>
            Fit
          </button>
        </div>
      </form>
      <div ref={frame} class="schema-scroll" role="region" tabIndex={0} aria-label="Picture of the tables">
        <svg
          width={picture.width * zoom}
          height={picture.height * zoom}
          viewBox={`0 0 ${picture.width} ${picture.height}`}
          role="group"
          aria-label="Tables and their links"
        >
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
              >
                <title>{`${arrow.from}.${arrow.column} → ${arrow.to}`}</title>
              </path>
            ))}
          </g>
          {picture.boxes.map((box) => (
            <TableBox
              key={box.table.name}
              place={place}
              box={box}
              isChosen={box.table.name === chosen}
              isFaint={looked !== "" && !found.includes(box)}
            />
          ))}
        </svg>
      </div>
      {tables.length > MAX_DRAWN && (
        <p class="muted small">
          The first {MAX_DRAWN} of {tables.length} tables are drawn. All can be chosen at the side.
        </p>
      )}
    </div>
  );
}

/** @param looked  in small letters. */
const isIn = ({ name, columns }: TableSchema, looked: string): boolean =>
  [name, ...columns.map((column) => column.name)].some((text) => text.toLowerCase().includes(looked));

/** Scrolls the frame, and only it, if the box is not all in it. */
function bringIntoView(frame: HTMLElement, { x, y, height }: Box, zoom: number): void {
  const axis = (from: number, length: number, scrolled: number, client: number): number =>
    from >= scrolled && from + length <= scrolled + client ? scrolled : from + length / 2 - client / 2;
  frame.scrollTo(
    axis(x * zoom + PADDING, BOX_WIDTH * zoom, frame.scrollLeft, frame.clientWidth),
    axis(y * zoom + PADDING, height * zoom, frame.scrollTop, frame.clientHeight),
  );
}

interface TableBoxProps {
  place: Place;
  box: Box;
  isChosen: boolean;
  /** Something is looked for, and it is not in this table. */
  isFaint: boolean;
}

function TableBox({ place, box: { table, x, y, height }, isChosen, isFaint }: TableBoxProps): JSX.Element {
  const { name, columns } = table;
  const lines = columns.slice(0, linesOf(table));
  const links = columns.flatMap(({ link }) => (link === undefined ? [] : [link.table]));
  const said = `${name}, ${counted(columns.length, "column")}${links.length === 0 ? "" : `, links to ${links.join(", ")}`}`;
  return (
    <g class={`table-box${isChosen ? " chosen" : ""}${isFaint ? " faint" : ""}`}>
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

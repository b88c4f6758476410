/**
 * Tables and their links as a picture. Each table is itself a hyperlink, so that the keyboard can reach and
 * choose it.
 */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Place } from "../api/paths.ts";
import { hrefOf } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { type Arrow, BOX_WIDTH, type Box, drawSchema, HEAD_HEIGHT, LINE_HEIGHT, MAX_DRAWN, MAX_LINES } from "./layout.ts";
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
  const said = `${name}, ${columns.length} ${columns.length === 1 ? "column" : "columns"}${links.length === 0 ? "" : `, links to ${links.join(", ")}`}`;
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

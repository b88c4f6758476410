/** The heads of a table's columns: sort by a click, move by dragging, widen by the edge; by keyboard, too. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ColumnSchema } from "../state/server-content.ts";
import type { ColumnLayout } from "./column-layout.ts";
import type { RecordQuestion } from "./record-pages.ts";

export const ID_COLUMN: ColumnSchema = { name: "id", type: "string" };

/** CSS pixels for a key. */
const KEY_STEP = 20;
/** The pointer moves farther than this before a click becomes a drag. */
const DRAG_REACH = 6;

interface GridHeadProps {
  /** The id first. */
  columns: readonly ColumnSchema[];
  layout: ColumnLayout;
  sort: RecordQuestion["sort"];
  /** undefined: rows cannot be selected. */
  areAllSelected: boolean | undefined;
  onSort: (column: string) => void;
  onSelectAll: (isSelected: boolean) => void;
}

/** A head that is being dragged, and before which one it would be dropped. */
interface Drag {
  readonly name: string;
  readonly before: number;
}

export function GridHead({ columns, layout, sort, areAllSelected, onSort, onSelectAll }: GridHeadProps): JSX.Element {
  const row = useRef<HTMLDivElement>(null);
  const begun = useRef<{ x: number; name: string } | undefined>(undefined);
  const [drag, setDrag] = useState<Drag | undefined>(undefined);

  const heads = (): HTMLElement[] => [...(row.current as HTMLElement).children] as HTMLElement[];

  /** The id stays first. */
  const placeAt = (x: number): number =>
    Math.max(
      1,
      heads().filter((head) => {
        const { left, width } = head.getBoundingClientRect();
        return left + width / 2 < x;
      }).length,
    );

  /** @param before  among the columns that are shown. */
  function drop(name: string, before: number): void {
    const next = columns[before];
    const others = layout.columns.filter((column) => column.name !== name);
    if (next?.name !== name) layout.move(name, next === undefined ? others.length : others.indexOf(next));
  }

  function moveHead(event: PointerEvent): void {
    const begin = begun.current;
    if (begin === undefined || Math.abs(event.clientX - begin.x) < DRAG_REACH) return;
    // From here on the pointer belongs to the row, and a click on the button no longer sorts.
    row.current?.setPointerCapture(event.pointerId);
    setDrag({ name: begin.name, before: placeAt(event.clientX) });
  }

  function endDrag(isDropped: boolean): void {
    begun.current = undefined;
    if (drag !== undefined && isDropped) drop(drag.name, drag.before);
    setDrag(undefined);
  }

  function pressKey(event: KeyboardEvent, { name }: ColumnSchema, at: number): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || !event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (!event.ctrlKey && !event.metaKey) layout.resize(name, widthOf(heads()[at] as HTMLElement) + step * KEY_STEP);
    else if (name !== "id" && at + step >= 1) {
      drop(name, step > 0 ? at + 2 : at - 1);
      // An element that is moved in the page loses the focus.
      const focused = event.target as HTMLElement;
      requestAnimationFrame(() => focused.focus());
    }
  }

  return (
    <div
      ref={row}
      class="grid-row grid-head"
      role="row"
      aria-rowindex={1}
      onPointerMove={moveHead}
      onPointerUp={() => endDrag(true)}
      onPointerCancel={() => endDrag(false)}
    >
      {columns.map((column, at) => {
        const { name, type, vector } = column;
        const direction = sort?.column === name ? sort.direction : undefined;
        const isSortable = type !== "vector" && type !== "json" && type !== "multiple";
        return (
          <div
            key={name}
            role="columnheader"
            // A head with a button has the focus there.
            tabIndex={isSortable ? undefined : 0}
            class={`${cellClass(column)}${drag?.name === name ? " dragged" : ""}${drag?.before === at ? " drop-here" : ""}`}
            style={widthStyle(layout.widthOf(name))}
            aria-sort={direction === "asc" ? "ascending" : direction === "desc" ? "descending" : "none"}
            onKeyDown={(event) => pressKey(event, column, at)}
            onPointerDown={(event) => {
              if (name !== "id" && event.button === 0) begun.current = { x: event.clientX, name };
            }}
          >
            {column === ID_COLUMN && areAllSelected !== undefined && (
              <input
                type="checkbox"
                checked={areAllSelected}
                aria-label="Select all loaded rows"
                onChange={(event) => onSelectAll(event.currentTarget.checked)}
              />
            )}
            {isSortable ? (
              <button type="button" onClick={() => onSort(name)}>
                <bdi>{name}</bdi>
                {direction !== undefined && <span aria-hidden="true"> {direction === "asc" ? "↑" : "↓"}</span>}
              </button>
            ) : (
              <bdi>{name}</bdi>
            )}
            <span class="type">{vector === undefined ? type : `vector · ${vector.dimension}`}</span>
            <Edge onResize={(width) => layout.resize(name, width)} />
          </div>
        );
      })}
    </div>
  );
}

/** The right edge of a head: dragged for another width; a double click brings back the first one. The keyboard has the head itself. */
function Edge({ onResize }: { onResize: (width: number | undefined) => void }): JSX.Element {
  const begun = useRef<{ x: number; width: number } | undefined>(undefined);
  return (
    <span
      class="edge"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.stopPropagation();
        event.currentTarget.setPointerCapture(event.pointerId);
        begun.current = { x: event.clientX, width: widthOf(event.currentTarget.parentElement as HTMLElement) };
      }}
      onPointerMove={(event) => {
        if (begun.current !== undefined) onResize(begun.current.width + event.clientX - begun.current.x);
      }}
      onPointerUp={() => {
        begun.current = undefined;
      }}
      onDblClick={() => onResize(undefined)}
    />
  );
}

const widthOf = (head: HTMLElement): number => Math.round(head.getBoundingClientRect().width);

/** Of the cells of a column that has a width of its own. */
export const widthStyle = (width: number | undefined): { flex: string; width: string } | undefined =>
  width === undefined ? undefined : { flex: `0 0 ${width}px`, width: `${width}px` };

export const cellClass = ({ type }: ColumnSchema): string =>
  `cell${type === "int" || type === "float" ? " number" : type === "bool" ? " narrow-cell" : ""}`;

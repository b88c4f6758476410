/** The spreadsheet: only the rows in view are in the page. Arrow keys move, Enter edits, Space selects. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Place } from "../api/client.ts";
import { forget, useKept } from "../state/kept.ts";
import type { ColumnSchema } from "../state/server-content.ts";
import { CellEditor, CellValue } from "./cell.tsx";
import type { RecordQuestion, TableRecord } from "./record-pages.ts";

interface GridProps {
  /** Names what is kept of it. */
  kept: string;
  place: Place;
  columns: readonly ColumnSchema[];
  /** The rows that have been read, by their index. */
  rows: ReadonlyMap<number, TableRecord>;
  /** All rows that pass the filter, including those not read. */
  count: number;
  sort: RecordQuestion["sort"];
  selected: ReadonlySet<string>;
  mayEdit: boolean;
  onSort: (column: string) => void;
  onSelect: (id: string) => void;
  /** Selects all rows that have been read, or none. */
  onSelectAll: (isSelected: boolean) => void;
  /** Reports which rows are in view: from the first up to the last, exclusive. */
  onView: (first: number, last: number) => void;
  /** The record that is being edited must not be released while it is out of view. */
  onEdit: (id: string | undefined) => void;
  /** @throws what the server says against it. */
  onSave: (record: TableRecord, column: ColumnSchema, text: string) => Promise<void>;
}

interface Editing {
  readonly id: string;
  readonly column: string;
}

const HEAD_HEIGHT = 52;
const ROW_HEIGHT = 38;
const ROWS_AROUND = 8;

const ID_COLUMN: ColumnSchema = { name: "id", type: "string" };

export function Grid({
  kept,
  place,
  columns,
  rows,
  count,
  sort,
  selected,
  mayEdit,
  onSort,
  onSelect,
  onSelectAll,
  onView,
  onEdit,
  onSave,
}: GridProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const saver = useRef<(() => Promise<boolean>) | undefined>(undefined);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState({ row: 0, column: 0 });
  const [editing, setEditing] = useKept<Editing | undefined>(`editing ${kept}`, () => undefined);
  const all = [ID_COLUMN, ...columns];
  const heights = scrollHeights(count, view.height);
  const top = view.top * heights.scale;
  const first = Math.max(0, Math.min(count, Math.floor(top / ROW_HEIGHT)) - ROWS_AROUND);
  const last = Math.min(count, Math.ceil((top + view.height) / ROW_HEIGHT) + ROWS_AROUND);

  // Tab leads into the grid wherever it is scrolled to.
  const tabRow = active.row >= first && active.row < last ? active.row : Math.min(Math.ceil(top / ROW_HEIGHT), last - 1);

  const shownRows = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
  // Each row has a key of its own: while others write, a record may appear in two pages.
  const shownIds = new Set<string>();
  function keyOf(row: number, record: TableRecord | undefined): string | number {
    if (record === undefined || shownIds.has(record.id)) return row;
    shownIds.add(record.id);
    return record.id;
  }
  // A cell that is being edited stays in the page when it is scrolled out of view, because it holds what was typed.
  const editedRow = editing === undefined ? undefined : [...rows.keys()].find((row) => rows.get(row)?.id === editing.id);
  if (editedRow !== undefined && editedRow < first) shownRows.unshift(editedRow);
  else if (editedRow !== undefined && editedRow >= last) shownRows.push(editedRow);

  useEffect(() => onView(first, last), [first, last, count]);
  useEffect(() => onEdit(editing?.id), [editing?.id]);

  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    const observer = new ResizeObserver(() => setView((old) => ({ ...old, height: element.clientHeight })));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  function moveTo(row: number, column: number): void {
    const next = { row: clamp(row, count), column: clamp(column, all.length) };
    setActive(next);
    const element = frame.current as HTMLDivElement;
    const from = next.row * ROW_HEIGHT;
    const scrolled = element.scrollTop * heights.scale;
    if (from < scrolled) element.scrollTop = from / heights.scale;
    else if (from + ROW_HEIGHT + HEAD_HEIGHT > scrolled + element.clientHeight)
      element.scrollTop = (from + ROW_HEIGHT + HEAD_HEIGHT - element.clientHeight) / heights.scale;
    requestAnimationFrame(() => element.querySelector<HTMLElement>('[tabindex="0"][role="gridcell"]')?.focus());
  }

  /** What was typed in another cell is saved first; if it is refused, that cell stays open. */
  async function edit(record: TableRecord | undefined, column: ColumnSchema | undefined): Promise<void> {
    if (!mayEdit || record === undefined || column === undefined || column === ID_COLUMN) return;
    if (editing?.id === record.id && editing.column === column.name) return;
    if (editing !== undefined && (await saver.current?.()) === false) return;
    editOnly({ id: record.id, column: column.name });
  }

  function editOnly(next: Editing | undefined): void {
    if (editing !== undefined) forget(keyOfText(editing));
    setEditing(next);
  }
  const keyOfText = ({ id, column }: Editing): string => `text ${kept} ${column} ${id}`;

  function pressKey(event: KeyboardEvent): void {
    const { row, column } = active;
    const page = Math.max(1, Math.floor(view.height / ROW_HEIGHT) - 1);
    const moves: Record<string, readonly [number, number]> = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [row - page, column],
      PageDown: [row + page, column],
      Home: [row, 0],
      End: [row, all.length - 1],
    };
    const move = moves[event.key];
    if (move !== undefined) moveTo(...move);
    else if (event.key === "Enter" || event.key === "F2") void edit(rows.get(row), all[column]);
    else if (event.key === " " && rows.has(row) && mayEdit) onSelect((rows.get(row) as TableRecord).id);
    else return;
    event.preventDefault();
  }

  function stopEditing(): void {
    editOnly(undefined);
    moveTo(active.row, active.column);
  }

  return (
    <div
      ref={frame}
      class="grid"
      role="grid"
      tabIndex={-1}
      aria-label="Records"
      aria-rowcount={count + 1}
      aria-colcount={all.length}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1}>
        {all.map((column) => {
          const direction = sort?.column === column.name ? sort.direction : undefined;
          const isSortable = column.type !== "vector" && column.type !== "json" && column.type !== "multiple";
          return (
            <div
              key={column.name}
              role="columnheader"
              class={cellClass(column)}
              aria-sort={direction === "asc" ? "ascending" : direction === "desc" ? "descending" : "none"}
            >
              {column === ID_COLUMN && mayEdit && (
                <input
                  type="checkbox"
                  checked={rows.size > 0 && selected.size === rows.size}
                  aria-label="Select all rows that have been read"
                  onChange={(event) => onSelectAll(event.currentTarget.checked)}
                />
              )}
              {isSortable ? (
                <button type="button" onClick={() => onSort(column.name)}>
                  <bdi>{column.name}</bdi>
                  {direction !== undefined && <span aria-hidden="true"> {direction === "asc" ? "↑" : "↓"}</span>}
                </button>
              ) : (
                <bdi>{column.name}</bdi>
              )}
              <span class="type">{column.vector === undefined ? column.type : `vector · ${column.vector.dimension}`}</span>
            </div>
          );
        })}
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${heights.body}px` }} onKeyDown={pressKey}>
        {shownRows.map((row) => {
          const record = rows.get(row);
          const isSelected = record !== undefined && selected.has(record.id);
          return (
            <div
              key={keyOf(row, record)}
              class={`grid-row${isSelected ? " selected" : ""}`}
              role="row"
              aria-rowindex={row + 2}
              aria-selected={isSelected}
              style={{ top: `${row * ROW_HEIGHT - top + view.top}px` }}
            >
              {all.map((column, j) => {
                const isActive = tabRow === row && active.column === j;
                const isEdited = record !== undefined && editing?.id === record.id && editing.column === column.name;
                return (
                  <div
                    key={column.name}
                    role="gridcell"
                    class={`${cellClass(column)}${isEdited ? " edited" : ""}`}
                    tabIndex={isActive ? 0 : -1}
                    onFocusIn={() => setActive({ row, column: j })}
                    onDblClick={() => void edit(record, column)}
                  >
                    {record === undefined && column === ID_COLUMN && <span class="muted">…</span>}
                    {record !== undefined && column === ID_COLUMN && mayEdit && (
                      <input
                        type="checkbox"
                        tabIndex={-1}
                        checked={isSelected}
                        aria-label={`Select ${record.id}`}
                        onChange={() => onSelect(record.id)}
                      />
                    )}
                    {isEdited ? (
                      <CellEditor
                        kept={keyOfText(editing as Editing)}
                        column={column}
                        value={record[column.name]}
                        onSave={(text) => onSave(record, column, text)}
                        onClose={stopEditing}
                        saver={saver}
                      />
                    ) : (
                      record !== undefined && <CellValue column={column} value={record[column.name]} place={place} />
                    )}
                  </div>
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Browsers do not draw taller elements; beyond this height a step of the scroll bar is several rows. */
const MOST_PIXELS = 15_000_000;

/** @returns the height of the rows' element, and how many pixels of rows one scrolled pixel is. */
function scrollHeights(count: number, viewHeight: number): { readonly body: number; readonly scale: number } {
  const all = count * ROW_HEIGHT;
  const body = Math.min(all, MOST_PIXELS);
  return { body, scale: body === all ? 1 : (all - viewHeight) / (body - viewHeight) };
}

const clamp = (value: number, count: number): number => Math.max(0, Math.min(count - 1, value));

const cellClass = ({ type }: ColumnSchema): string =>
  `cell${type === "int" || type === "float" ? " number" : type === "bool" ? " narrow-cell" : ""}`;

/** The spreadsheet: only the rows in sight are in the page. Arrow keys move, Enter edits, Space selects. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Place } from "../api/paths.ts";
import type { ColumnSchema } from "../state/catalog.ts";
import { CellEditor, CellValue } from "./cell.tsx";
import type { RecordQuestion, TableRecord } from "./record-page.ts";

interface GridProps {
  place: Place;
  columns: readonly ColumnSchema[];
  records: readonly TableRecord[];
  /** All that fit the filter, also those that are not read yet. */
  total: number | undefined;
  sort: RecordQuestion["sort"];
  selected: ReadonlySet<string>;
  mayEdit: boolean;
  onSort: (column: string) => void;
  onSelect: (id: string) => void;
  /** All that are read, or none. */
  onSelectAll: (isSelected: boolean) => void;
  onEnd: () => void;
  /** @throws what the server says against it. */
  onSave: (record: TableRecord, column: ColumnSchema, text: string) => Promise<void>;
}

const ROW_HEIGHT = 38;
const ROWS_AROUND = 8;
/** Rows before the end at which more is read. */
const READ_AHEAD = 40;

const ID_COLUMN: ColumnSchema = { name: "id", type: "string" };

export function Grid({
  place,
  columns,
  records,
  total,
  sort,
  selected,
  mayEdit,
  onSort,
  onSelect,
  onSelectAll,
  onEnd,
  onSave,
}: GridProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState({ row: 0, column: 0 });
  const [editing, setEditing] = useState<{ id: string; column: string } | undefined>(undefined);
  const all = [ID_COLUMN, ...columns];
  const first = Math.max(0, Math.floor(view.top / ROW_HEIGHT) - ROWS_AROUND);
  const last = Math.min(records.length, Math.ceil((view.top + view.height) / ROW_HEIGHT) + ROWS_AROUND);

  const shownRows = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
  // A cell that is being edited stays in the page when it is scrolled out of sight: what was typed is in it.
  const editedRow = editing === undefined ? -1 : records.findIndex(({ id }) => id === editing.id);
  if (editedRow !== -1 && editedRow < first) shownRows.unshift(editedRow);
  else if (editedRow >= last) shownRows.push(editedRow);

  useEffect(() => {
    if (last > records.length - READ_AHEAD) onEnd();
  }, [last, records.length]);

  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    const observer = new ResizeObserver(() => setView((old) => ({ ...old, height: element.clientHeight })));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  function moveTo(row: number, column: number): void {
    const next = { row: clamp(row, records.length), column: clamp(column, all.length) };
    setActive(next);
    const element = frame.current as HTMLDivElement;
    const top = next.row * ROW_HEIGHT;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + 2 * ROW_HEIGHT > element.scrollTop + element.clientHeight)
      element.scrollTop = top + 2 * ROW_HEIGHT - element.clientHeight;
    requestAnimationFrame(() => element.querySelector<HTMLElement>('[tabindex="0"][role="gridcell"]')?.focus());
  }

  function edit(record: TableRecord | undefined, column: ColumnSchema | undefined): void {
    if (mayEdit && record !== undefined && column !== undefined && column !== ID_COLUMN) setEditing({ id: record.id, column: column.name });
  }

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
    else if (event.key === "Enter" || event.key === "F2") edit(records[row], all[column]);
    else if (event.key === " " && records[row] !== undefined && mayEdit) onSelect(records[row].id);
    else return;
    event.preventDefault();
  }

  function stopEditing(): void {
    setEditing(undefined);
    moveTo(active.row, active.column);
  }

  return (
    <div
      ref={frame}
      class="grid"
      role="grid"
      tabIndex={-1}
      aria-label="Records"
      aria-rowcount={(total ?? records.length) + 1}
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
                  checked={records.length > 0 && selected.size === records.length}
                  aria-label="Select all that are read"
                  onChange={(event) => onSelectAll(event.currentTarget.checked)}
                />
              )}
              {isSortable ? (
                <button type="button" onClick={() => onSort(column.name)}>
                  <bdi>{column.name}</bdi> <span aria-hidden="true">{direction === "asc" ? "↑" : direction === "desc" ? "↓" : ""}</span>
                </button>
              ) : (
                <bdi>{column.name}</bdi>
              )}
              <span class="type">{column.vector === undefined ? column.type : `vector · ${column.vector.dimension}`}</span>
            </div>
          );
        })}
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${records.length * ROW_HEIGHT}px` }} onKeyDown={pressKey}>
        {shownRows.map((row) => {
          const record = records[row] as TableRecord;
          const isSelected = selected.has(record.id);
          return (
            <div
              key={record.id}
              class={`grid-row${isSelected ? " selected" : ""}`}
              role="row"
              aria-rowindex={row + 2}
              aria-selected={isSelected}
              style={{ top: `${row * ROW_HEIGHT}px` }}
            >
              {all.map((column, j) => {
                const isActive = active.row === row && active.column === j;
                const isEdited = editing?.id === record.id && editing.column === column.name;
                return (
                  <div
                    key={column.name}
                    role="gridcell"
                    class={`${cellClass(column)}${isEdited ? " edited" : ""}`}
                    tabIndex={isActive ? 0 : -1}
                    onClick={() => setActive({ row, column: j })}
                    onDblClick={() => edit(record, column)}
                  >
                    {column === ID_COLUMN && mayEdit && (
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
                        column={column}
                        value={record[column.name]}
                        onSave={async (text) => {
                          await onSave(record, column, text);
                          stopEditing();
                        }}
                        onCancel={stopEditing}
                      />
                    ) : (
                      <CellValue column={column} value={record[column.name]} place={place} />
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

const clamp = (value: number, count: number): number => Math.max(0, Math.min(count - 1, value));

const cellClass = ({ type }: ColumnSchema): string =>
  `cell${type === "int" || type === "float" ? " number" : type === "bool" ? " narrow-cell" : ""}`;

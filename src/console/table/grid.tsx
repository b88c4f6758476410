/** The spreadsheet: only the rows in view are in the page. Arrow keys move, Enter edits, Space selects. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Place } from "../api/client.ts";
import { forget, keptFor, useKept } from "../state/kept.ts";
import { hrefOf, openRecord, route } from "../state/route.ts";
import type { ColumnSchema } from "../state/server-content.ts";
import { CellEditor, CellValue } from "./cell.tsx";
import { type CellPlace, lastRead, rangeBetween, repeated, rowsOf, tabless } from "./cell-range.ts";
import { textOf } from "./cell-text.ts";
import type { CellWrites } from "./cell-writes.ts";
import type { ColumnLayout } from "./column-layout.ts";
import { cellClass, GridHead, ID_COLUMN, widthStyle } from "./grid-head.tsx";
import type { RecordQuestion, TableRecord } from "./record-pages.ts";

interface GridProps {
  /** Names what is kept of it. */
  kept: string;
  place: Place;
  table: string;
  /** Those that are shown, in their order. */
  columns: readonly ColumnSchema[];
  layout: ColumnLayout;
  /** The rows that have been read, by their index. */
  rows: ReadonlyMap<number, TableRecord>;
  /** All rows that pass the filter, including those not read. */
  count: number;
  sort: RecordQuestion["sort"];
  selected: ReadonlySet<string>;
  mayEdit: boolean;
  onSort: (column: string) => void;
  /** Another selection of rows. */
  onSelect: (ids: ReadonlySet<string>) => void;
  /** Selects all rows that have been read, or none. */
  onSelectAll: (isSelected: boolean) => void;
  /** Reports which rows are in view: from the first up to the last, exclusive. */
  onView: (first: number, last: number) => void;
  /** The record that is being edited must not be released while it is out of view. */
  onEdit: (id: string | undefined) => void;
  onUndo: () => void;
  /** A box was ticked or cleared. */
  onTick: (record: TableRecord, column: ColumnSchema, isTicked: boolean) => void;
  /** Cells of text, row by row, for the rows and columns from the first cell of the range on. */
  onPaste: (cells: readonly (readonly string[])[], from: { readonly row: number; readonly columns: readonly ColumnSchema[] }) => void;
  /** The cells on their way to the server. */
  writes: CellWrites;
}

interface Editing {
  readonly id: string;
  readonly column: string;
}

const isSameCell = (a: Editing | undefined, b: Editing): boolean => a?.id === b.id && a.column === b.column;

const HEAD_HEIGHT = 52;
const ROW_HEIGHT = 38;
const ROWS_AROUND = 8;

export function Grid({
  kept,
  place,
  table,
  columns,
  layout,
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
  onUndo,
  onTick,
  onPaste,
  writes,
}: GridProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  /** Where Shift and a click begin a range. */
  const lastSelected = useRef<number | undefined>(undefined);
  /** Whether the active cell is to have the focus as soon as it is in the page. */
  const wantsFocus = useRef(false);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState({ row: 0, column: 0 });
  /** Where a range of cells begins that ends at the active one; undefined: that one alone. */
  const [anchor, setAnchor] = useState<CellPlace | undefined>(undefined);
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

  // In the same task as the change: no key falls between an editor that has closed and its cell.
  useLayoutEffect(() => {
    if (!wantsFocus.current || tabRow !== active.row) return;
    wantsFocus.current = false;
    frame.current?.querySelector<HTMLElement>('[tabindex="0"][role="gridcell"]')?.focus();
  });

  const range = rangeBetween(anchor ?? active, active);
  const hasRange = anchor !== undefined && (range.top < range.bottom || range.left < range.right);

  /** @param isRange  whether the range goes on to there; as far as the rows between have been read. */
  function moveTo(row: number, column: number, isRange = false): void {
    const next = { row: clamp(row, count), column: clamp(column, all.length) };
    const begin = anchor ?? active;
    if (isRange) next.row = lastRead(rows, begin.row, next.row);
    setActive(next);
    setAnchor(isRange ? begin : undefined);
    const element = frame.current as HTMLDivElement;
    const from = next.row * ROW_HEIGHT;
    const scrolled = element.scrollTop * heights.scale;
    if (from < scrolled) element.scrollTop = from / heights.scale;
    else if (from + ROW_HEIGHT + HEAD_HEIGHT > scrolled + element.clientHeight)
      element.scrollTop = (from + ROW_HEIGHT + HEAD_HEIGHT - element.clientHeight) / heights.scale;
    wantsFocus.current = true;
  }

  /** What was typed in another cell is on its way first. */
  function edit(record: TableRecord | undefined, column: ColumnSchema | undefined, typed?: string): void {
    if (record !== undefined && column === ID_COLUMN) openRecord(record.id);
    if (!mayEdit || record === undefined || column === undefined || column === ID_COLUMN) return;
    const next = { id: record.id, column: column.name };
    if (isSameCell(editing, next)) return;
    if (editing !== undefined) commitEdited(editing);
    editOnly(next);
    // Typing replaces what the cell has. A field for dates takes no letters.
    const isReplaced = typed !== undefined && column.type !== "bool" && column.type !== "datetime";
    if (isReplaced) keptFor(keyOfText(next), () => typed);
  }

  function commitEdited({ id, column: name }: Editing): void {
    const record = editedRow === undefined ? undefined : rows.get(editedRow);
    // It may have been hidden meanwhile.
    const column = layout.columns.find((other) => other.name === name);
    if (record?.id !== id || column === undefined) return;
    const shown = shownText(record, column);
    const text = keptFor(keyOfText({ id, column: name }), () => shown);
    if (text !== shown) void writes.write(record, column, text);
  }

  /** What is on its way is shown already; what was refused is not. */
  function shownText(record: TableRecord, column: ColumnSchema): string {
    const written = writes.of(record.id, column.name);
    return written === undefined || written.fault !== "" ? textOf(column, record[column.name]) : written.text;
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
    const record = rows.get(row);
    const at = all[column];
    if (move !== undefined) moveTo(...move, event.shiftKey);
    else if (event.key === "Enter" || event.key === "F2") edit(record, at);
    else if (event.key === " " && record !== undefined && at?.type === "bool" && mayEdit) onTick(record, at, record[at.name] !== true);
    else if (event.key === " " && rows.has(row) && mayEdit) select(row, event.shiftKey);
    else if ((event.ctrlKey || event.metaKey) && event.key === "z") onUndo();
    else if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey && column > 0)
      edit(record, at, event.key);
    else return;
    event.preventDefault();
  }

  /** Shift and a click make a range up to the cell; a box or a link in it has the click for itself. */
  function press(event: MouseEvent, row: number, column: number): void {
    if (event.button !== 0 || (event.target as Element).closest("input, a, .cell-editor") !== null) return;
    if (!event.shiftKey) {
      setAnchor(undefined);
      return;
    }
    // No text is selected instead.
    event.preventDefault();
    moveTo(row, column, true);
  }

  /** @param isRange  with all rows between this and the one that was selected last. */
  function select(row: number, isRange: boolean): void {
    const record = rows.get(row);
    if (record === undefined) return;
    const next = new Set(selected);
    const begin = isRange ? (lastSelected.current ?? row) : row;
    lastSelected.current = row;
    const isTaken = !isRange && next.delete(record.id);
    for (let i = Math.min(begin, row); i <= Math.max(begin, row) && !isTaken; i++) {
      const between = rows.get(i);
      if (between !== undefined) next.add(between.id);
    }
    onSelect(next);
  }

  /** The range of cells, or else the selected rows, or else the active cell, as programs for spreadsheets exchange them. */
  function copy(event: ClipboardEvent): void {
    if (editing !== undefined) return;
    const chosen = hasRange ? [] : [...rows.values()].filter(({ id }) => selected.has(id));
    const records = chosen.length > 0 ? chosen : rowsOf(range).flatMap((row) => rows.get(row) ?? []);
    const copied = chosen.length > 0 ? all : all.slice(range.left, range.right + 1);
    if (records.length === 0) return;
    const isOne = records.length === 1 && copied.length === 1;
    const lines = records.map((record) =>
      copied.map((column) => (isOne ? textOf(column, record[column.name]) : tabless(textOf(column, record[column.name])))).join("\t"),
    );
    event.clipboardData?.setData("text/plain", lines.join("\n"));
    event.preventDefault();
  }

  /** A range is filled, with what was copied repeated, if it fits into it a whole number of times. */
  function paste(event: ClipboardEvent): void {
    if (editing !== undefined || !mayEdit || range.left === 0) return;
    const text = event.clipboardData?.getData("text/plain").replace(/\r?\n$/, "") ?? "";
    if (text === "") return;
    event.preventDefault();
    const cells = text.split(/\r?\n/).map((line) => line.split("\t"));
    const filled = hasRange ? repeated(cells, range.bottom - range.top + 1, range.right - range.left + 1) : cells;
    onPaste(filled, { row: range.top, columns: all.slice(range.left) });
  }

  function close(cell: Editing): void {
    if (writes.of(cell.id, cell.column)?.fault) writes.drop(cell.id, cell.column);
    forget(keyOfText(cell));
    if (isSameCell(editing, cell)) setEditing(undefined);
    moveTo(active.row, active.column);
  }

  return (
    <div
      ref={frame}
      class="grid"
      role="grid"
      tabIndex={-1}
      aria-label="Records"
      aria-multiselectable="true"
      aria-rowcount={count + 1}
      aria-colcount={all.length}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <GridHead
        columns={all}
        layout={layout}
        sort={sort}
        areAllSelected={mayEdit ? rows.size > 0 && selected.size === rows.size : undefined}
        onSort={onSort}
        onSelectAll={onSelectAll}
      />
      <div class="grid-body" role="rowgroup" style={{ height: `${heights.body}px` }} onKeyDown={pressKey} onCopy={copy} onPaste={paste}>
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
                const isInRange = hasRange && row >= range.top && row <= range.bottom && j >= range.left && j <= range.right;
                const written = record && writes.of(record.id, column.name);
                const refused = written?.fault ? written : undefined;
                const at = { id: record?.id ?? "", column: column.name };
                const isEdited = record !== undefined && (isSameCell(editing, at) || refused !== undefined);
                return (
                  <div
                    key={column.name}
                    role="gridcell"
                    class={`${cellClass(column)}${isEdited ? " edited" : ""}${isInRange ? " in-range" : ""}`}
                    style={widthStyle(layout.widthOf(column.name))}
                    tabIndex={isActive ? 0 : -1}
                    aria-selected={isInRange ? true : undefined}
                    onMouseDown={(event) => press(event, row, j)}
                    onFocusIn={() => setActive({ row, column: j })}
                    onDblClick={() => edit(record, column)}
                  >
                    {column === ID_COLUMN && <span class="row-number">{(row + 1).toLocaleString("en")}</span>}
                    {record === undefined && column === ID_COLUMN && <span class="muted">…</span>}
                    {record !== undefined && column === ID_COLUMN && mayEdit && (
                      <input
                        type="checkbox"
                        tabIndex={-1}
                        checked={isSelected}
                        aria-label={`Select ${record.id}`}
                        onClick={(event) => select(row, event.shiftKey)}
                      />
                    )}
                    {isEdited ? (
                      <CellEditor
                        kept={keyOfText(at)}
                        column={column}
                        shown={shownText(record, column)}
                        refused={refused}
                        onSave={async (text) => void writes.write(record, column, text)}
                        onClose={() => close(at)}
                      />
                    ) : (
                      record !== undefined &&
                      (column === ID_COLUMN ? (
                        <a href={hrefOf("table", place, table, record.id, route.value.params)} tabIndex={-1} title="Open the record">
                          <bdi>{record.id}</bdi>
                        </a>
                      ) : column.type === "bool" && mayEdit ? (
                        <input
                          type="checkbox"
                          tabIndex={-1}
                          checked={record[column.name] === true}
                          // Neither true nor false.
                          indeterminate={typeof record[column.name] !== "boolean"}
                          aria-label={`${column.name} of ${record.id}`}
                          onChange={(event) => onTick(record, column, event.currentTarget.checked)}
                        />
                      ) : written !== undefined ? (
                        <bdi class="muted">{written.text}</bdi>
                      ) : (
                        <CellValue column={column} value={record[column.name]} place={place} />
                      ))
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

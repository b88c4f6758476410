/** A table as a spreadsheet. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { messageOf, type Place, tablePath } from "../api/client.ts";
import { lazyView } from "../lazy-view.tsx";
import { type Confirmation, ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { CurrentTable } from "../parts/current-table.tsx";
import { FileButton } from "../parts/file-button.tsx";
import { useAttempt, useRoundsOf } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Menu } from "../parts/menu.tsx";
import { Fault, Notice } from "../parts/notice.tsx";
import { counted } from "../parts/numbers.ts";
import { droppedFile } from "../state/dropped-file.ts";
import { useKept } from "../state/kept.ts";
import { mayWrite } from "../state/page-session.ts";
import { type Params, route, tell } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { fromText } from "./cell-text.ts";
import { cellWritesOf } from "./cell-writes.ts";
import { hiddenColumns, keepHiddenColumns, useColumnLayout } from "./column-layout.ts";
import { FilterBar } from "./filter-bar.tsx";
import { Grid } from "./grid.tsx";
import { InsertForm } from "./insert-form.tsx";
import { changedRecord, historyOf, saveCell } from "./record-history.ts";
import { RecordPages, type RecordQuestion } from "./record-pages.ts";
import { ExportMenu } from "./transfer/export-menu.tsx";

const ImportPanel = lazyView(() => import("./transfer/import-panel.tsx"), "ImportPanel");

export function TableView(): JSX.Element {
  return <CurrentTable view={spreadsheetOf} />;
}

function spreadsheetOf(place: Place, table: TableSchema): JSX.Element {
  const key = tablePath(place, table.name);
  return <Spreadsheet key={key} kept={key} place={place} table={table} />;
}

interface SpreadsheetProps {
  /** Names what is kept of it. */
  kept: string;
  place: Place;
  table: TableSchema;
}

function Spreadsheet({ kept, place, table }: SpreadsheetProps): JSX.Element {
  const pages = useMemo(() => new RecordPages(place, table), []);
  const history = historyOf(place, table);
  const path = tablePath(place, table.name);
  const layout = useColumnLayout(path, table.columns);
  const { params } = route.value;
  const [filterText, setFilterText] = useKept(`filter ${kept}`, () => params.filter ?? "");
  const [filterFault, setFilterFault] = useState("");
  const question = useMemo(() => questionOf(params), [params.filter, params.sort]);
  const [turn, setTurn] = useState(0);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const hidden = params.hide === undefined ? hiddenColumns(path) : new Set(params.hide.split(","));
  const [edited, setEdited] = useState<string | undefined>(undefined);
  const [isInserting, setInserting] = useKept(`inserting ${kept}`, () => false);
  const [confirmation, ask] = useState<Confirmation | undefined>(undefined);
  const { fault, attempt } = useAttempt();

  const round = useRoundsOf(pages.fault.value !== "");
  useEffect(() => void pages.open(question), [question, round, turn]);
  // Back, and a link, bring back a filter with its text.
  useEffect(() => setFilterText(params.filter ?? ""), [params.filter]);
  const changed = changedRecord.value;
  // Before the page is drawn: the cell does not show its old value once more.
  useLayoutEffect(() => {
    if (changed?.path === path) pages.replace(changed.record);
  }, [changed]);
  pages.pinned = edited === undefined ? selected : new Set([...selected, edited]);

  const mayEdit = mayWrite.value;
  const held = [...pages.rows.value.values()];
  const chosen = held.filter(({ id }) => selected.has(id));
  const file = droppedFile.value?.path === path ? droppedFile.value.file : undefined;
  const takeFile = (next: File | undefined): void => {
    droppedFile.value = next && { file: next, path };
  };
  const lastChange = history.changes.value.at(-1);

  function applyFilter(text: string): void {
    try {
      if (text.trim() !== "") JSON.parse(text);
      setFilterFault("");
      tell({ filter: text.trim() });
    } catch (error) {
      setFilterFault(`This is not JSON: ${messageOf(error)}`);
    }
  }

  function showAll(): void {
    setFilterText("");
    applyFilter("");
  }

  function sortBy(column: string): void {
    const { sort } = question;
    const next = sort?.column !== column ? "asc" : sort.direction === "asc" ? "desc" : undefined;
    tell({ sort: next === undefined ? undefined : `${next === "desc" ? "-" : ""}${column}` });
  }

  const removeChosen = (): void =>
    ask({
      title: chosen.length === 1 ? `Delete ${chosen[0]?.id}` : `Delete ${counted(chosen.length, "record")}`,
      consequences: [
        `${counted(chosen.length, "record")} of the table ${table.name} will be deleted.`,
        "Links to them become empty, and stay so.",
        "You can undo this while the page is open, but not in the links.",
      ],
      isDestructive: true,
      verb: "Delete",
      async run() {
        await history.deleteAll(chosen);
        pages.remove(new Set(chosen.map(({ id }) => id)));
        setSelected(new Set());
      },
    });

  const undo = (): Promise<void> =>
    attempt(async () => {
      await history.undo();
      await pages.open(question);
    });

  /** Into the rows and columns from a cell on, as one transaction; what is beyond the last of them is left out. */
  const paste = (cells: readonly (readonly string[])[], from: { row: number; columns: readonly ColumnSchema[] }): Promise<void> =>
    attempt(async () => {
      const changes = cells.flatMap((line, i) => {
        const record = pages.rows.value.get(from.row + i);
        const fields = line.slice(0, from.columns.length).map((text, j) => [from.columns[j] as ColumnSchema, text] as const);
        if (record === undefined) return [];
        return [{ record, fields: Object.fromEntries(fields.map(([column, text]) => [column.name, fromText(column, text)])) }];
      });
      await history.editAll(changes);
      await pages.open(question);
    });

  function toggle(name: string): void {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    keepHiddenColumns(path, next);
    tell({ hide: [...next].join(",") }, true);
  }

  const refused = filterFault || (pages.fault.value.startsWith("filter") ? pages.fault.value : "");
  return (
    <section class="spreadsheet" aria-label={`Table ${table.name}`}>
      <div class="toolbar">
        <FilterBar columns={table.columns} text={filterText} fault={refused} onChange={setFilterText} onApply={applyFilter} />
        <div class="actions">
          <Columns columns={layout.columns} hidden={hidden} onToggle={toggle} />
          <ExportMenu place={place} table={table} question={question} />
          {mayEdit && <FileButton label="Import" onFile={takeFile} />}
          {mayEdit && (
            <button type="button" onClick={() => setInserting(true)}>
              <Icon name="plus" /> New
            </button>
          )}
          {mayEdit && (
            <button type="button" class="danger" disabled={chosen.length === 0} onClick={removeChosen}>
              <Icon name="trash" /> Delete{chosen.length === 0 ? "" : ` ${chosen.length}`}
            </button>
          )}
          {lastChange !== undefined && (
            <button type="button" onClick={() => void undo()} title={`Undo: ${lastChange.said}`}>
              <Icon name="undo" /> Undo
            </button>
          )}
        </div>
      </div>
      {isInserting && (
        <InsertForm
          kept={kept}
          columns={table.columns}
          onInsert={async (id, fields) => {
            await history.insert(id, fields);
            await pages.open(question);
          }}
          onClose={() => setInserting(false)}
        />
      )}
      {mayEdit && file !== undefined && (
        <ImportPanel
          key={`${file.name} ${file.lastModified}`}
          file={file}
          table={table}
          history={history}
          onWritten={() => void pages.open(question)}
          onClose={() => takeFile(undefined)}
        />
      )}
      {fault !== "" && <Fault>{fault}</Fault>}
      {pages.fault.value !== "" && refused === "" && (
        <Fault>
          {pages.fault.value}{" "}
          <button type="button" onClick={() => setTurn(turn + 1)}>
            Try again
          </button>
        </Fault>
      )}
      <div class="grid-frame">
        <Grid
          kept={kept}
          place={place}
          table={table.name}
          columns={layout.columns.filter(({ name }) => !hidden.has(name))}
          layout={layout}
          rows={pages.rows.value}
          count={pages.count.value}
          sort={question.sort}
          selected={selected}
          mayEdit={mayEdit}
          onSort={sortBy}
          onSelect={setSelected}
          onSelectAll={(isSelected) => setSelected(new Set(isSelected ? held.map(({ id }) => id) : []))}
          onView={(first, last) => pages.show(first, last)}
          onEdit={setEdited}
          onUndo={() => void undo()}
          onTick={(old, column, isTicked) => void attempt(() => saveCell(place, table, old, column, String(isTicked)))}
          onPaste={(cells, from) => void paste(cells, from)}
          writes={cellWritesOf(place, table)}
        />
        {pages.total.value === 0 && !pages.isLoading.value && (
          <Notice>
            {question.filter !== undefined
              ? "No record matches the filter."
              : `The table has no records yet.${mayEdit ? " Add one with New, or drop a file here." : ""}`}{" "}
            {question.filter !== undefined && (
              <button type="button" onClick={showAll}>
                Clear the filter
              </button>
            )}
          </Notice>
        )}
      </div>
      <p class="muted small" role="status">
        {pages.isLoading.value ? "Loading … " : ""}
        {held.length.toLocaleString("en")} of {pages.total.value?.toLocaleString("en") ?? "…"} records read
        {lastChange === undefined ? "" : ` · ${lastChange.said}`}
        {mayEdit
          ? " · double-click or type to edit, Ctrl+C and Ctrl+V to copy and paste, drop a file to import it"
          : " · this key can only read"}
      </p>
      {confirmation !== undefined && <ConfirmDialog confirmation={confirmation} onClose={() => ask(undefined)} />}
    </section>
  );
}

/** The filter and the order of the address. A filter that is not JSON is sent as the text that it is: the server says what is wrong. */
function questionOf({ filter = "", sort = "" }: Params): RecordQuestion {
  const direction = sort.startsWith("-") ? "desc" : "asc";
  return {
    filter: filter === "" ? undefined : parsedOr(filter),
    sort: sort === "" ? undefined : { column: sort.replace(/^-/, ""), direction },
  };
}

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface ColumnsProps {
  columns: readonly ColumnSchema[];
  hidden: ReadonlySet<string>;
  onToggle: (name: string) => void;
}

function Columns({ columns, hidden, onToggle }: ColumnsProps): JSX.Element {
  return (
    <Menu label="Columns">
      {columns.map(({ name }) => (
        <label key={name} class="check">
          <input type="checkbox" checked={!hidden.has(name)} onChange={() => onToggle(name)} />
          <bdi>{name}</bdi>
        </label>
      ))}
      <p class="hint">
        Drag a heading to move its column, or its edge to resize it. With the keyboard: Shift with ← or → resizes, Ctrl and Shift move.
      </p>
    </Menu>
  );
}

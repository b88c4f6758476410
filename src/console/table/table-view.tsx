/** A table as a spreadsheet. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, call, messageOf, type Place, recordPath, tablePath } from "../api/client.ts";
import { lazyView } from "../lazy-view.tsx";
import { type Confirmation, ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { CurrentTable } from "../parts/current-table.tsx";
import { ActionForm, TextField, useAttempt, useRoundsOf } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Menu } from "../parts/menu.tsx";
import { Fault, Notice } from "../parts/notice.tsx";
import { counted } from "../parts/numbers.ts";
import { droppedFile } from "../state/dropped-file.ts";
import { useKept } from "../state/kept.ts";
import { mayWrite } from "../state/page-session.ts";
import { route } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { fromText, textOf } from "./cell-text.ts";
import { FilterBar } from "./filter-bar.tsx";
import { Grid } from "./grid.tsx";
import { historyOf } from "./record-history.ts";
import { RecordPages, type RecordQuestion, type TableRecord } from "./record-pages.ts";
import { ExportMenu } from "./transfer/export-menu.tsx";

const ImportPanel = lazyView(() => import("./transfer/import-panel.tsx"), "ImportPanel");

export function TableView(): JSX.Element {
  const { record } = route.value;
  const spreadsheet = (place: Place, table: TableSchema): JSX.Element => {
    const key = `${tablePath(place, table.name)} ${record ?? ""}`;
    return <Spreadsheet key={key} kept={key} place={place} table={table} record={record} />;
  };
  return <CurrentTable view={spreadsheet} />;
}

interface SpreadsheetProps {
  /** Names what is kept of it. */
  kept: string;
  place: Place;
  table: TableSchema;
  /** Of the address. */
  record: string | undefined;
}

function Spreadsheet({ kept, place, table, record }: SpreadsheetProps): JSX.Element {
  const pages = useMemo(() => new RecordPages(place, table), []);
  const history = historyOf(place, table);
  const onlyRecord = record === undefined ? undefined : { id: record };
  const [filterText, setFilterText] = useKept(`filter ${kept}`, () => (record === undefined ? "" : JSON.stringify(onlyRecord)));
  const [filterFault, setFilterFault] = useState("");
  const [question, setQuestion] = useKept<RecordQuestion>(`question ${kept}`, () => ({ filter: onlyRecord, sort: undefined }));
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [hidden, setHidden] = useState<ReadonlySet<string>>(() => hiddenColumns(place, table.name));
  const [edited, setEdited] = useState<string | undefined>(undefined);
  const [isInserting, setInserting] = useKept(`inserting ${kept}`, () => false);
  const [confirmation, ask] = useState<Confirmation | undefined>(undefined);
  const { fault, attempt } = useAttempt();

  const round = useRoundsOf(pages.fault.value !== "");
  useEffect(() => void pages.open(question), [question, round]);
  pages.pinned = edited === undefined ? selected : new Set([...selected, edited]);

  const mayEdit = mayWrite.value;
  const held = [...pages.rows.value.values()];
  const chosen = held.filter(({ id }) => selected.has(id));
  const path = tablePath(place, table.name);
  const file = droppedFile.value?.path === path ? droppedFile.value.file : undefined;
  const takeFile = (next: File | undefined): void => {
    droppedFile.value = next && { file: next, path };
  };
  const lastChange = history.changes.value.at(-1);

  function applyFilter(text: string): void {
    try {
      setQuestion({ ...question, filter: text.trim() === "" ? undefined : JSON.parse(text) });
      setFilterFault("");
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
    setQuestion({ ...question, sort: next === undefined ? undefined : { column, direction: next } });
  }

  async function save(old: TableRecord, column: ColumnSchema, text: string): Promise<void> {
    try {
      pages.replace(await history.edit(old, column, fromText(column, text)));
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 422)) throw error;
      // Reads what somebody else has written, so that saving again is an informed choice.
      const now = await call<TableRecord>("GET", `${recordPath(place, table.name, old.id)}?columns=*`);
      pages.replace(now);
      throw new Error(
        `Somebody else changed this record meanwhile: ${column.name} is now ${textOf(column, now[column.name]) || "empty"}. Save again to write yours over it.`,
      );
    }
  }

  const removeChosen = (): void =>
    ask({
      title: chosen.length === 1 ? `Delete ${chosen[0]?.id}` : `Delete ${counted(chosen.length, "record")}`,
      consequences: [
        `Deletes ${counted(chosen.length, "record")} of the table ${table.name}.`,
        "Links to them become empty.",
        "You can undo it while this page is open; the links stay empty.",
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

  function toggle(name: string): void {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
    keepHiddenColumns(place, table.name, next);
  }

  const refused = filterFault || (pages.fault.value.startsWith("filter") ? pages.fault.value : "");
  return (
    <section class="spreadsheet" aria-label={`Table ${table.name}`}>
      <div class="toolbar">
        <FilterBar columns={table.columns} text={filterText} fault={refused} onChange={setFilterText} onApply={applyFilter} />
        <div class="actions">
          <Columns columns={table.columns} hidden={hidden} onToggle={toggle} />
          <ExportMenu place={place} table={table} question={question} />
          {mayEdit && <ImportButton onFile={takeFile} />}
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
          <button type="button" onClick={() => setQuestion({ ...question })}>
            Try again
          </button>
        </Fault>
      )}
      {pages.total.value === 0 && !pages.isLoading.value && (
        <Notice>
          {question.filter === undefined ? (
            "The table has no records yet."
          ) : onlyRecord !== undefined && JSON.stringify(question.filter) === JSON.stringify(onlyRecord) ? (
            <>
              There is no record <bdi class="name">{record}</bdi> in this table.
            </>
          ) : (
            "No record passes the filter."
          )}{" "}
          {question.filter !== undefined && (
            <button type="button" onClick={showAll}>
              Show all records
            </button>
          )}
        </Notice>
      )}
      <Grid
        kept={kept}
        place={place}
        columns={table.columns.filter(({ name }) => !hidden.has(name))}
        rows={pages.rows.value}
        count={pages.count.value}
        sort={question.sort}
        selected={selected}
        mayEdit={mayEdit}
        onSort={sortBy}
        onSelect={(id) => {
          const next = new Set(selected);
          if (!next.delete(id)) next.add(id);
          setSelected(next);
        }}
        onSelectAll={(isSelected) => setSelected(new Set(isSelected ? held.map(({ id }) => id) : []))}
        onView={(first, last) => pages.show(first, last)}
        onEdit={setEdited}
        onSave={save}
      />
      <p class="muted small" role="status">
        {pages.isLoading.value ? "Reading … " : ""}
        {held.length.toLocaleString("en")} of {pages.total.value?.toLocaleString("en") ?? "…"} records read
        {lastChange === undefined ? "" : ` · ${lastChange.said}`}
        {mayEdit ? " · double-click or Enter edits a cell, a file dropped here is imported" : " · this key may only read"}
      </p>
      {confirmation !== undefined && <ConfirmDialog confirmation={confirmation} onClose={() => ask(undefined)} />}
    </section>
  );
}

/** For users who do not drop a file. */
function ImportButton({ onFile }: { onFile: (file: File) => void }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        Import
      </button>
      <input
        ref={input}
        type="file"
        hidden
        accept=".csv,.tsv,.jsonl,.ndjson,.npy"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file !== undefined) onFile(file);
          // Lets the same file be chosen again.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
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
    </Menu>
  );
}

interface InsertFormProps {
  kept: string;
  columns: readonly ColumnSchema[];
  /** @throws what the server says against it. */
  onInsert: (id: string, fields: Readonly<Record<string, unknown>>) => Promise<void>;
  onClose: () => void;
}

/** A new record: a field for each column. */
function InsertForm({ kept, columns, onInsert, onClose }: InsertFormProps): JSX.Element {
  const [texts, setTexts] = useKept<Readonly<Record<string, string>>>(`new record ${kept}`, () => ({}));
  const { fault, attempt } = useAttempt();
  async function insert(): Promise<void> {
    const given = columns.filter(({ name }) => (texts[name] ?? "") !== "");
    await onInsert(
      texts.id ?? "",
      Object.fromEntries(given.map((column) => [column.name, fromText(column, texts[column.name] as string)])),
    );
    setTexts({});
    onClose();
  }
  // The server names the column that it is about.
  const column = columns.find(({ name }) => fault.includes(`"${name}"`) || fault.startsWith(`${name}:`));
  const faulty = column?.name ?? (/\bid\b/.test(fault) ? "id" : undefined);
  const set = (name: string, text: string): void => setTexts({ ...texts, [name]: text });
  return (
    <ActionForm label="New record" look="card insert-form" verb="Insert" onSubmit={() => void attempt(insert)} onCancel={onClose}>
      <h2>New record</h2>
      <div class="insert-fields">
        <TextField
          label="id"
          fault={faulty === "id" ? fault : ""}
          hint="If it is empty, the server generates it."
          value={texts.id ?? ""}
          onInput={(text) => set("id", text)}
        />
        {columns.map((column) => (
          <TextField
            key={column.name}
            label={`${column.name} (${column.type})`}
            fault={faulty === column.name ? fault : ""}
            hint={column.vector === undefined ? undefined : `${column.vector.dimension} numbers, as [1, 2, …]`}
            value={texts[column.name] ?? ""}
            onInput={(text) => set(column.name, text)}
          />
        ))}
      </div>
      {fault !== "" && faulty === undefined && <Fault>{fault}</Fault>}
    </ActionForm>
  );
}

const keyOf = (place: Place, table: string): string => `lodestone.hidden ${tablePath(place, table)}`;

/** The hidden columns of a table, kept in this browser. */
function hiddenColumns(place: Place, table: string): ReadonlySet<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(place, table)) ?? "[]");
    return new Set(Array.isArray(kept) ? kept.map(String) : []);
  } catch {
    return new Set();
  }
}

function keepHiddenColumns(place: Place, table: string, hidden: ReadonlySet<string>): void {
  if (hidden.size === 0) localStorage.removeItem(keyOf(place, table));
  else localStorage.setItem(keyOf(place, table), JSON.stringify([...hidden]));
}

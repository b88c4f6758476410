/** A new table: from a file, whose columns are recognised and can be changed, or column by column. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { branchPath, call, messageOf, type Place, tablePath } from "../api/client.ts";
import { FileButton } from "../parts/file-button.tsx";
import { submitting, TextField } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Notice, Waiting } from "../parts/notice.tsx";
import { counted, sizeInWords } from "../parts/numbers.ts";
import { droppedFile, makeTableOf } from "../state/dropped-file.ts";
import { forget, useKept } from "../state/kept.ts";
import { mayAdminister } from "../state/page-session.ts";
import { go, hrefOf, route } from "../state/route.ts";
import { databases, loadDatabases, loadTables, tables } from "../state/server-content.ts";
import { historyOf } from "../table/record-history.ts";
import { type ImportProgress, ImportState, runImport } from "../table/transfer/run-import.tsx";
import { allowedName, type ColumnDraft, columnOf, NEW_COLUMN, type ReadFile, readBeginning } from "./column-drafts.ts";
import { ColumnRows } from "./column-rows.tsx";

export function NewTableView(): JSX.Element {
  const { place } = route.value;
  const dropped = droppedFile.value;
  const file = dropped?.path === undefined ? dropped?.file : undefined;
  const isKnown = place === undefined ? databases.value !== undefined : tables.value !== undefined;
  if (!mayAdminister.value) return <Notice>This key cannot create tables. That takes a key with the scope admin.</Notice>;
  if (!isKnown) return <Waiting what="Loading the schema …" />;
  const key = `${place === undefined ? "" : branchPath(place)} ${file === undefined ? "" : `${file.name} ${file.lastModified} ${file.size}`}`;
  return <NewTable key={key} kept={`new table ${key}`} place={place} file={file} />;
}

interface NewTableProps {
  kept: string;
  /** undefined: there is no database yet. */
  place: Place | undefined;
  file: File | undefined;
}

interface Draft {
  readonly database: string;
  readonly name: string;
  readonly columns: readonly ColumnDraft[];
}

type Stage =
  | { readonly at: "form" }
  | { readonly at: "running"; readonly progress: ImportProgress }
  /** The table is made, and some of its records are written. */
  | { readonly at: "stopped"; readonly place: Place; readonly records: number };

const NO_PROGRESS: ImportProgress = { records: 0, readBytes: 0 };

function NewTable({ kept, place, file }: NewTableProps): JSX.Element {
  const [read, setRead] = useState<ReadFile | undefined>(undefined);
  const [draft, setDraft] = useKept<Draft>(kept, () => ({
    database: "data",
    name: file === undefined ? "" : freeName(allowedName(file.name.replace(/\.[^.]*$/, "")) || "records"),
    columns: file === undefined ? [{ ...NEW_COLUMN }] : [],
  }));
  const [stage, setStage] = useState<Stage>({ at: "form" });
  const [fault, setFault] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  const { columns } = draft;

  useEffect(() => {
    if (file === undefined) return;
    let isOver = false;
    readBeginning(file, place, tables.value ?? []).then(
      (found) => {
        if (isOver) return;
        setRead(found);
        if (columns.length === 0) setDraft({ ...draft, columns: found.drafts });
      },
      (error: unknown) => !isOver && setFault(messageOf(error)),
    );
    return () => {
      isOver = true;
      running.current?.abort();
    };
  }, []);

  async function make(): Promise<void> {
    setFault("");
    const target = place ?? { database: draft.database, branch: "main" };
    const made = columns.flatMap((column) => columnOf(column) ?? []);
    try {
      if (draft.name === "") throw new Error("Give the table a name.");
      if (place === undefined) {
        await call("PUT", branchPath(target), {});
        await loadDatabases();
      }
      await call("PUT", tablePath(target, draft.name), { columns: made });
    } catch (error) {
      setFault(messageOf(error));
      return;
    }
    if (read === undefined) return finish(target);
    const controller = new AbortController();
    running.current = controller;
    let last = NO_PROGRESS;
    const onProgress = (progress: ImportProgress): void => {
      last = progress;
      setStage({ at: "running", progress });
    };
    onProgress(last);
    try {
      const mapping = new Map(
        columns.flatMap(({ source, name, isUsed }) => (source !== undefined && isUsed ? [[source, name] as const] : [])),
      );
      const history = historyOf(target, { name: draft.name, columns: made });
      await runImport({ source: read.source, mapping, columns: made, replaces: false }, history, onProgress, controller.signal);
      await finish(target);
    } catch (error) {
      setFault(controller.signal.aborted ? "Stopped." : messageOf(error));
      setStage({ at: "stopped", place: target, records: last.records });
    }
  }

  async function finish(target: Place): Promise<void> {
    await loadTables(target);
    const isSearchable = read !== undefined && columns.some(({ type, isUsed }) => isUsed && type === "vector");
    forget(kept);
    droppedFile.value = undefined;
    go(isSearchable ? "search" : "table", target, draft.name);
  }

  async function startAgain(target: Place): Promise<void> {
    try {
      await call("DELETE", tablePath(target, draft.name));
      setFault("");
      setStage({ at: "form" });
    } catch (error) {
      setFault(messageOf(error));
    }
  }

  function change(at: number, part: Partial<ColumnDraft>): void {
    setDraft({ ...draft, columns: columns.map((column, i) => (i === at ? { ...column, ...part } : column)) });
  }

  const isForm = stage.at === "form";
  // The server's messages begin with the member they are about.
  const about = /^table: |^Table "|^Give the table/.test(fault) ? "name" : fault.startsWith("database: ") ? "database" : "";
  return (
    <form class="card new-table" aria-label="New table" noValidate onSubmit={submitting(() => void make())}>
      <h2>
        {file === undefined ? (
          "New table"
        ) : (
          <>
            New table from <bdi>{file.name}</bdi>
          </>
        )}
      </h2>
      {read !== undefined && <p class="muted small">{describe(read)}</p>}
      {file !== undefined && read === undefined && fault === "" && <Waiting what="Reading the file …" />}
      {(file === undefined || read !== undefined) && (
        <fieldset disabled={!isForm}>
          <div class="schema-fields">
            {place === undefined && (
              <TextField
                label="Database"
                fault={about === "database" ? fault : ""}
                value={draft.database}
                onInput={(database) => setDraft({ ...draft, database })}
              />
            )}
            <TextField
              label="Name of the table"
              fault={about === "name" ? fault : ""}
              value={draft.name}
              onInput={(name) => setDraft({ ...draft, name })}
              isFirst={file === undefined}
            />
          </div>
          <ColumnRows
            columns={columns}
            tableNames={(tables.value ?? []).map(({ name }) => name)}
            onChange={change}
            onRemove={(at) => setDraft({ ...draft, columns: columns.filter((_, i) => i !== at) })}
          />
          {file === undefined && (
            <button type="button" onClick={() => setDraft({ ...draft, columns: [...columns, { ...NEW_COLUMN }] })}>
              <Icon name="plus" /> Column
            </button>
          )}
        </fieldset>
      )}
      {fault !== "" && about === "" && <Fault>{fault}</Fault>}
      {stage.at === "running" && <ImportState progress={stage.progress} bytes={read?.source.bytes ?? 1} />}
      {stage.at === "stopped" && (
        <p class="small">
          The table {draft.name} has {counted(stage.records, "record")} of the file.
        </p>
      )}
      <div class="actions">
        {isForm && (file === undefined || read !== undefined) && (
          <button type="submit" class="primary">
            {file === undefined ? "Create the table" : "Create and import"}
          </button>
        )}
        {stage.at === "running" && (
          <button type="button" onClick={() => running.current?.abort()}>
            Stop
          </button>
        )}
        {stage.at === "stopped" && (
          <>
            <button type="button" onClick={() => void finish(stage.place)}>
              Keep it
            </button>
            <button type="button" class="danger" onClick={() => void startAgain(stage.place)}>
              Delete it and start again
            </button>
          </>
        )}
        {isForm && <FileButton label={file === undefined ? "From a file" : "Another file"} onFile={makeTableOf} />}
        {isForm && (
          <a href={hrefOf("home", place)} onClick={() => leave(kept)}>
            Cancel
          </a>
        )}
      </div>
    </form>
  );
}

function leave(kept: string): void {
  forget(kept);
  droppedFile.value = undefined;
}

/** The name, or with a number behind it if the branch has such a table. */
function freeName(name: string): string {
  const taken = new Set((tables.value ?? []).map((table) => table.name));
  let free = name;
  for (let i = 2; taken.has(free); i++) free = `${name}_${i}`;
  return free;
}

function describe({ source, encoding, rows, isWhole }: ReadFile): string {
  const isOther = encoding !== "" && encoding !== "utf-8";
  const read = isWhole ? `all ${counted(rows, "row")}` : `the first ${counted(rows, "row")}`;
  return `${source.format}, ${sizeInWords(source.bytes)}${isOther ? `, ${encoding}` : ""}. The types fit ${read}; change those that are wrong.`;
}

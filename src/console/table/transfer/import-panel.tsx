/**
 * A file dropped on the table: its content, which of its columns go where, and the progress of the import.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../../api/client.ts";
import { Fault, Notice, Waiting } from "../../parts/notice.tsx";
import { sizeInWords } from "../../parts/numbers.ts";
import { makeTableOf } from "../../state/dropped-file.ts";
import { mayAdminister } from "../../state/page-session.ts";
import type { TableSchema } from "../../state/server-content.ts";
import type { RecordHistory } from "../record-history.ts";
import { type FileRow, type FileSource, firstMapping, openFile } from "./file-source.ts";
import { type ImportProgress, ImportState, runImport } from "./run-import.tsx";

interface ImportPanelProps {
  file: File;
  table: TableSchema;
  history: RecordHistory;
  /** Called when records were written. */
  onWritten: () => void;
  onClose: () => void;
}

const PREVIEW_ROWS = 5;
const SHOWN_CHARACTERS = 60;

type Stage =
  | { readonly at: "reading" }
  | { readonly at: "ready" }
  | { readonly at: "running"; readonly progress: ImportProgress }
  | { readonly at: "done"; readonly records: number };

export function ImportPanel({ file, table, history, onWritten, onClose }: ImportPanelProps): JSX.Element {
  const [source, setSource] = useState<FileSource | undefined>(undefined);
  const [preview, setPreview] = useState<readonly FileRow[]>([]);
  const [mapping, setMapping] = useState<ReadonlyMap<string, string>>(new Map());
  const [replaces, setReplaces] = useState(false);
  const [stage, setStage] = useState<Stage>({ at: "reading" });
  const [fault, setFault] = useState("");
  const running = useRef<AbortController | undefined>(undefined);

  useEffect(() => {
    let isOver = false;
    void openPreview(file).then(
      ({ source: opened, rows }) => {
        if (isOver) return;
        setSource(opened);
        setPreview(rows);
        setMapping(firstMapping(opened, table.columns));
        setStage({ at: "ready" });
      },
      (error: unknown) => !isOver && setFault(messageOf(error)),
    );
    return () => {
      isOver = true;
      running.current?.abort();
    };
  }, [file]);

  async function start(opened: FileSource): Promise<void> {
    const controller = new AbortController();
    running.current = controller;
    setFault("");
    let last: ImportProgress = { records: 0, readBytes: 0 };
    setStage({ at: "running", progress: last });
    try {
      const plan = { source: opened, mapping, columns: table.columns, replaces };
      const onProgress = (progress: ImportProgress): void => {
        last = progress;
        setStage({ at: "running", progress });
      };
      setStage({ at: "done", records: await runImport(plan, history, onProgress, controller.signal) });
    } catch (error) {
      const said = controller.signal.aborted ? "Stopped." : messageOf(error);
      setFault(`${said} ${last.records.toLocaleString("en")} records were imported before that.`);
      setStage({ at: "ready" });
    }
    if (last.records > 0) onWritten();
  }

  function choose(name: string, target: string): void {
    const next = new Map([...mapping].filter(([other, taken]) => other !== name && taken !== target));
    if (target !== "") next.set(name, target);
    setMapping(next);
  }

  const isRunning = stage.at === "running";
  return (
    <section class="card import-panel" aria-label="Import">
      <h2>
        Import <bdi>{file.name}</bdi>
      </h2>
      {stage.at === "reading" && fault === "" && <Waiting what="Reading the file …" />}
      {source !== undefined && (
        <>
          <p class="muted small">
            {source.format}, {sizeInWords(source.bytes)}
            {source.dimension === undefined ? "" : `, vectors of ${source.dimension} dimensions`}. The first rows, and where each column
            goes:
          </p>
          <Preview source={source} rows={preview} table={table} mapping={mapping} isFixed={isRunning} onChoose={choose} />
          <label class="check">
            <input type="checkbox" checked={replaces} disabled={isRunning} onChange={(event) => setReplaces(event.currentTarget.checked)} />
            Replace records that have the same id (cannot be undone). Otherwise the import stops at the first of them.
          </label>
        </>
      )}
      {fault !== "" && <Fault>{fault}</Fault>}
      {stage.at === "done" && <Notice>{stage.records.toLocaleString("en")} records were imported.</Notice>}
      {isRunning && <ImportState progress={stage.progress} bytes={source?.bytes ?? 1} />}
      <div class="actions">
        {source !== undefined && stage.at === "ready" && (
          <button type="button" class="primary" disabled={mapping.size === 0} onClick={() => void start(source)}>
            Import
          </button>
        )}
        {isRunning && (
          <button type="button" onClick={() => running.current?.abort()}>
            Stop
          </button>
        )}
        {mayAdminister.value && stage.at === "ready" && (
          <button type="button" onClick={() => makeTableOf(file)}>
            Make it a new table
          </button>
        )}
        {!isRunning && (
          <button type="button" onClick={onClose}>
            Close
          </button>
        )}
      </div>
    </section>
  );
}

interface PreviewProps {
  source: FileSource;
  rows: readonly FileRow[];
  table: TableSchema;
  mapping: ReadonlyMap<string, string>;
  isFixed: boolean;
  onChoose: (name: string, target: string) => void;
}

function Preview({ source, rows, table, mapping, isFixed, onChoose }: PreviewProps): JSX.Element {
  const targets = ["id", ...table.columns.map(({ name }) => name)];
  return (
    <div class="table-scroll" role="region" tabIndex={0} aria-label="The first rows of the file">
      <table class="plain">
        <thead>
          <tr>
            {source.header.map((name) => (
              <th key={name} scope="col">
                <bdi>{name}</bdi>
                <select
                  aria-label={`Column for ${name}`}
                  disabled={isFixed}
                  value={mapping.get(name) ?? ""}
                  onChange={(event) => onChoose(name, event.currentTarget.value)}
                >
                  <option value="">leave out</option>
                  {targets.map((target) => (
                    <option key={target} value={target} selected={mapping.get(name) === target}>
                      {target}
                    </option>
                  ))}
                </select>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ place, values }) => (
            <tr key={place}>
              {source.header.map((name) => (
                <td key={name}>
                  <bdi>{shown(values.get(name))}</bdi>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

async function openPreview(file: File): Promise<{ source: FileSource; rows: readonly FileRow[] }> {
  const source = await openFile(file);
  const found: FileRow[] = [];
  for await (const rows of source.rows()) {
    found.push(...rows.slice(0, PREVIEW_ROWS - found.length));
    if (found.length === PREVIEW_ROWS) break;
  }
  return { source, rows: found };
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return "–";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** Exports what the filter selects; shows the progress, and can be stopped. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../../api/client.ts";
import type { Place } from "../../api/paths.ts";
import { sizeInWords } from "../../parts/bytes.ts";
import { Fault } from "../../parts/notice.tsx";
import type { TableSchema } from "../../state/server-content.ts";
import type { RecordQuestion } from "../record-page.ts";
import { type ExportOrder, exportCsv, exportJsonLines, exportNpy, exportSpreadsheetCsv, type FileSize } from "./run-export.ts";

interface ExportMenuProps {
  place: Place;
  table: TableSchema;
  question: RecordQuestion;
}

interface Format {
  readonly name: string;
  readonly file: string;
  readonly make: (order: ExportOrder) => Promise<Blob>;
}

/** An export that waits for permission to continue. */
interface LargeFile {
  readonly size: FileSize;
  readonly agree: () => void;
}

const sizeSaid = ({ bytes, isWhole }: FileSize): string =>
  `This browser holds the file until it is saved: ${sizeInWords(bytes)}${isWhole ? "" : " so far"}.`;

/** By then the browser has taken the file. */
const FORGET_MS = 60_000;

export function ExportMenu({ place, table, question }: ExportMenuProps): JSX.Element {
  const [progress, setProgress] = useState<number | undefined>(undefined);
  const [large, setLarge] = useState<LargeFile | undefined>(undefined);
  const [fault, setFault] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function run({ file, make }: Format): Promise<void> {
    const controller = new AbortController();
    running.current = controller;
    setFault("");
    setProgress(0);
    const { signal } = controller;
    const onLarge = (size: FileSize): Promise<void> =>
      new Promise((resolve, reject) => {
        setLarge({ size, agree: resolve });
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    try {
      save(await make({ place, table, question, signal, onProgress: setProgress, onLarge }), file);
    } catch (error) {
      if (!signal.aborted) setFault(messageOf(error));
    }
    setLarge(undefined);
    setProgress(undefined);
  }

  const formats: readonly Format[] = [
    { name: "JSON Lines", file: `${table.name}.jsonl`, make: exportJsonLines },
    { name: "CSV", file: `${table.name}.csv`, make: exportCsv },
    { name: "CSV for spreadsheets", file: `${table.name}.spreadsheet.csv`, make: exportSpreadsheetCsv },
    ...table.columns
      .filter(({ type }) => type === "vector")
      .map((column) => ({
        name: `${column.name} as npy`,
        file: `${table.name}.${column.name}.npy`,
        make: (order: ExportOrder) => exportNpy(order, column),
      })),
  ];
  return (
    <details class="builder export">
      <summary>Export</summary>
      <div class="builder-fields">
        {progress === undefined ? (
          formats.map((format) => (
            <button key={format.file} type="button" onClick={() => void run(format)}>
              {format.name}
            </button>
          ))
        ) : (
          <>
            <span role="status">{large === undefined ? `${progress.toLocaleString("en")} records read …` : sizeSaid(large.size)}</span>
            {large !== undefined && (
              <button
                type="button"
                class="primary"
                onClick={() => {
                  setLarge(undefined);
                  large.agree();
                }}
              >
                Go on
              </button>
            )}
            <button type="button" onClick={() => running.current?.abort()}>
              Stop
            </button>
          </>
        )}
        {fault !== "" && <Fault>{fault}</Fault>}
      </div>
    </details>
  );
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), FORGET_MS);
}

/** Writes the rows of a file into a table, and shows how far it is. */
import type { JSX } from "preact";
import { csvValue } from "../../../cli/import/csv-value.ts";
import { MAX_OPERATIONS } from "../../../records/request-limits.ts";
import { ApiError, messageOf } from "../../api/client.ts";
import { counted } from "../../parts/numbers.ts";
import type { ColumnSchema } from "../../state/server-content.ts";
import type { RecordHistory } from "../record-history.ts";
import type { Cell, FileRow, FileSource } from "./file-source.ts";

/** @param bytes  of the whole file. */
export function ImportState({ progress, bytes }: { progress: ImportProgress; bytes: number }): JSX.Element {
  return (
    <div role="status">
      <progress max={bytes} value={progress.readBytes} aria-label="Progress of the import" /> {counted(progress.records, "record")}
    </div>
  );
}

/** Of one transaction as JSON; more would block the page while it is serialized. */
const BATCH_CHARACTERS = 1_000_000;

export interface ImportPlan {
  readonly source: FileSource;
  /** The table's column for each of the file's; columns not in it are left out. */
  readonly mapping: ReadonlyMap<string, string>;
  readonly columns: readonly ColumnSchema[];
  /** Whether a record whose id exists is replaced; otherwise it stops the import. */
  readonly replaces: boolean;
}

export interface ImportProgress {
  readonly records: number;
  readonly readBytes: number;
}

interface Placed {
  readonly place: string;
  readonly record: Readonly<Record<string, unknown>>;
}

/**
 * Writes a file's rows into a table as transactions. Each is written completely or not at all.
 *
 * @throws {Error} with the place in the file. Everything reported as progress is written, and nothing after
 *   it. The signal's reason.
 */
export async function runImport(
  plan: ImportPlan,
  history: RecordHistory,
  onProgress: (progress: ImportProgress) => void,
  signal: AbortSignal,
): Promise<number> {
  let batch: Placed[] = [];
  let characters = 0;
  let written = 0;
  const flush = async (readBytes: number): Promise<void> => {
    signal.throwIfAborted();
    if (batch.length > 0) await write(history, batch, plan.replaces);
    written += batch.length;
    batch = [];
    characters = 0;
    onProgress({ records: written, readBytes });
  };
  for await (const rows of plan.source.rows()) {
    for (const row of rows) {
      const record = recordOf(row, plan);
      const length = JSON.stringify(record).length;
      if (batch.length === MAX_OPERATIONS || (batch.length > 0 && characters + length > BATCH_CHARACTERS)) await flush(row.readBytes);
      batch.push({ place: row.place, record });
      characters += length;
    }
  }
  await flush(plan.source.bytes);
  return written;
}

/**
 * The record in the form in which it is sent.
 * @throws {Error} a cell that does not fit its column.
 */
function recordOf(row: FileRow, { source, mapping, columns }: Omit<ImportPlan, "replaces">): Readonly<Record<string, unknown>> {
  const record: Record<string, unknown> = {};
  for (const [name, target] of mapping) {
    const value = row.values.get(name);
    if (value === undefined) continue;
    const column = columns.find((other) => other.name === target);
    const sent = source.isText ? csvValue(value as Cell, column?.type, target, row.place) : value;
    // A missing id is left out, so that the server generates one.
    if (target !== "id") record[target] = sent;
    else if (sent !== null) record.id = typeof sent === "number" ? String(sent) : sent;
  }
  return record;
}

async function write(history: RecordHistory, batch: readonly Placed[], replaces: boolean): Promise<void> {
  try {
    await history.insertAll(
      batch.map(({ record }) => record),
      replaces,
    );
  } catch (error) {
    const fault = error instanceof ApiError ? error.errors[0] : undefined;
    const at = fault === undefined ? batch[0] : batch[fault.index];
    throw new Error(`${at?.place ?? "The file"}: ${fault?.message ?? messageOf(error)}`);
  }
}

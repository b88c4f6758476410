/**
 * Single inserts (and replaces) that come together are one statement, with one commit and one fsync.
 *
 * The first one runs at once. Those of the same caller into the same table that come while it runs wait for it, and run
 * together after it. So nobody waits for company, and the more come, the more share a statement. All of them are under way at
 * the same time, so any order of them is right; their callers are answered after the commit of their statement.
 *
 * A statement does all of it or nothing. If the database refuses it for what is in it, each record is written by itself, in the
 * order in which they came, and each caller gets his own error. Any other error (no time, no disk, no connection) is everybody's.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { isContention } from "../../engine/database-errors.ts";
import type { Engine } from "../../engine/engine.ts";
import type { WriteOptions } from "../../requests.ts";
import type { BranchInfo, TableInfo } from "../../schema.ts";
import { compileProjection } from "../sql-parts/projection.ts";
import { isFlat, type RecordSelection, readSelection } from "../sql-parts/selection.ts";
import { REPEATED, ROW, WriteParameters } from "../sql-parts/statement-parts.ts";
import { recordVersionOf } from "../values/record-metadata.ts";
import type { EncodedRecord } from "../values/sent-record.ts";
import { bulkStatement } from "./bulk-insert.ts";
import { committedAnswer, excludedAssignments, MAX_COMMITTED_BYTES } from "./record-writer.ts";
import { replaceWith, type WrittenRecord } from "./write-record.ts";

/** A statement of so many short records has the embedded session for less time than anybody notices. */
const MAX_RECORDS = 100;
/** Of a statement's values, about; a longer record is written by itself. */
const MAX_BYTES = 2 ** 18;
/** A statement may wait for the lock of another transaction. Those behind it then wait no longer than this. */
const PATIENCE_MS = 50;

interface Insert {
  readonly engine: Engine;
  readonly record: EncodedRecord;
  readonly bytes: number;
  readonly alone: () => Promise<WrittenRecord>;
  readonly resolve: (written: WrittenRecord | Promise<WrittenRecord>) => void;
  readonly reject: (reason: unknown) => void;
}

/** What all inserts of a statement have in common. */
interface Kind {
  readonly branch: BranchInfo;
  readonly table: TableInfo;
  readonly selection: RecordSelection;
  readonly options: WriteOptions;
}

/** Of a record store, for all of its callers. */
export class ConcurrentInserts {
  readonly #lanes = new WeakMap<TableInfo, Map<string, Lane>>();
  readonly #patienceMs: number;

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /** Its answer and its errors are those of `replaceWith`. */
  readonly write: typeof replaceWith = async (session, branch, table, record, options) => {
    const alone = (): Promise<WrittenRecord> => replaceWith(session, branch, table, record, options);
    const selection = readSelection(branch, table, options.columns);
    const bytes = bytesOf(record);
    if (!("transaction" in session) || options.ifVersion !== undefined || !isFlat(selection) || bytes > MAX_BYTES) return alone();
    const lanes = this.#lanes.get(table) ?? new Map<string, Lane>();
    this.#lanes.set(table, lanes);
    const key = keyOf(session, branch, table, record, options);
    const lane = lanes.get(key) ?? new Lane({ branch, table, selection, options }, this.#patienceMs, () => lanes.delete(key));
    lanes.set(key, lane);
    return new Promise((resolve, reject) => lane.push({ engine: session, record, bytes, alone, resolve, reject }));
  };
}

/** Where a column has a default, omitting it and null are different, so such records cannot share a statement. */
function keyOf(engine: Engine, branch: BranchInfo, table: TableInfo, record: EncodedRecord, options: WriteOptions): string {
  const { columns = null, jsonText = false, createOnly = false } = options;
  const defaults: boolean[] = [];
  for (const column of table.columns.values()) if (column.defaultValue !== undefined) defaults.push(record.values.has(column));
  return JSON.stringify([engine.budget?.caller ?? "", branch.systemNaming, columns, jsonText, createOnly, defaults]);
}

function bytesOf({ values }: EncodedRecord): number {
  let bytes = 0;
  for (const value of values.values())
    bytes += typeof value === "string" ? value.length : value instanceof Float32Array ? value.byteLength : 8;
  return bytes;
}

/** Inserts of one kind: usually one statement at a time. */
class Lane {
  readonly #kind: Kind;
  readonly #patienceMs: number;
  readonly #onEmpty: () => void;
  #waiting: Insert[] = [];
  #running = 0;
  #patience: NodeJS.Timeout | undefined;

  constructor(kind: Kind, patienceMs: number, onEmpty: () => void) {
    this.#kind = kind;
    this.#patienceMs = patienceMs;
    this.#onEmpty = onEmpty;
  }

  push(insert: Insert): void {
    this.#waiting.push(insert);
    if (this.#running === 0) void this.#run();
    else this.#patience ??= setTimeout(() => this.#goOn(), this.#patienceMs);
  }

  #goOn(): void {
    this.#patience = undefined;
    if (this.#waiting.length === 0) return;
    void this.#run();
    if (this.#waiting.length > 0) this.#patience = setTimeout(() => this.#goOn(), this.#patienceMs);
  }

  async #run(): Promise<void> {
    this.#running++;
    for (let inserts = this.#take(); inserts.length > 0; inserts = this.#take()) await this.#write(inserts);
    this.#running--;
    if (this.#running > 0) return;
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#onEmpty();
  }

  /** The next ones that may share a statement, without those whose callers have left. */
  #take(): Insert[] {
    const taken: Insert[] = [];
    const ids = new Set<string>();
    let bytes = 0;
    let next = 0;
    for (; next < this.#waiting.length && taken.length < MAX_RECORDS; next++) {
      const insert = this.#waiting[next]!;
      const { signal } = insert.engine;
      if (signal?.aborted === true) {
        insert.reject(signal.reason);
        continue;
      }
      bytes += insert.bytes;
      // The second one of an id replaces the first, or is refused.
      if (ids.has(insert.record.id) || (bytes > MAX_BYTES && taken.length > 0)) break;
      ids.add(insert.record.id);
      taken.push(insert);
    }
    this.#waiting = this.#waiting.slice(next);
    return taken;
  }

  async #write(inserts: readonly Insert[]): Promise<void> {
    if (inserts.length === 1) return settle(inserts[0]!);
    let written: (id: string) => Promise<WrittenRecord>;
    try {
      written = await this.#writeTogether(inserts);
    } catch (error) {
      if (mayBeWrittenAlone(error)) for (const insert of inserts) await settle(insert);
      else for (const { reject } of inserts) reject(error);
      return;
    }
    for (const { record, resolve } of inserts) resolve(written(record.id));
  }

  /** @returns the answers, by id. */
  async #writeTogether(inserts: readonly Insert[]): Promise<(id: string) => Promise<WrittenRecord>> {
    const { branch, table, selection, options } = this.#kind;
    const projection = compileProjection(branch, selection, ROW, options);
    const { engine } = inserts[0]!;
    const parameters = new WriteParameters(engine);
    const records = inserts.map(({ record }) => record);
    const statement = bulkStatement(branch, table, records, parameters);
    const conflict = options.createOnly === true ? "" : ` ON CONFLICT ("id") DO UPDATE SET ${excludedAssignments(table)}`;
    const bounded = committedAnswer(selection, projection.sql, Math.floor(MAX_COMMITTED_BYTES / inserts.length));
    // Not of one caller's engine: the others go on when he leaves.
    const { rows } = await engine.shared.query<{ id: string; record: string }>(
      `${statement}${conflict} RETURNING ${ROW}."id", ${bounded} AS record`,
      parameters.values,
      { ...REPEATED, budget: engine.budget },
    );
    const answers = new Map(rows.map(({ id, record }) => [id, record]));
    return async (id) => {
      const record = projection.decode(answers.get(id)!);
      return { record, created: recordVersionOf(record, branch.systemNaming) === 0 };
    };
  }
}

/** Resolves in any case. */
async function settle({ alone, resolve, reject }: Insert): Promise<void> {
  await alone().then(resolve, reject);
}

/** Classes of SQLSTATE: values, constraints, names that are gone, limits, and our own. */
const ABOUT_DATA = /^(?:0A|21|22|23|3F|42|54|LS)...$/;

/** One of the records, what they answer, or another transaction is why it was refused: then nothing was written. */
function mayBeWrittenAlone(error: unknown): boolean {
  if (isContention(error)) return true;
  if (error instanceof LodestoneError) return error.code === "INVALID" || error.code === "CONFLICT" || error.code === "TOO_LARGE";
  return ABOUT_DATA.test(String((error as { code?: unknown }).code));
}

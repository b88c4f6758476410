/**
 * Migrates a whole source into a branch.
 *
 * The records go into a working branch, `{branch}~migrating`. When every table there has the count and the
 * checksum of its source, that branch is renamed, in one step, to the requested name. So whatever ends a run
 * (Ctrl-C, kill -9, a power cut), no branch of that name ever holds only some of the records. The same
 * command continues where the last one stopped: an insert with an id replaces the record, and each file has its
 * journal.
 */
import { join } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import type { BranchRef } from "../../records/schema.ts";
import { type ApiClient, ApiError, branchPath } from "../api-client.ts";
import { planSteps, prepareTables } from "../import/import-folder.ts";
import { type ImportProgress, runImport } from "../import/run-import.ts";
import type { SourceFiles } from "../import/source-files.ts";
import { MigrationState } from "./migration-state.ts";
import type { MigrationSource, MigrationTable } from "./open-source.ts";
import { type Verification, verifyTable } from "./verify-table.ts";

export interface MigrationOptions {
  readonly ref: BranchRef;
  readonly stateFolder: string;
  readonly restart: boolean;
  readonly batchSize: number;
  /** What the source reads. Its signal stops the migration after the batches in flight. */
  readonly files: SourceFiles;
  readonly onStep: (sentence: string) => void;
  readonly onProgress: (table: string, progress: ImportProgress) => void;
  readonly onVerified: (table: string, verification: Verification) => void;
}

export type MigrationOutcome = "finished" | "finished before" | "interrupted";

export async function runMigration(client: ApiClient, source: MigrationSource, options: MigrationOptions): Promise<MigrationOutcome> {
  const { ref } = options;
  const { signal } = options.files;
  const working: BranchRef = { ...ref, branch: `${ref.branch}~migrating` };
  const branches = await branchesOf(client, ref.database);
  const target = `${client.url}${branchPath(ref)}`;
  const state = await MigrationState.open(options.stateFolder, target, source, options.restart);
  if (branches.includes(ref.branch)) {
    // The run that renamed it ended before it could record that, or the command is run once more.
    if (state.isVerified && !branches.includes(working.branch)) return "finished before";
    throw new LodestoneError(
      "CONFLICT",
      `The branch ${ref.database}:${ref.branch} exists already. Name another one, or drop that one first.`,
    );
  }
  if (branches.includes(working.branch) && (options.restart || state.isNew)) {
    if (!options.restart) {
      throw new LodestoneError(
        "CONFLICT",
        `The branch ${working.database}:${working.branch} belongs to a migration whose state is not in ${options.stateFolder}. Start over with --restart.`,
      );
    }
    await client.request("DELETE", branchPath(working));
  }
  if (!state.isVerified) {
    await client.createBranch(working);
    if (source.isUnderscored) await client.request("PATCH", branchPath(working), { systemColumns: "underscored" });
    const files = source.tables.map(({ name, columns, file }) => ({ table: name, file: file ?? "", columns }));
    await prepareTables(client, working, files, true);
    if (!(await importAll(client, source, working, state, options))) return "interrupted";
    for (const table of source.tables) {
      if (signal.aborted) return "interrupted";
      const verification = await verifyTable(client, working, table, signal).catch(interrupted);
      if (verification === undefined) return "interrupted";
      options.onVerified(table.name, verification);
      if (!verification.isSame) throw differs(table, working, verification);
    }
    await state.setVerified();
  }
  await client.request("PATCH", branchPath(working), { name: ref.branch });
  return "finished";
}

/** @returns false when it was interrupted. */
async function importAll(
  client: ApiClient,
  source: MigrationSource,
  working: BranchRef,
  state: MigrationState,
  options: MigrationOptions,
): Promise<boolean> {
  const filled = source.tables.filter((table) => table.file !== undefined);
  const byName = new Map(filled.map((table) => [table.name, table]));
  for (const { table: name, kind, later } of planSteps(
    filled.map((table) => ({ table: table.name, file: table.file as string, columns: table.columns })),
  )) {
    const step = `${kind} ${name}`;
    if (state.has(step)) continue;
    const table = byName.get(name) as MigrationTable;
    options.onStep(kind === "records" ? `${name}: records` : `${name}: links (${later.join(", ")})`);
    const { finished } = await runImport(client, {
      file: table.file as string,
      source: await table.open(),
      ref: working,
      table: name,
      create: false,
      vectorColumn: "embedding",
      idPrefix: "",
      idSeed: state.idSeed,
      skipColumns: kind === "records" ? [...table.skipColumns, ...later] : table.skipColumns,
      ...(kind === "links" ? { updateOnly: later } : {}),
      batchSize: options.batchSize,
      mayBeEmpty: true,
      statePath: join(state.folder, `${kind}-${name}.json`),
      restart: false,
      files: options.files,
      onProgress: (progress) => options.onProgress(name, progress),
    });
    if (!finished) return false;
    await state.add(step);
  }
  return true;
}

async function branchesOf(client: ApiClient, database: string): Promise<string[]> {
  try {
    const { branches } = await client.request<{ branches: { name: string }[] }>("GET", `/dbs/${encodeURIComponent(database)}`);
    return branches.map(({ name }) => name);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

function interrupted(error: unknown): undefined {
  if ((error as { name?: unknown }).name === "AbortError") return undefined;
  throw error;
}

function differs({ name, file }: MigrationTable, working: BranchRef, { source, server }: Verification): LodestoneError {
  const what =
    source.records === server.records
      ? `the same number of records (${source.records}), but different ones`
      : `${source.records} records in the source and ${server.records} in the server (an id that occurs twice is one record)`;
  return new LodestoneError(
    "CORRUPT",
    `Table ${name}: ${file ?? "nothing"} and ${working.database}:${working.branch} have ${what}. The branch was not renamed: ` +
      "compare both, correct the source, and start over with --restart.",
  );
}

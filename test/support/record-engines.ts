/**
 * Runs the same tests on both engines: always on the embedded one, and on PostgreSQL if the machine has it.
 * Each suite has a database of its own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { Catalog } from "../../src/records/catalog/catalog.ts";
import type { SchemaEditor } from "../../src/records/catalog/schema-editor.ts";
import type { Engine } from "../../src/records/engine/engine.ts";
import { openEngine } from "../../src/records/engine/open-engine.ts";
import type { BranchInfo, BranchRef, ColumnSchema, TableInfo } from "../../src/records/schema.ts";
import { startPostgres, type TestPostgres } from "./postgres.ts";
import { describeOnce, describeWith } from "./requirements.ts";

export interface RecordFixture {
  readonly engine: Engine;
  readonly branch: BranchInfo;
  /** Only of the embedded engine. */
  readonly dataDir: string | undefined;
  table(name: string): TableInfo;
  /** Creates a table and returns it; `branch` includes it from then on. */
  createTable(name: string, columns?: readonly ColumnSchema[]): Promise<TableInfo>;
  /** Changes the schema; `branch` reflects it from then on. */
  change(work: (editor: SchemaEditor) => Promise<void>): Promise<void>;
}

class EngineFixture implements RecordFixture {
  #engine: Engine | undefined;
  #catalog: Catalog | undefined;
  #branch: BranchInfo | undefined;
  readonly #ref: BranchRef = { database: "test", branch: "main" };
  readonly dataDir: string | undefined;

  constructor(dataDir?: string) {
    this.dataDir = dataDir;
  }

  get engine(): Engine {
    return this.#engine!;
  }

  get branch(): BranchInfo {
    return this.#branch!;
  }

  table(name: string): TableInfo {
    return this.branch.tables.get(name)!;
  }

  async createTable(name: string, columns: readonly ColumnSchema[] = []): Promise<TableInfo> {
    this.#branch = await this.#catalog!.change(this.#ref, (editor) => editor.createTable(name, columns));
    return this.table(name);
  }

  async change(work: (editor: SchemaEditor) => Promise<void>): Promise<void> {
    this.#branch = await this.#catalog!.change(this.#ref, work);
  }

  async open(engine: Engine): Promise<void> {
    this.#engine = engine;
    this.#catalog = await Catalog.open(engine);
    this.#branch = (await this.#catalog.createBranch(this.#ref)).branch;
  }

  async close(): Promise<void> {
    await this.#catalog?.close();
    await this.#engine?.close();
  }
}

/** On a busy machine a statement may take as long as it takes. Time limits have tests of their own. */
const STATEMENT_TIMEOUT_MS = 3_600_000;

/** For what only the embedded engine has: one session for all. */
export function describeOnEmbeddedEngine(name: string, body: (fixture: RecordFixture) => void): void {
  describeOnce(`${name} on the embedded engine`, () => {
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-records-"));
    const fixture = new EngineFixture(dataDir);
    beforeAll(async () => fixture.open(await openEngine({ dataDir, statementTimeoutMs: STATEMENT_TIMEOUT_MS })));
    afterAll(async () => {
      await fixture.close();
      rmSync(dataDir, { recursive: true, force: true });
    });
    body(fixture);
  });
}

export function describeOnBothEngines(name: string, body: (fixture: RecordFixture, kind: "embedded" | "server") => void): void {
  describeOnEmbeddedEngine(name, (fixture) => body(fixture, "embedded"));
  describeWith("postgresql", `${name} on a PostgreSQL server`, (bin) => {
    let server: TestPostgres | undefined;
    const fixture = new EngineFixture();
    beforeAll(async () => {
      server = await startPostgres(bin);
      await fixture.open(await openEngine({ databaseUrl: await server.createDatabase(), statementTimeoutMs: STATEMENT_TIMEOUT_MS }));
    });
    afterAll(async () => {
      await fixture.close();
      await server?.stop();
    });
    body(fixture, "server");
  });
}

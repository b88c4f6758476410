/** Shared by the tests of the catalog: a catalog over the fixture's engine, with branches of its own. */
import { afterAll, beforeAll } from "vitest";
import { Catalog } from "../../../src/records/catalog/catalog.ts";
import type { BranchRef } from "../../../src/records/schema.ts";
import type { RecordFixture } from "../../support/record-engines.ts";

/** The longest name that PostgreSQL keeps whole. */
export const LONG = "x".repeat(63);

export class CatalogSuite {
  readonly #fixture: RecordFixture;
  #catalog: Catalog | undefined;
  #count = 0;

  constructor(fixture: RecordFixture) {
    this.#fixture = fixture;
    beforeAll(async () => {
      this.#catalog = await Catalog.open(fixture.engine);
    });
    afterAll(() => this.#catalog?.close());
  }

  get catalog(): Catalog {
    return this.#catalog!;
  }

  newRef(): BranchRef {
    return { database: "cat", branch: `b${this.#count++}` };
  }

  async newBranch(): Promise<BranchRef> {
    const ref = this.newRef();
    await this.catalog.createBranch(ref);
    return ref;
  }

  /** Runs a statement as the owner, with the branch's schema as search_path. */
  async sql<Row extends object = Record<string, unknown>>(ref: BranchRef, text: string, values: unknown[] = []): Promise<Row[]> {
    const { schemaName } = await this.catalog.branch(ref);
    return this.#fixture.engine.transaction(async (connection) => {
      await connection.query("SELECT set_config('search_path', $1, true)", [`"${schemaName}"`]);
      return (await connection.query<Row>(text, values)).rows;
    });
  }

  /** Tables with the names of their columns. */
  async names(ref: BranchRef): Promise<[string, string[]][]> {
    return [...(await this.catalog.branch(ref)).tables.values()].map((table) => [table.name, [...table.columns.keys()]]);
  }
}

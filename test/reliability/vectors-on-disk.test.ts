/**
 * A server whose vectors are on disk (`--vectors disk`): a disk of their own that others fill to the last byte, and one that
 * cannot be read. Never a wrong answer: 503 says why, what was acknowledged stays, and it is right again by itself.
 */
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { referenceSearch, SIMILARITIES } from "../reference.ts";
import { until } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import type { Answer } from "../support/server.ts";
import { TestServer } from "../support/server.ts";
import { copyTemplate } from "../support/server-template.ts";
import { createVectorTable } from "../support/vector-table.ts";
import { type Clears, failingReads, fullDisk } from "./weather/process-weather.ts";
import { mountSmallDisk, type SmallDisk } from "./weather/small-disk.ts";

/** Smaller columns are never on disk (64 MiB). */
const ROWS = 17_000;
const DIMENSION = 1_024;
const VECTORS_BYTES = 4 * ROWS * DIMENSION;
const SQL = "/db/many:main/sql";

/** A server with a table of vectors, and what it should find in it. */
class Collection {
  readonly server: TestServer;
  readonly dataDir = mkdtempSync(join(tmpdir(), "lodestone-on-disk-"));
  readonly vectors = new Map<string, Float32Array>();

  /** @param searchDir  where its snapshots and vectors shall lie. */
  constructor(searchDir?: string) {
    copyTemplate(this.dataDir);
    rmSync(join(this.dataDir, "search"), { recursive: true, force: true });
    if (searchDir !== undefined) symlinkSync(searchDir, join(this.dataDir, "search"));
    this.server = new TestServer({ dataDir: this.dataDir, args: ["--vectors", "disk", "--snapshot-interval", "5"] });
  }

  async fill(): Promise<void> {
    await this.server.start();
    const { idOf, vectorOf } = await createVectorTable(this.server, ROWS, DIMENSION);
    for (let row = 0; row < ROWS; row++) this.vectors.set(idOf(row), vectorOf(row));
    await until("the vectors are on disk", () => this.vectorFiles().length > 0);
  }

  /** Every vector once more, under another id. */
  async double(): Promise<void> {
    const statement = `INSERT INTO "t" ("id", "n", "v") SELECT 'again' || "id", "n", "v" FROM "t"`;
    expect(await this.server.post(SQL, { statement })).toMatchObject({ status: 200 });
    for (const [id, vector] of [...this.vectors]) this.vectors.set(`again${id}`, vector);
  }

  vectorFiles(): string[] {
    const folder = join(this.dataDir, "search");
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    return names.map((name) => join(folder, name)).filter((path) => path.endsWith(".vectors") && statSync(path).isFile());
  }

  async end(): Promise<void> {
    await this.server.end("SIGKILL");
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Searches for all that was acknowledged. @returns the answer that was not 200; every answer of 200 is compared. */
  async search(): Promise<Answer | undefined> {
    for (const similarity of SIMILARITIES.filter((name) => name !== "dotProduct")) {
      const queryVector = [...this.vectors.values()][similarity.length * 100]!;
      const request = { column: "v", queryVector: [...queryVector], similarityFunction: similarity, size: 20, consistency: "strong" };
      const answer = await this.server.post("/db/many:main/tables/t/vectorSearch", request);
      if (answer.status !== 200) return answer;
      expect(answer.body).toMatchObject(referenceSearch(this.vectors, queryVector, { k: 20, similarity }));
    }
    return undefined;
  }

  async expectRight(): Promise<void> {
    await until("searches are answered", async () => (await this.search()) === undefined, 200);
  }
}

let collection: Collection;
let disk: SmallDisk | undefined;
let clears: Clears | undefined;

afterEach(async () => {
  await clears?.();
  clears = undefined;
  await collection.end();
  disk?.remove();
  disk = undefined;
});

describeWith("containers", "vectors on a disk that is full", () => {
  it("are searched as far as they were stored, or 503 says why; then all of them are found", async () => {
    disk = mountSmallDisk(10 * Math.ceil(VECTORS_BYTES / 2 ** 20))!;
    collection = new Collection(disk.folder);
    await collection.fill();
    await collection.expectRight();
    clears = await fullDisk(disk.folder);
    await collection.double();
    // Until all that fits is written, which takes its time, searches are told that the branch is being read.
    await until("a search says why", async () => {
      const refused = await collection.search();
      expect(refused).toMatchObject({ status: 503 });
      return /No room .*ENOSPC/.test(refused!.body.message);
    });
    // Records are on another disk: they are written and read.
    expect(await collection.server.post(SQL, { statement: 'SELECT count(*) AS n FROM "t"' })).toMatchObject({
      status: 200,
      body: { records: [{ n: 2 * ROWS }] },
    });
    await clears();
    clears = undefined;
    await collection.expectRight();
    await collection.server.end("SIGKILL");
    await collection.server.start();
    await collection.expectRight();
    expect(collection.server.log).not.toMatch(/"level":"?(error|fatal|50|60)/);
  });
});

describeWith("strace", "vectors on a disk that cannot be read", (strace) => {
  it("503 with the reason, once; the records are read anew, into another file", async () => {
    collection = new Collection();
    await collection.fill();
    await collection.expectRight();
    const files = collection.vectorFiles();
    clears = await failingReads(strace, collection.server.pid, files);
    const refused = await collection.search();
    expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    expect(refused!.body.message).toMatch(/EIO/);
    await collection.expectRight();
    // They are removed when the next snapshot is complete, which no longer names them.
    await until("the damaged files are gone", () => !collection.vectorFiles().some((file) => files.includes(file)));
    expect(collection.vectorFiles()).not.toEqual([]);
    expect(collection.server.log.split("\n").filter((line) => line.includes("is made again from its records"))).toHaveLength(1);
  });
});

/**
 * docs/migrating.md as written: its files are made, and its commands are run in a folder with the sample
 * export. Covers a classic database with the TypeScript SDK (in one command, and by hand from CSV and from a
 * dump), a database with Postgres enabled with its SDK, and Python.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BaseClient } from "@xata.io/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/ports.ts";
import { describeWith } from "../support/requirements.ts";
import { MAIN } from "../support/server.ts";
import { sendBytes } from "./support/recorded.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FIXTURES = join(ROOT, "test/sdk/fixtures");
const run = promisify(execFile);

interface Block {
  readonly language: string;
  /** What follows the language: `file=setup.mjs`, `run`, `run=csv`. */
  readonly label: string;
  readonly text: string;
}

const BLOCKS: Block[] = [...readFileSync(join(ROOT, "docs/migrating.md"), "utf8").matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)].map(
  ([, language = "", label = "", text = ""]) => ({ language, label, text }),
);

/**
 * A folder as the reader has it: the SDK installed, `lodestone` on the path, the exported files. Only the
 * port is changed.
 */
class Reader {
  readonly folder = mkdtempSync(join(tmpdir(), "lodestone-migrating-"));
  readonly #port: number;
  readonly #children: ChildProcess[] = [];

  constructor(port: number, sdk = join(ROOT, "node_modules/@xata.io/client")) {
    this.#port = port;
    mkdirSync(join(this.folder, "node_modules/@xata.io"), { recursive: true });
    symlinkSync(sdk, join(this.folder, "node_modules/@xata.io/client"));
    cpSync(FIXTURES, this.folder, { recursive: true });
    mkdirSync(join(this.folder, "export"));
    for (const file of ["authors.csv", "books.csv", "xata.ts"]) cpSync(join(FIXTURES, file), join(this.folder, "export", file));
    const bin = join(this.folder, "lodestone");
    writeFileSync(bin, `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
    chmodSync(bin, 0o755);
    for (const { label, text } of BLOCKS) {
      const [, name] = /^file=(\S+)$/.exec(label) ?? [];
      if (name !== undefined) writeFileSync(join(this.folder, name), text.replaceAll("8787", String(port)));
    }
  }

  get #environment(): Record<string, string> {
    return {
      PATH: `${this.folder}:${process.env.PATH}`,
      HOME: this.folder,
      LODESTONE_PORT: String(this.#port),
      LODESTONE_URL: `http://127.0.0.1:${this.#port}`,
      LODESTONE_LOG_LEVEL: "warn",
    };
  }

  /** Runs a command line of the page. */
  async shell(command: string, environment: Record<string, string> = {}): Promise<string> {
    const options = { cwd: this.folder, env: { ...this.#environment, ...environment } };
    const { stdout } = await run("sh", ["-e", "-c", command], options);
    return stdout;
  }

  /** Starts a server by a command line of the page and waits for its message. */
  async serve(command: string, environment: Record<string, string> = {}): Promise<void> {
    const child = spawn("sh", ["-c", `exec ${command}`], { cwd: this.folder, env: { ...this.#environment, ...environment } });
    this.#children.push(child);
    let output = "";
    await new Promise<void>((resolve, reject) => {
      const listen = (chunk: Buffer) => {
        output += chunk;
        if (/listens on http/.test(output)) resolve();
      };
      child.stdout.on("data", listen);
      child.stderr.on("data", listen);
      child.once("exit", (code) => reject(new Error(`${command} ended with ${code}:\n${output}`)));
    });
  }

  async stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await exited;
    }
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const block = (label: string): string => {
  const found = BLOCKS.find((candidate) => candidate.label === label);
  if (found === undefined) throw new Error(`docs/migrating.md has no block "${label}"`);
  return found.text.trim();
};

const BOOKS = [
  {
    id: "rec_big",
    title: "Big number",
    pages: 9007199254740991,
    rating: 1.7976931348623157e308,
    tags: [],
    details: {},
    embedding: [Math.fround(1e-40), Math.fround(3.4028235e38), 0, 1],
  },
  { id: "rec_kindred", title: "Kindred\tand\nmore \\ kin", pages: 264, author: { id: "rec_butler" } },
  {
    id: "rec_solaris",
    title: "Solaris",
    pages: 204,
    rating: 4,
    in_print: false,
    published: "1961-01-01T00:00:00.000Z",
    tags: ["sea"],
    details: ["ocean"],
    embedding: [-0.7, 0.1, 0.6, 0.3].map(Math.fround),
    author: { id: "rec_lem" },
  },
  {
    id: "rec_tombs",
    title: "The Tombs of Atuan",
    pages: 163,
    rating: 4.1,
    in_print: true,
    published: "1970-12-01T00:00:00.000Z",
    tags: ["fantasy", "sea"],
    details: { isbn: "978-0-689-20680-4", sizes: [5] },
    embedding: [0.1, 0.9, 0.25, -0.5].map(Math.fround),
    author: { id: "rec_leguin" },
    sequel_of: { id: "rec_wizard" },
  },
  {
    id: "rec_wizard",
    title: "A Wizard of Earthsea",
    pages: 205,
    rating: 4.25,
    in_print: true,
    published: "1968-11-01T12:30:00.500Z",
    tags: ["fantasy", "sea", 'with "quotes"', "a\\b"],
    details: { isbn: null, themes: ["balance", "names"] },
    embedding: [0.2, 0.8, 0.25, -0.4].map(Math.fround),
    author: { id: "rec_leguin" },
  },
];

const AUTHORS = [
  { id: "rec_butler", name: 'Octavia "Estelle" Butler' },
  {
    id: "rec_leguin",
    name: "Ursula K. Le Guin",
    email: "ursula@example.com",
    born: "1929-10-21T00:00:00.000Z",
    awards: ["Hugo", "Nebula, twice"],
    favourite: { id: "rec_solaris" },
  },
  { id: "rec_lem", name: "Stanisław Lem", email: "lem@example.com", born: "1921-09-12T00:00:00.000Z", awards: [] },
];

/** What was in the export: without nulls and metadata, vectors as float32. */
function exported(records: readonly object[]): unknown[] {
  const plain = JSON.parse(JSON.stringify(records)) as Record<string, unknown>[];
  return plain.map((record) => {
    const values = Object.entries(record).filter(([key, value]) => value !== null && key !== "xata");
    return Object.fromEntries(
      values.map(([key, value]) => {
        if (key === "embedding") return [key, (value as number[]).map(Math.fround)];
        return [key, ["author", "favourite", "sequel_of"].includes(key) ? { id: (value as { id: string }).id } : value];
      }),
    );
  });
}

test("the page has exactly the steps that are run here", () => {
  expect(BLOCKS.map(({ language, label }) => `${language} ${label}`.trim())).toEqual([
    "sh run=serve",
    "sh run=migrate",
    "js file=check.mjs",
    "sh run",
    "ts",
    "sh run=migrate-postgres",
    "sh",
    "js file=check-postgres.mjs",
    "sh run=check-postgres",
    "python file=check.py",
    "sh",
    "js file=remote.mjs",
    "js file=setup.mjs",
    "sh run",
    "sh run=csv",
    "sh run=dump",
  ]);
});

const [CHECK = "", SETUP = ""] = BLOCKS.filter(({ label }) => label === "run").map(({ text }) => text);

describe("a classic database in one command", () => {
  let reader: Reader;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    reader = new Reader(port);
  });
  afterAll(() => reader?.end());

  test("is planned, migrated, verified and checked", async () => {
    await reader.serve(block("run=serve"));
    const said = await reader.shell(block("run=migrate"));
    expect(said).toContain("authors.portrait: File columns are not part of Lodestone.");
    expect(said).toContain("library:main is there: 2 tables, 8 records, verified.");
    expect(await reader.shell(CHECK)).toBe("authors: 3\nbooks: 5\nThe Tombs of Atuan, A Wizard of Earthsea\n");
    const xata = new BaseClient({ databaseURL: `http://w.r.localhost:${port}/db/library`, branch: "main", apiKey: "none" });
    expect(exported((await xata.db.books?.sort("id" as never).getAll()) ?? [])).toEqual(BOOKS);
    expect(exported((await xata.db.authors?.sort("id" as never).getAll()) ?? [])).toEqual(AUTHORS);
  });

  test("and its Python users change one line: the requests that the page's script makes, as the SDK sent them", async () => {
    const recorded: { script: string; requests: string[] } = JSON.parse(
      readFileSync(new URL("recorded/python-docs.json", import.meta.url), "utf8"),
    );
    expect(block("file=check.py")).toBe(recorded.script.trim());
    const answers = [];
    for (const request of recorded.requests) answers.push(await sendBytes(port, request));
    expect(answers).toMatchObject([
      { status: 200, body: { title: "Solaris" } },
      {
        status: 200,
        body: { records: [{ title: "A Wizard of Earthsea", author: { name: "Ursula K. Le Guin" } }, { title: "Big number" }] },
      },
      { status: 200, body: { records: [{ title: "The Tombs of Atuan" }, { title: "A Wizard of Earthsea" }] } },
    ]);
  });
});

describeWith("clients", "a database with Postgres enabled", (modules) => {
  let reader: Reader;
  beforeAll(async () => {
    reader = new Reader(await freePort(), join(modules, "@xata.io/client-next"));
  });
  afterAll(() => reader?.end());

  test("comes from its dump, and its SDK reads and queries by its names", async () => {
    await reader.serve(block("run=serve"));
    expect(await reader.shell(block("run=migrate-postgres"))).toContain("library:main is there: 2 tables, 8 records, verified.");
    const said = await reader.shell(block("run=check-postgres"));
    expect(said).toMatch(/^rec_solaris: Solaris by Stanisław Lem\n\[ \{ xata_id: 'rec_solaris', xata_version: [01] \} \]\n$/);
  });
});

describe.each(["csv", "dump"])("by hand from %s", (kind) => {
  let reader: Reader;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    reader = new Reader(port);
  });
  afterAll(() => reader?.end());

  test("steps 1 to 4, one after the other", async () => {
    await reader.serve(block("run=serve"));
    expect(await reader.shell(SETUP)).toBe("17 changes made\n");
    const said = await reader.shell(block(`run=${kind}`));
    expect(said.match(/^\d+ records imported into library:main\/\w+/gm)).toEqual([
      "3 records imported into library:main/authors",
      "5 records imported into library:main/books",
      "5 records imported into library:main/books",
      "3 records imported into library:main/authors",
    ]);
    expect(await reader.shell(CHECK)).toBe("authors: 3\nbooks: 5\nThe Tombs of Atuan, A Wizard of Earthsea\n");
  });

  test("every value is as it was in the export", async () => {
    const xata = new BaseClient({ databaseURL: `http://w.r.localhost:${port}/db/library`, branch: "main", apiKey: "none" });
    expect(exported((await xata.db.books?.sort("id" as never).getAll()) ?? [])).toEqual(BOOKS);
    expect(exported((await xata.db.authors?.sort("id" as never).getAll()) ?? [])).toEqual(AUTHORS);
  });

  test("a remote server with a key is reached by the page's fetch", async () => {
    await reader.stop();
    const address = `http://127.0.0.2:${port}`;
    await reader.serve("lodestone serve --data-dir ./data --host 127.0.0.2 --api-key secret-of-this-test");
    const environment = { LODESTONE_SERVER: address, LODESTONE_KEY: "secret-of-this-test" };
    expect(await reader.shell("node remote.mjs", environment)).toBe("Solaris by Stanisław Lem\n");
    await expect(reader.shell("node remote.mjs", { ...environment, LODESTONE_KEY: "wrong" })).rejects.toThrow(/401|key/i);
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
  });
});

/**
 * A `pg_dump` dump of any format: where the records of each table begin, and the statements that create its
 * tables. A plain dump is read as it is. So is a tar dump, which is a plain one without records (restore.sql)
 * and one file of records per table. The other formats go through pg_restore.
 */

import { spawn } from "node:child_process";
import { open, stat } from "node:fs/promises";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { lines } from "../jsonl-source.ts";
import type { SourcePosition } from "../source.ts";
import { type SourceFiles, utf8Chunks } from "../source-files.ts";
import type { Encoding } from "../text-encoding.ts";
import { isTar, readTarIndex, TAR_BLOCK_BYTES, type TarMember } from "./tar-index.ts";

export interface DumpTable {
  readonly name: string;
  /** Names of the columns, in the order of the values. */
  readonly header: readonly string[];
  /** The file that has the records, up to a line `\.` */
  readonly path: string;
  readonly start: SourcePosition;
  /** The offset that they do not reach beyond. */
  readonly end: number;
}

export interface DumpFile {
  readonly tables: ReadonlyMap<string, DumpTable>;
  /** Statements about tables: CREATE TABLE, ALTER TABLE, COMMENT ON COLUMN, CREATE UNIQUE INDEX. */
  readonly statements: readonly string[];
  /** Of the plain form, in UTF-8. */
  readonly byteLength: number;
  /** Tables whose records are INSERT statements, which are not read. */
  readonly hasInserts: boolean;
}

const START: SourcePosition = { offset: 0, row: 0, line: 0 };
const ABOUT_TABLES = /^(?:CREATE (?:UNLOGGED )?TABLE|ALTER TABLE|COMMENT ON COLUMN|CREATE UNIQUE INDEX)\b/;
/** More than any statement about a table needs; longer ones (a function's body) are skipped. */
const MAX_STATEMENT_LENGTH = 1_000_000;
const MAX_STATEMENTS = 100_000;
/** Before the first statement that makes something. */
const HEAD_BYTES = 8 * 1024;
const STATED_ENCODING = /^SET client_encoding = '([\w-]+)';\r?$/m;
const PG_ENCODINGS: Readonly<Record<string, Encoding>> = { UTF8: "utf-8", LATIN1: "latin1", WIN1252: "windows-1252" };
/** `COPY … FROM '$$PATH$$/3345.dat';` of a tar dump's restore.sql. */
const FROM_MEMBER = /^(COPY .* FROM) '\$\$PATH\$\$\/([\w.]+)';\r?$/;

/** @throws {LodestoneError} when it is not a dump, or one that cannot be read here. The files' signal's reason. */
export async function openDumpFile(path: string, files: SourceFiles): Promise<DumpFile> {
  const found = await stat(path);
  if (found.isDirectory()) return scanPlain(await toPlainDump(path, files), files);
  const head = await readHead(path, TAR_BLOCK_BYTES);
  if (head.subarray(0, 5).toString("latin1") === "PGDMP") return scanPlain(await toPlainDump(path, files), files);
  if (isTar(head)) return openTarDump(path, files);
  if (head[0] === 0x1f && head[1] === 0x8b) {
    throw new LodestoneError("INVALID", `${path} is compressed with gzip: gunzip it first.`);
  }
  return scanPlain(path, files);
}

async function scanPlain(path: string, files: SourceFiles): Promise<DumpFile> {
  const head = await readHead(path, HEAD_BYTES);
  return scan(await files.text(path, encodingOf(head, files.encoding)), files.signal);
}

/**
 * The encoding of a dump's texts, which it says itself (that of its database, or of `pg_dump --encoding`). Bytes of
 * another encoding may be UTF-8 by accident, so this is not left to a check.
 */
function encodingOf(head: Buffer, asked: Encoding | undefined): Encoding | undefined {
  const stated = STATED_ENCODING.exec(head.toString("latin1"))?.[1]?.toUpperCase();
  // SQL_ASCII: the database did not know.
  if (stated === undefined || stated === "SQL_ASCII") return asked;
  const encoding = PG_ENCODINGS[stated];
  if (encoding === undefined) {
    throw new LodestoneError("INVALID", `The dump is in PostgreSQL's encoding ${stated}; make it with pg_dump --encoding=UTF8.`);
  }
  if (asked === undefined || asked === encoding) return encoding;
  throw new LodestoneError("INVALID", `--encoding ${asked}: the dump says itself that it is in ${encoding}; leave the option out.`);
}

/** True for a file that begins like one of the formats that are not text. */
export async function isBinaryDump(path: string): Promise<boolean> {
  const head = await readHead(path, TAR_BLOCK_BYTES);
  return head.subarray(0, 5).toString("latin1") === "PGDMP" || isTar(head);
}

async function openTarDump(path: string, files: SourceFiles): Promise<DumpFile> {
  const members = await readTarIndex(path, files.signal);
  const script = members.get("restore.sql");
  if (script === undefined)
    throw new LodestoneError("INVALID", `${path} is a tar archive, but not a dump of pg_dump: it has no restore.sql.`);
  const head = await readHead(path, Math.min(script.size, HEAD_BYTES), script.offset);
  if ((encodingOf(head, files.encoding) ?? "utf-8") !== "utf-8") {
    throw new LodestoneError("INVALID", `${path} is a tar dump that is not in UTF-8; make it with pg_dump --encoding=UTF8.`);
  }
  const dump = await scan(path, files.signal, { script, members });
  for (const { start, end } of dump.tables.values()) {
    for await (const _ of utf8Chunks(path, start.offset, end)) files.signal.throwIfAborted();
  }
  return dump;
}

interface Archive {
  readonly script: TarMember;
  readonly members: ReadonlyMap<string, TarMember>;
}

async function scan(path: string, signal: AbortSignal, archive?: Archive): Promise<DumpFile> {
  const tables = new Map<string, DumpTable>();
  const statements: string[] = [];
  const scanner = new SqlScanner();
  let hasInserts = false;
  let inRecords = false;
  let statement = "";
  const { offset, size: scriptSize } = archive?.script ?? { offset: 0, size: Number.POSITIVE_INFINITY };
  for await (const line of lines(path, { ...START, offset }, offset + scriptSize)) {
    const { text } = line;
    signal.throwIfAborted();
    // A row may look like a statement.
    if (inRecords) {
      inRecords = text !== "\\." && text !== "\\.\r";
      continue;
    }
    if (scanner.isOutside && statement === "") {
      const copy = copyOf(text, archive, path);
      if (copy !== undefined) {
        const { member, table: name, columns: header } = copy;
        tables.set(name, {
          name,
          header,
          path,
          start: member === undefined ? { offset: line.end, row: 0, line: line.number } : { ...START, offset: member.offset },
          end: member === undefined ? Number.POSITIVE_INFINITY : member.offset + member.size,
        });
        inRecords = member === undefined;
        continue;
      }
      // Comments, empty lines, and commands of psql.
      if (/^\s*(?:--|\\|\r?$)/.test(text)) continue;
      if (text.startsWith("INSERT INTO ")) hasInserts = true;
    }
    scanner.feed(text);
    if (statement.length < MAX_STATEMENT_LENGTH) statement += `${text}\n`;
    if (!scanner.isOutside || !/;\s*$/.test(text)) continue;
    if (ABOUT_TABLES.test(statement) && statement.length < MAX_STATEMENT_LENGTH && statements.length < MAX_STATEMENTS)
      statements.push(statement);
    statement = "";
  }
  const { size } = await stat(path);
  return { tables, statements, byteLength: size, hasInserts };
}

function copyOf(text: string, archive: Archive | undefined, path: string) {
  const plain = parseCopy(text);
  if (plain !== undefined) return { ...plain, member: undefined };
  const [, command, name] = FROM_MEMBER.exec(text) ?? [];
  if (command === undefined || name === undefined) return undefined;
  if (archive === undefined) {
    throw new LodestoneError(
      "INVALID",
      `${path} is the restore.sql of a tar dump. The records are not in it, but in other files of the archive. Give the archive itself (the .tar file).`,
    );
  }
  const copy = parseCopy(`${command} stdin;`);
  const member = archive.members.get(name);
  if (copy === undefined || member === undefined)
    throw new LodestoneError("INVALID", `${path} has no member ${name}; the dump is incomplete.`);
  return { ...copy, member };
}

/** `COPY public.teams (xata_id, "index", name) FROM stdin;` */
export function parseCopy(text: string): { table: string; columns: string[] } | undefined {
  const name = '(?:[^\\s"().,]+|"(?:[^"]|"")*")';
  const match = new RegExp(`^COPY (?:${name}\\.)?(${name}) \\((.*)\\) FROM stdin;\\r?$`).exec(text);
  if (match === null) return undefined;
  const columns = (match[2] as string).match(new RegExp(name, "g")) ?? [];
  return { table: unquote(match[1] as string), columns: columns.map(unquote) };
}

const unquote = (name: string): string => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);

async function readHead(path: string, length: number, offset = 0): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    const head = Buffer.alloc(length);
    const { bytesRead } = await handle.read(head, 0, head.length, offset);
    return head.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

// Converts dumps that only PostgreSQL's own program can read (the custom and the directory format) to plain ones, in a
// file of this run. The same program makes the same file of the same dump, so an interrupted import can continue in
// the one that the next run makes.

/** @returns the path of the plain dump. @throws the files' signal's reason. */
async function toPlainDump(dump: string, { scratch, signal }: SourceFiles): Promise<string> {
  const { path, handle } = await scratch.createFile();
  try {
    await restore(dump, handle.fd, signal);
  } finally {
    await handle.close();
  }
  return path;
}

async function restore(path: string, to: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const child = spawn("pg_restore", ["--no-owner", "--no-privileges", "--file=-", path], { stdio: ["ignore", to, "pipe"] });
  const stop = (): boolean => child.kill();
  signal.addEventListener("abort", stop);
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    if (said.length < 4_000) said += chunk.toString();
  });
  try {
    await new Promise<void>((done, fail) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        fail(error.code === "ENOENT" ? missing(path) : error);
      });
      child.once("close", (code) => {
        if (code === 0) done();
        else if (signal.aborted) fail(signal.reason);
        else fail(new LodestoneError("INVALID", `pg_restore cannot read ${path}: ${said.trim() || `it ended with ${code}`}`));
      });
    });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function missing(path: string): LodestoneError {
  return new LodestoneError(
    "UNAVAILABLE",
    `${path} is a dump in a format that only PostgreSQL's own program pg_restore can read, and pg_restore is not installed. Install PostgreSQL's client programs ` +
      `(Debian: apt-get install postgresql-client; macOS: brew install libpq), or write a plain dump where they are: pg_restore --file=dump.sql ${path}`,
  );
}

/**
 * Says what a line of SQL is in: nothing, or a text, a function's body, a quoted name or a comment that began
 * on an earlier line. So a line of a function's body that looks like a statement is not taken for one
 * (PostgreSQL documentation, "Lexical Structure").
 */
export class SqlScanner {
  /**
   * What ends the construct that the scanner is in: a quote, `$tag$`, or `*` for a comment of `depth`;
   * undefined: none.
   */
  #end: string | undefined;
  #escapes = false;
  #depth = 0;

  get isOutside(): boolean {
    return this.#end === undefined;
  }

  /** A line without its end. */
  feed(line: string): void {
    let at = 0;
    while (at < line.length) at = this.#end === undefined ? this.#outside(line, at) : this.#inside(line, at, this.#end);
  }

  #outside(line: string, at: number): number {
    const character = line[at] as string;
    if (character === "'" || character === '"') {
      this.#end = character;
      this.#escapes = character === "'" && /(?:^|[^\w$])[eE]$/.test(line.slice(Math.max(0, at - 2), at));
      return at + 1;
    }
    if (line.startsWith("--", at)) return line.length;
    if (line.startsWith("/*", at)) {
      this.#end = "*";
      this.#depth = 1;
      return at + 2;
    }
    if (character === "$" && !/[\w$]/.test(line[at - 1] ?? "")) {
      const tag = /^\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/.exec(line.slice(at, at + 66))?.[0];
      if (tag !== undefined) {
        this.#end = tag;
        return at + tag.length;
      }
    }
    return at + 1;
  }

  #inside(line: string, at: number, end: string): number {
    if (end === "*") {
      const opens = line.startsWith("/*", at);
      if (!opens && !line.startsWith("*/", at)) return at + 1;
      this.#depth += opens ? 1 : -1;
      if (this.#depth === 0) this.#end = undefined;
      return at + 2;
    }
    if (this.#escapes && line[at] === "\\") return at + 2;
    const found = this.#escapes ? (line.startsWith(end, at) ? at : -1) : line.indexOf(end, at);
    if (found === -1) return this.#escapes ? at + 1 : line.length;
    // A doubled quote is one within the text: it is left and entered again.
    this.#end = undefined;
    this.#escapes = this.#escapes && line[found + 1] === end;
    if (this.#escapes) {
      this.#end = end;
      return found + 2;
    }
    return found + end.length;
  }
}

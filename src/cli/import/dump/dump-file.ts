/**
 * A `pg_dump` dump of any format: where the records of each table begin, and the statements that create its
 * tables. A plain dump is read as it is. So is a tar dump, which is a plain one without records (restore.sql)
 * and one file of records per table. The other formats go through pg_restore.
 */
import { open, stat } from "node:fs/promises";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { lines } from "../jsonl-source.ts";
import type { SourcePosition } from "../source.ts";
import { type SourceFiles, utf8Chunks } from "../source-files.ts";
import type { Encoding } from "../text-encoding.ts";
import { toPlainDump } from "./pg-restore.ts";
import { SqlScanner } from "./sql-scanner.ts";
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

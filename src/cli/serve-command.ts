/** `lodestone serve`: its options, each with an environment variable. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { pino } from "pino";
import { LEAST_MEMORY_BYTES } from "../budget/process-limits.ts";
import { DEFAULT_PORT } from "./api-client.ts";
import { COMMIT } from "./build-identity.ts";
import { endProcess } from "./process-end.ts";
import { parsePart, parsePeers } from "./search-part.ts";
import type { ServeOptions } from "./serve.ts";
import { StartSteps } from "./start-steps.ts";

/** @param version  of the program, which answers and logs carry. */
export function serveCommand(command: Command, version: string): void {
  command
    .description(
      "Run the server. While it starts it says what it is doing, each step at once and again every five seconds: in the log, or on a terminal.",
    )
    .addOption(option("--host <host>", "address to listen on (default: localhost, IPv4 and IPv6); any other than loopback requires keys"))
    .addOption(option("--port <port>", "port to listen on", parsePort).default(DEFAULT_PORT))
    .addOption(option("--data-dir <folder>", "where the embedded database lives").default("./data"))
    .addOption(option("--database-url <url>", "a PostgreSQL server (15 or later) instead of the embedded database"))
    .addOption(
      option(
        "--database-connections <count>",
        "maximum number of connections to the PostgreSQL server, besides the one that listens",
        parseCount,
      ).default(10),
    )
    .addOption(
      option(
        "--sql-connections <count>",
        "maximum number of connections for SQL over HTTP, which log in as the roles of branches",
        parseCount,
      ).default(8),
    )
    .addOption(
      option(
        "--search-part <i/n>",
        "hold the vectors of one part of the records, 0/4 to 3/4, and ask the other servers for the rest",
        parsePart,
      ),
    )
    .addOption(
      option(
        "--search-peers <urls>",
        'the servers of all parts, the same list for each server: "http://a,http://b" for two parts; servers that hold the same part are separated by "|"',
        parsePeers,
      ),
    )
    .addOption(option("--search-secret-file <file>", "the file with the secret that the servers share, of at least 32 characters"))
    .addOption(
      option(
        "--search-url <url>",
        "another PostgreSQL with pgvector (0.5 or later; Citus spreads it over machines) that holds the vectors and answers searches, in place of this process's memory",
      ),
    )
    .addOption(
      option(
        "--search-connections <count>",
        "maximum number of connections to it, besides the one that holds locks; half of them are for searches only",
        parseCount,
      ).default(8),
    )
    .addOption(list("--api-key <key>", "require this key (repeatable); scope admin"))
    .addOption(option("--key-file <file>", "require one of the keys in this file (see lodestone keys)"))
    .addOption(list("--cors-origin <origin>", 'allow pages of this origin to call the server (repeatable; "*" for all)'))
    .addOption(
      list(
        "--trust-proxy <networks>",
        "believe the X-Forwarded-For of proxies at these addresses, such as 10.0.0.7 or 10.0.0.0/8 (repeatable)",
      ),
    )
    .addOption(
      option(
        "--statement-timeout <seconds>",
        "cancel statements that run longer (default: 60; 10 for SQL over HTTP on the embedded database, where statements wait for each other)",
        parseSeconds,
      ),
    )
    .addOption(
      option(
        "--snapshot-interval <seconds>",
        "how often to write snapshots of changed search indexes, for fast starts",
        parseSeconds,
      ).default(300),
    )
    .addOption(
      option(
        "--journal-size <size>",
        "write a new snapshot of a search index when the journal of changes after it is larger than this (default: half of the index, at least 16MB)",
        parseFileSize,
      ),
    )
    .addOption(
      option(
        "--vectors <where>",
        "where large columns of vectors are kept: in memory, or on disk with only their codes, a third of their size, in memory; auto: on disk from a quarter of the memory for indexes on. The answers are the same",
      )
        .choices(["auto", "memory", "disk"])
        .default("auto"),
    )
    .addOption(
      option(
        "--max-lag <seconds>",
        "report not ready (/readyz) while searches are further behind the records than this",
        parseSeconds,
      ).default(30),
    )
    .addOption(
      option("--max-requests <count>", "requests processed at once; further ones are answered 429 and not processed", parseCount).default(
        256,
      ),
    )
    .addOption(
      option(
        "--max-memory <size>",
        "memory that this process may take: bounds answers, bodies, the embedded database and indexes (default: what the machine or its control group has)",
        parseMemory,
      ),
    )
    .addOption(
      option("--log-level <level>", "what to log on stderr, as JSON lines")
        .choices(["fatal", "error", "warn", "info", "debug", "silent"])
        .default(process.stderr.isTTY ? "warn" : "info", "warn on a terminal, else info"),
    )
    .addOption(
      option(
        "--shutdown-timeout <seconds>",
        "end the process, whatever still hangs, this long after it was asked to stop",
        parseSeconds,
      ).default(30),
    )
    .option("--no-console", "do not serve the console under /console")
    .option("--mcp-write", "let agents that use /mcp insert and delete records, too, where their key may")
    .option("--demo", "also load the demo: the 148 CSS named colours as Lab vectors in demo:main")
    .action((options: Omit<ServeOptions, "version">) => run({ ...options, version }));
}

async function run(options: ServeOptions): Promise<void> {
  const log = pino({ level: options.logLevel, redact: ["req.headers.authorization"] }, pino.destination({ fd: 2, sync: true }));
  log.info({ version: options.version, commit: COMMIT, node: process.version }, "starting");
  const isForPeople = process.stderr.isTTY && !log.isLevelEnabled("info") && log.isLevelEnabled("warn");
  const steps = new StartSteps(log, { terminal: isForPeople ? process.stderr : undefined });
  steps.begin("loading the program");
  // As later versions of Node have it. Without it pg looks at `Response`, which loads Node's fetch: 7 MB of memory, 20 ms.
  if (!("navigator" in globalThis)) Object.assign(globalThis, { navigator: { userAgent: `Node.js/${process.versions.node}` } });
  const { serve } = await import("./serve.ts");
  await serve(options, log, steps);
  await endProcess(0);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError("Expected a port from 0 to 65535 (0: any that is free).");
  return port;
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= 86_400)) throw new InvalidArgumentError("Expected seconds, more than 0 and at most 86400.");
  return seconds;
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!/^\d{1,6}$/.test(text) || count < 1) throw new InvalidArgumentError("Expected a whole number from 1 to 999999.");
  return count;
}

const UNITS: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** `512MB`, `4GB`, `1.5GiB`: all units are powers of 1024. NaN when it is not a size. */
function bytesOf(text: string): number {
  const [, count, unit] = /^(\d{1,6}(?:\.\d{1,3})?) ?([KMGT])i?B?$/i.exec(text) ?? [];
  return Math.floor(Number(count) * (UNITS[unit?.toUpperCase() ?? ""] ?? Number.NaN));
}

function parseMemory(text: string): number {
  const bytes = bytesOf(text);
  if (bytes >= LEAST_MEMORY_BYTES) return bytes;
  throw new InvalidArgumentError(`Expected memory such as 512MB or 4GB, at least ${LEAST_MEMORY_BYTES / 2 ** 20}MB.`);
}

function parseFileSize(text: string): number {
  const bytes = bytesOf(text);
  if (bytes > 0) return bytes;
  throw new InvalidArgumentError("Expected a size such as 64MB.");
}

const collect = (value: string, previous: string[]): string[] => [...previous, ...value.split(",").filter((part) => part !== "")];

/** Its variable is its name in capitals behind LODESTONE_, as LODESTONE_DATA_DIR of --data-dir. */
function option(flags: string, description: string, parse: (text: string) => unknown = (text) => text): Option {
  const made = new Option(flags, description).argParser(parse);
  return made.env(`LODESTONE_${made.name().toUpperCase().replaceAll("-", "_")}`);
}

/** A repeatable option. Its variable may hold several values, separated by commas. */
const list = (flags: string, description: string): Option => option(flags, description).argParser(collect).default([], "none");

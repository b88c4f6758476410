/** `serve --search-part`: reads and checks its flags. */
import { readFile } from "node:fs/promises";
import { InvalidArgumentError } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { Part } from "../records/feed/feed-types.ts";

export interface SearchPartOptions {
  readonly databaseUrl?: string;
  readonly databaseConnections: number;
  readonly searchPart?: Part;
  /** By part, then the replicas of the part. */
  readonly searchPeers?: readonly (readonly string[])[];
  readonly searchSecretFile?: string;
  readonly searchUrl?: string;
}

export interface SearchPartSettings {
  readonly part: Part;
  readonly peers: readonly (readonly string[])[];
  readonly secret: string;
}

const MAX_PARTS = 256;
const MIN_SECRET_LENGTH = 32;
/** Two strong rounds hold one each; reading continues beside them. */
const MIN_CONNECTIONS = 4;

export function parsePart(text: string): Part {
  const [, index, of] = /^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? [];
  const part = { index: Number(index), of: Number(of) };
  if (index !== undefined && part.index < part.of && part.of <= MAX_PARTS) return part;
  throw new InvalidArgumentError(`Expected a part such as 0/4, the first of four; at most ${MAX_PARTS} of them.`);
}

export function parsePeers(text: string): string[][] {
  return text.split(",").map((replicas) => replicas.split("|").map((url) => parsePeer(url.trim())));
}

function parsePeer(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  if (isPlain && url.pathname === "/" && url.search === "" && url.hash === "") return url.origin;
  throw new InvalidArgumentError(
    'Expected URLs such as http://host:8787, one for each part with "," between; replicas of a part with "|".',
  );
}

/** undefined: the server holds all vectors. @throws {LodestoneError} INVALID when the flags do not go together. */
export async function searchPartSettings(options: SearchPartOptions): Promise<SearchPartSettings | undefined> {
  const { searchPart: part, searchPeers: peers, searchSecretFile: file } = options;
  if (part === undefined) {
    if (peers === undefined) return undefined;
    throw invalid("--search-peers needs --search-part, the part that this server holds itself.");
  }
  if (options.searchUrl !== undefined)
    throw invalid("--search-part and --search-url are alternatives for where vectors are held: choose one.");
  if (options.databaseUrl === undefined) throw invalid("--search-part needs --database-url: the parts share one PostgreSQL server.");
  if (peers === undefined) throw invalid("--search-part needs --search-peers, the servers of all parts.");
  if (peers.length !== part.of) throw invalid(`--search-peers names the servers of ${peers.length} parts; --search-part says ${part.of}.`);
  if (options.databaseConnections < MIN_CONNECTIONS)
    throw invalid(`--search-part needs --database-connections of at least ${MIN_CONNECTIONS}.`);
  if (file === undefined) throw invalid("--search-part needs --search-secret-file, the secret that the servers share.");
  return { part, peers, secret: await readSecret(file) };
}

async function readSecret(file: string): Promise<string> {
  let text: string;
  try {
    text = (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw invalid(`The file of --search-secret-file cannot be read: ${(error as Error).message}`);
  }
  if (!/^[\x21-\x7e]+$/.test(text) || text.length < MIN_SECRET_LENGTH)
    throw invalid(
      `The file of --search-secret-file must hold at least ${MIN_SECRET_LENGTH} visible ASCII characters without spaces, and nothing else.`,
    );
  return text;
}

function invalid(message: string): LodestoneError {
  return new LodestoneError("INVALID", message);
}

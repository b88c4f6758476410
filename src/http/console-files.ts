/**
 * Serves the console: the static files that the build leaves in dist/console, read once at the start. No path
 * of a request ever reaches the file system. Nothing here needs a key (the files contain nobody's data), and
 * the page may load only these files and talk only to this server.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context, Middleware } from "koa";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { streamToReader } from "./answer-stream.ts";

export const CONSOLE_PATH = "/console";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Scripts, styles, workers and requests of this origin alone; WebAssembly may be compiled, text may not become code. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": POLICY,
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

/** Smaller files are not worth it. */
const LEAST_TO_COMPRESS_BYTES = 1024;

interface StaticFile {
  readonly bytes: Buffer;
  readonly type: string;
  readonly tag: string;
  /** The file's name contains a hash of its content, so different content has a different name. */
  readonly immutable: boolean;
  gzipped?: Promise<Buffer>;
}

const compress = promisify(gzip);

/** Of a file, sent to a reader who takes it slowly. */
const PIECE_BYTES = 16 * 1024;

/**
 * @param folder         what `npm run build` made.
 * @param idleTimeoutMs  a reader who reads nothing of a file for this long is disconnected.
 * @returns undefined when there is no console (a build of only the server's code).
 */
export function consoleFiles(folder: string, idleTimeoutMs: number): Middleware | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const files = readFiles(folder);
  const answer = async (ctx: Context): Promise<void> => {
    ctx.set(SECURITY_HEADERS as Record<string, string>);
    // Relative, so that it also holds behind a proxy that serves under a path of its own.
    if (ctx.path === `${CONSOLE_PATH}/`) {
      ctx.redirect(`..${CONSOLE_PATH}`);
      return;
    }
    const file = files.get(ctx.path.slice(CONSOLE_PATH.length + 1));
    if (file === undefined) throw new LodestoneError("NOT_FOUND", `There is no file ${ctx.path.slice(0, 200)} in the console.`);
    await sendFile(ctx, file, idleTimeoutMs);
  };
  return (ctx, next) => {
    const { method, path } = ctx;
    const isOurs = path === CONSOLE_PATH || path.startsWith(`${CONSOLE_PATH}/`);
    return isOurs && (method === "GET" || method === "HEAD") ? answer(ctx) : next();
  };
}

/** @returns files by their paths below the folder; the page itself as "". */
function readFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const files = new Map<string, StaticFile>();
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const type = TYPES[extname(path)];
    if (type === undefined) continue;
    const bytes = readFileSync(join(folder, path));
    const tag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
    const name = path.split(sep).join("/");
    files.set(name === "index.html" ? "" : name, { bytes, type, tag, immutable: name.startsWith("assets/") });
  }
  return files;
}

async function sendFile(ctx: Context, file: StaticFile, idleTimeoutMs: number): Promise<void> {
  ctx.set("Cache-Control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  ctx.set("ETag", file.tag);
  ctx.vary("Accept-Encoding");
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  let { bytes } = file;
  if (bytes.length >= LEAST_TO_COMPRESS_BYTES && ctx.acceptsEncodings("gzip", "identity") === "gzip") {
    file.gzipped ??= compress(bytes, { level: 9 });
    bytes = await file.gzipped;
    ctx.set("Content-Encoding", "gzip");
  }
  ctx.body = ctx.method === "HEAD" ? bytes : streamToReader(piecesOf(bytes), ctx.req.socket, idleTimeoutMs);
  ctx.type = file.type;
  ctx.length = bytes.length;
}

function* piecesOf(bytes: Buffer): Generator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

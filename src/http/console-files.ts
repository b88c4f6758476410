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
import { LodestoneError } from "../errors.ts";

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
  /** The name of the file contains a hash of its content: other content has another name. */
  readonly immutable: boolean;
  gzipped?: Promise<Buffer>;
}

const compress = promisify(gzip);

/** @param folder what `npm run build` made. @returns undefined when there is none (a build of the server's code alone). */
export function consoleFiles(folder: string): Middleware | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const files = readFiles(folder);
  return async (ctx, next) => {
    if (ctx.path !== CONSOLE_PATH && !ctx.path.startsWith(`${CONSOLE_PATH}/`)) return next();
    if (ctx.method !== "GET" && ctx.method !== "HEAD") return next();
    ctx.set(SECURITY_HEADERS as Record<string, string>);
    // Relative, so that it also holds behind a proxy that serves under a path of its own.
    if (ctx.path === `${CONSOLE_PATH}/`) {
      ctx.redirect(`..${CONSOLE_PATH}`);
      return;
    }
    const file = files.get(ctx.path.slice(CONSOLE_PATH.length + 1));
    if (file === undefined) throw new LodestoneError("NOT_FOUND", `There is no file ${ctx.path.slice(0, 200)} in the console.`);
    await sendFile(ctx, file);
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

async function sendFile(ctx: Context, file: StaticFile): Promise<void> {
  ctx.set("Cache-Control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  ctx.set("ETag", file.tag);
  ctx.vary("Accept-Encoding");
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  ctx.type = file.type;
  if (file.bytes.length < LEAST_TO_COMPRESS_BYTES || ctx.acceptsEncodings("gzip", "identity") !== "gzip") {
    ctx.body = file.bytes;
    return;
  }
  file.gzipped ??= compress(file.bytes, { level: 9 });
  ctx.set("Content-Encoding", "gzip");
  ctx.body = await file.gzipped;
}

/**
 * Reads one request body, with limits on its bytes, its time and its pauses. If the headers already show that the
 * body will be rejected, it is rejected before it is read. A rejected body is drained for a moment so that the
 * client can read the answer.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { parse } from "content-type";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { quoted } from "../../errors/value-in-words.ts";
import { decodeUtf8, isContinuation } from "../../text/utf8-in-slices.ts";
import { yieldToEventLoop } from "../../threads/event-loop.ts";
import type { HttpLimits } from "../http-limits.ts";
import { ClientGoneError, HttpError } from "../status.ts";

const LARGE_BODY_BYTES = 1 << 20;
/** Also what is JSON by its suffix (RFC 6839), such as application/ld+json. The parser gives types in lower case. */
const JSON_TYPE = /^application\/(?:json|[\w.+-]+\+json)$/;

type BodyLimits = Pick<HttpLimits, "bodyBytes" | "bodyTimeoutMs" | "bodyIdleTimeoutMs">;

/** True when the request's headers announce a body, even if it turns out to be empty. */
export function announcesBody(request: IncomingMessage): boolean {
  return request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0;
}

/**
 * Node takes every list of codings that ends in "chunked" and undoes that one alone.
 * @throws {LodestoneError} UNSUPPORTED_MEDIA_TYPE for any other.
 */
export function refuseTransferCoding(request: IncomingMessage): void {
  const codings = request.headers["transfer-encoding"];
  if (codings === undefined || codings.trim().toLowerCase() === "chunked") return;
  throw new LodestoneError(
    "UNSUPPORTED_MEDIA_TYPE",
    `Transfer-Encoding ${quoted(codings)} is not supported: send the body plain, with a Content-Length or chunked.`,
  );
}

/** @throws {LodestoneError} UNSUPPORTED_MEDIA_TYPE unless the headers announce uncompressed JSON in UTF-8. */
export function checkContentType(request: IncomingMessage): void {
  const type = request.headers["content-type"];
  if (type === undefined || !isJsonType(type)) {
    const got = type === undefined ? "none" : quoted(type);
    throw new LodestoneError("UNSUPPORTED_MEDIA_TYPE", `The body must be JSON: send "Content-Type: application/json"; got ${got}.`);
  }
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new LodestoneError("UNSUPPORTED_MEDIA_TYPE", "A compressed body is not supported: send it without Content-Encoding.");
  }
}

function isJsonType(header: string): boolean {
  try {
    // An empty parameter at the end is allowed (RFC 9110, 5.6.6), and the parser does not know it.
    const { type, parameters } = parse(header.replace(/;\s*$/, ""));
    return JSON_TYPE.test(type) && /^utf-?8$/i.test(parameters.charset ?? "utf-8");
  } catch {
    return false;
  }
}

/**
 * The body's text. "" for none.
 *
 * @param onArrival  told of every piece before it is kept; what it throws refuses the body.
 * @throws {LodestoneError} TOO_LARGE, INVALID (not UTF-8); {HttpError} 408; {ClientGoneError}.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits, onArrival?: (bytes: number) => void): Promise<string> {
  const bytes = await readBytes(request, limits, onArrival);
  // Each of these steps looks through all of it.
  if (bytes.length > LARGE_BODY_BYTES) await yieldToEventLoop();
  if (!isUtf8(bytes)) {
    throw new LodestoneError("INVALID", `The body is not valid UTF-8: the error is at byte ${firstBadUtf8Byte(bytes)}.`);
  }
  const hasByteOrderMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return decodeUtf8(hasByteOrderMark ? bytes.subarray(3) : bytes);
}

/** The body's bytes; like `readBody`, for bodies that are not text. */
export async function readBytes(request: IncomingMessage, limits: BodyLimits, onArrival?: (bytes: number) => void): Promise<Buffer> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
  // A small body usually arrives together with the headers, and then all of it is here after this microtask: no
  // listeners and timers are needed.
  await undefined;
  if (announced > 0 && request.readableLength === announced) {
    onArrival?.(announced);
    return request.read() as Buffer;
  }
  const chunks = await collect(request, limits, onArrival);
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

function collect(request: IncomingMessage, limits: BodyLimits, onArrival: (bytes: number) => void = () => {}): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let byteLength = 0;
    const late = (waitedMs: number) =>
      finish(() =>
        reject(new HttpError("REQUEST_TIMEOUT", `The body did not arrive within ${waitedMs / 1000} s.`, { Connection: "close" })),
      );
    const totalTimer = setTimeout(() => late(limits.bodyTimeoutMs), limits.bodyTimeoutMs);
    const idleTimer = setTimeout(() => late(limits.bodyIdleTimeoutMs), limits.bodyIdleTimeoutMs);
    const finish = (settle: () => void) => {
      clearTimeout(totalTimer);
      clearTimeout(idleTimer);
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      settle();
    };
    const onData = (chunk: Buffer) => {
      byteLength += chunk.length;
      try {
        if (byteLength > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
        onArrival(chunk.length);
      } catch (error) {
        chunks.length = 0;
        finish(() => reject(error as Error));
        return;
      }
      idleTimer.refresh();
      chunks.push(chunk);
    };
    const onEnd = () => finish(() => resolve(chunks));
    const onClose = () => finish(() => reject(new ClientGoneError()));
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
    if (request.destroyed) onClose();
  });
}

/**
 * Discards the rest of a request that was answered early; gives up after `drainMs` or `drainBytes`. Without
 * this, a client that is still sending may see its connection break instead of a 413.
 *
 * @returns undefined when all of it has arrived; otherwise resolves when nothing more will come.
 */
export function discardRest(request: IncomingMessage, drainMs = 5_000, drainBytes = 64 * 1024 * 1024): Promise<void> | undefined {
  if (request.complete || request.destroyed) return undefined;
  let byteLength = 0;
  const timer = setTimeout(() => request.destroy(), drainMs);
  timer.unref();
  request.on("error", () => {});
  request.on("data", (chunk: Buffer) => {
    byteLength += chunk.length;
    if (byteLength > drainBytes) request.destroy();
  });
  request.resume();
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      resolve();
    };
    request.once("close", finish);
    request.once("end", finish);
  });
}

function tooLarge(limitBytes: number): LodestoneError {
  return new LodestoneError(
    "TOO_LARGE",
    `The body is larger than ${limitBytes.toLocaleString("en-US")} bytes. Send fewer records in one request.`,
  );
}

function firstBadUtf8Byte(bytes: Buffer): number {
  // Halving works because a prefix that ends on a code point's edge is valid exactly when the fault lies behind it.
  let validEnd = 0;
  let badEnd = bytes.length;
  while (badEnd - validEnd > 8) {
    let middle = (validEnd + badEnd) >> 1;
    while (middle > validEnd && isContinuation(bytes[middle])) middle--;
    if (middle === validEnd) break;
    if (isUtf8(bytes.subarray(validEnd, middle))) validEnd = middle;
    else badEnd = middle;
  }
  for (let at = validEnd; at < badEnd; ) {
    const length = [1, 2, 3, 4].find((n) => at + n <= bytes.length && isUtf8(bytes.subarray(at, at + n)));
    if (length === undefined) return at;
    at += length;
  }
  return badEnd;
}

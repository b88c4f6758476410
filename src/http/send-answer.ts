/** Sends what an endpoint answers: a small body at once, a large one in pieces; as gzip to those who ask for it. */
import type { Readable } from "node:stream";
import type { Context } from "koa";
import { isHeavierThan, jsonPieces } from "../records/json-pieces.ts";
import { yieldToEventLoop } from "../threads/event-loop.ts";
import { streamToReader } from "./answer-stream.ts";
import { asksForGzip, compress, compressStream } from "./compression.ts";
import type { ApiResponse } from "./endpoint.ts";

/**
 * Answers of more characters, about, may be held back by a slow reader, and are not held whole; smaller ones
 * fit in the socket's buffers.
 */
const LARGE_ANSWER_LENGTH = 64 * 1024;

const LONG_LIST = 100;

/** What Koa makes of "application/json", without looking it up for each answer. */
const JSON_TYPE = "application/json; charset=utf-8";

/**
 * @param idleTimeoutMs  a reader who reads nothing of a large answer for this long is disconnected.
 * @param caller         whose slices of the event loop writing a large answer takes.
 */
export async function sendAnswer(ctx: Context, response: ApiResponse, idleTimeoutMs: number, caller: string): Promise<void> {
  if (hasLongList(response.body)) await yieldToEventLoop();
  ctx.status = response.status;
  if (response.headers !== undefined) ctx.set(response.headers as Record<string, string>);
  if (response.stream !== undefined) {
    ctx.type = response.contentType as string;
    ctx.body = streamToReader(response.stream, ctx.req.socket, idleTimeoutMs, caller);
    return;
  }
  if (response.body === undefined) {
    ctx.body = null;
    ctx.status = response.status;
    return;
  }
  // Before the body, since Koa would work out a type for a body that has none.
  if (response.contentType !== undefined) {
    ctx.type = response.contentType;
    await sendText(ctx, response.body as string);
    return;
  }
  ctx.set("Content-Type", JSON_TYPE);
  if (ctx.method === "HEAD" || !isHeavierThan(response.body, LARGE_ANSWER_LENGTH)) {
    await sendText(ctx, JSON.stringify(response.body));
    return;
  }
  const pieces = streamToReader(jsonPieces(response.body), ctx.req.socket, idleTimeoutMs, caller);
  if (asksForGzip(ctx, LARGE_ANSWER_LENGTH)) setCompressed(ctx, compressStream(pieces));
  else ctx.body = pieces;
}

async function sendText(ctx: Context, text: string): Promise<void> {
  if (asksForGzip(ctx, text.length)) setCompressed(ctx, await compress(text));
  else ctx.body = text;
}

/** Not before the body is there: an error in its place is not compressed. */
function setCompressed(ctx: Context, body: Buffer | Readable): void {
  ctx.set("Content-Encoding", "gzip");
  ctx.body = body;
}

/** Reading it took a while, and so does writing it as JSON: others are served in between. */
function hasLongList(body: unknown): boolean {
  return (
    typeof body === "object" && body !== null && Object.values(body).some((member) => Array.isArray(member) && member.length > LONG_LIST)
  );
}

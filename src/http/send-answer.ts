/** Sends what an endpoint answers: a small body at once, a large one in pieces. */
import type { Context } from "koa";
import { isHeavierThan, jsonPieces } from "../records/json-pieces.ts";
import { yieldToEventLoop } from "../threads/event-loop.ts";
import { streamToReader } from "./answer-stream.ts";
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
    ctx.body = response.body;
    return;
  }
  ctx.set("Content-Type", JSON_TYPE);
  if (ctx.method === "HEAD" || !isHeavierThan(response.body, LARGE_ANSWER_LENGTH)) ctx.body = JSON.stringify(response.body);
  else ctx.body = streamToReader(jsonPieces(response.body), ctx.req.socket, idleTimeoutMs, caller);
}

/** Reading it took a while, and so does writing it as JSON: others are served in between. */
function hasLongList(body: unknown): boolean {
  return (
    typeof body === "object" && body !== null && Object.values(body).some((member) => Array.isArray(member) && member.length > LONG_LIST)
  );
}

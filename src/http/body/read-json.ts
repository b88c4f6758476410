/** Reads and parses the JSON body of a request within its limits, and charges it to the request's place. */
import type { IncomingMessage } from "node:http";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { yieldToEventLoop } from "../../threads/event-loop.ts";
import type { Place } from "../admission/admission.ts";
import type { HttpLimits } from "../http-limits.ts";
import { announcesBody, checkContentType, readBody } from "./body-reader.ts";
import { parseJsonBody } from "./json-body.ts";
import { memoryOf, shapeOf } from "./json-memory.ts";
import { LARGE_TEXT_LENGTH, parseLargeJsonBody } from "./large-json-body.ts";

/** The values of shorter bodies are not charged: those of all requests in progress together take about 70 MB at most. */
const SMALL_TEXT_LENGTH = 16 * 1024;

/**
 * @param place  what the request holds; undefined for endpoints that are answered at any load.
 * @returns undefined when there is no body, and none is required.
 * @throws {LodestoneError} INVALID, TOO_LARGE, OVERLOADED, UNSUPPORTED_MEDIA_TYPE; {HttpError} 408; {ClientGoneError}.
 */
export async function readJson(
  request: IncomingMessage,
  { required }: { readonly required: boolean },
  limits: HttpLimits,
  place: Place | undefined,
): Promise<unknown> {
  if (announcesBody(request)) {
    checkContentType(request);
    const text = await readBody(request, limits, place?.arrived);
    if (text.length > LARGE_TEXT_LENGTH) {
      await yieldToEventLoop();
      return await parseLargeJsonBody(text, limits, (shape) => place?.holds(memoryOf(shape)));
    }
    if (text !== "") {
      const body = parseJsonBody(text, limits.jsonDepth);
      if (text.length > SMALL_TEXT_LENGTH) place?.holds(memoryOf(shapeOf(body, text.length)));
      return body;
    }
  }
  if (required) throw new LodestoneError("INVALID", "The request needs a JSON body.");
  return undefined;
}

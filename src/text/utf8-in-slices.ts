/**
 * Long texts from and to UTF-8, in slices: at once, 20 MB that are not ASCII take a twentieth of a second and
 * more. Other callers are served between the slices.
 */
import { type SliceOptions, Slices } from "../threads/event-loop.ts";
import { isHighSurrogate } from "./surrogates.ts";

/** Bytes or characters converted at once: a millisecond. */
const STEP = 1 << 18;
const SLICE = 2 * STEP;
/** Bytes of a code point. */
const LONGEST = 4;

/** @param bytes  valid UTF-8. @throws the signal's reason. */
export async function decodeUtf8(bytes: Buffer, options?: SliceOptions): Promise<string> {
  if (bytes.length <= STEP) return bytes.toString("utf8");
  const slices = new Slices(SLICE, "", options);
  const pieces: string[] = [];
  for (let begin = 0; begin < bytes.length; ) {
    let end = Math.min(begin + STEP, bytes.length);
    while (end > begin + STEP - LONGEST && isContinuation(bytes[end])) end--;
    pieces.push(bytes.toString("utf8", begin, end));
    if (slices.spend(end - begin)) await slices.rest();
    begin = end;
  }
  return pieces.join("");
}

/** Whether the byte is within a code point. */
export const isContinuation = (byte = 0): boolean => (byte & 0xc0) === 0x80;

/**
 * The texts behind each other, as UTF-8 in pieces.
 * @param texts  well-formed each by itself.
 * @throws the signal's reason.
 */
export async function encodeUtf8(texts: Iterable<string>, options?: SliceOptions): Promise<Buffer[]> {
  const slices = new Slices(SLICE, "", options);
  const pieces: Buffer[] = [];
  for (const text of inSteps(texts)) {
    pieces.push(Buffer.from(text, "utf8"));
    if (slices.spend(text.length)) await slices.rest();
  }
  return pieces;
}

/** Long texts cut, short ones put together: each but the last has about STEP characters. None ends within a surrogate pair. */
function* inSteps(texts: Iterable<string>): Generator<string, void, undefined> {
  let step = "";
  for (const text of texts) {
    for (let begin = 0; begin < text.length; ) {
      let end = Math.min(begin + STEP - step.length, text.length);
      if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++;
      step += text.slice(begin, end);
      begin = end;
      if (step.length < STEP) continue;
      yield step;
      step = "";
    }
  }
  if (step !== "") yield step;
}

/**
 * Record ids. The service makes them of `rec_` and 20 digits of base 32: 48 bits of milliseconds, then 52
 * random bits, the layout of `lodestone.record_id()` in SQL. Within a process they grow strictly, so records
 * sort by id in the order of their creation.
 */
import { randomBytes } from "node:crypto";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords } from "../../../errors/value-in-words.ts";

const ID = /^[a-zA-Z0-9_\-~:.]{1,255}$/;

/** An id that a client may write. Reading does not check this, since SQL may have written any id. */
export function requireRecordId(id: unknown, place = "id"): string {
  if (typeof id === "string" && ID.test(id)) return id;
  throw new LodestoneError(
    "INVALID",
    `${place} is ${inWords(id)}; a record id is 1 to 255 characters of a-z, A-Z, 0-9, "_", "-", "~", ":" and ".".`,
  );
}

const RANDOM_LOW = 2 ** 50;
const RANDOM_HIGH = 4;

let lastMs = 0;
let high = 0;
let low = 0;

export function newRecordId(nowMs = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    const random = randomBytes(7);
    high = random[0]! & 3;
    low = random.readUIntBE(1, 6) * 4 + (random[0]! >> 6);
  } else {
    // The same millisecond (or a clock that went back): a random step up keeps ids ascending and hard to guess.
    low += 1 + randomBytes(4).readUInt32BE();
    if (low >= RANDOM_LOW) {
      low -= RANDOM_LOW;
      high += 1;
    }
    if (high >= RANDOM_HIGH) {
      high = 0;
      lastMs += 1;
    }
  }
  return `rec_${digits(lastMs * 4 + high)}${digits(low)}`;
}

/** 50 bits as 10 digits of base 32. */
function digits(value: number): string {
  return value.toString(32).padStart(10, "0");
}

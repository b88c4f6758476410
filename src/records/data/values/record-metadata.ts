/**
 * The id and the metadata of a record in an answer, by the names that the branch has for them: `id` and `xata:
 * {version, createdAt, updatedAt}`, or `xata_id`, `xata_version`, `xata_createdat`, `xata_updatedat`. What a
 * search adds (table, score, highlight) is treated in the same way. Then ids: those that clients may write, and new ones.
 */
import { randomBytes } from "node:crypto";
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords, quoted } from "../../../errors/value-in-words.ts";
import { type SystemNaming, systemColumnName } from "../../../filter/system-columns.ts";
import type { JsonObject } from "../../requests.ts";
import type { TableInfo } from "../../schema.ts";

/** @param members By their names within `xata`. */
export function withMetadata(record: JsonObject, naming: SystemNaming, members: JsonObject): JsonObject {
  if (naming === "dotted") return { ...record, xata: { ...(record.xata as JsonObject | undefined), ...members } };
  return { ...record, ...Object.fromEntries(Object.entries(members).map(([name, value]) => [underscored(name), value])) };
}

/** In place. */
export function setMetadata(record: JsonObject, naming: SystemNaming, members: JsonObject): void {
  if (naming === "dotted") record.xata = members;
  else for (const [name, value] of Object.entries(members)) record[underscored(name)] = value;
}

export function recordIdOf(record: JsonObject, naming: SystemNaming): string {
  return record[systemColumnName("id", naming)] as string;
}

export function recordVersionOf(record: JsonObject, naming: SystemNaming): number {
  return (naming === "dotted" ? (record.xata as JsonObject).version : record[underscored("version")]) as number;
}

function underscored(member: string): string {
  return `xata_${member.toLowerCase()}`;
}

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

/**
 * `rec_` and 20 digits of base 32: 48 bits of milliseconds, then 52 random bits, the layout of
 * `lodestone.record_id()` in SQL. Within a process they grow strictly, so records sort by id in the order of their
 * creation.
 */
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

/**
 * `ifVersion`: a write goes ahead only on the version that the client has seen.
 * @param version  the record's current version; undefined when there is no record.
 */
export function versionConflict(table: TableInfo, id: string, ifVersion: number, version: number | undefined): LodestoneError {
  const state = version === undefined ? "does not exist" : `has version ${version}`;
  return new LodestoneError(
    "CONFLICT",
    `Record ${quoted(id)} of table ${quoted(table.name)} ${state}, but ifVersion is ${ifVersion}; read it again, then write again.`,
  );
}

export function recordNotFound(table: TableInfo, id: string): LodestoneError {
  return new LodestoneError("NOT_FOUND", `Table ${quoted(table.name)} has no record with the id ${quoted(id)}.`);
}
